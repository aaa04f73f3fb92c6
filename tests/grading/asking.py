"""Asking one rule about one run, and what it answers in a form to compare whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.facts import CloseReason, Gap
from luckrate_otel.model import Step, Trajectory, Turn, Violation
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import Spec


def run(*steps: Step | str, task: str | None = "task", **fields: Any) -> Trajectory:
    """A run of steps (a name is a successful call without arguments), each on a span s0, s1 …, root span r."""
    made = (Step(step, {}) if isinstance(step, str) else step for step in steps)
    spans = tuple(
        Step(s.tool, s.args, s.ok, s.result, s.t, s.agent, s.error, s.duration, f"s{i}") for i, s in enumerate(made)
    )
    turns = () if task is None else (Turn(task),)
    return Trajectory(**{"steps": spans, "turns": turns, "root": "r", "close_reason": CloseReason.ROOT, **fields})


def ask(rule: str, spec: Mapping[str, Any], trajectory: Trajectory) -> Outcome:
    """The answer of one rule, which the spec must ask for."""
    parsed = Spec.from_mapping({"provenance": "substring", **spec})
    assert RULES[rule] in parsed.rules, "the rule is off in this spec"
    return RULES[rule].evaluate(trajectory, parsed)


def state(outcome: Outcome) -> str | Gap:
    """The one state a rule ends in, by precedence."""
    if outcome.violations:
        return "violated"
    if outcome.gap is not None:
        return outcome.gap
    return "vacuous" if outcome.vacuous else "satisfied"


def places(outcome: Outcome) -> list[tuple[str, int | None, str | None]]:
    """Clause, step and tool of each violation, in order."""
    return [(v.clause, v.step, v.tool) for v in outcome.violations]


def only(outcome: Outcome) -> Violation:
    (violation,) = outcome.violations
    return violation
