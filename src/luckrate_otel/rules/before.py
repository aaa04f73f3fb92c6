"""`before`: pairs [a, b]; the first a precedes the first b, and b does not come without a."""

from __future__ import annotations

from typing import TYPE_CHECKING

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules.finding import at_step, call, concluded, named, positions
from luckrate_otel.rules.key import Key, tool_pairs
from luckrate_otel.rules.order import ordering
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule

if TYPE_CHECKING:
    from luckrate_otel.spec import Spec

BEFORE: Key[tuple[tuple[str, str], ...]] = Key("before", tool_pairs, ())


def evaluate(trajectory: Trajectory, spec: Spec) -> Outcome:
    """One violation per broken pair, on its first b. In a run cut short, the a of a lone b may not have been seen."""
    called = positions(trajectory)
    precedes = ordering(trajectory, spec)
    violations: list[Violation] = []
    gap: Gap | None = None
    activated = False
    for i, (a, b) in enumerate(spec.get(BEFORE)):
        if b not in called:
            continue
        activated = True
        b_first = called[b][0]
        if a == b or any(precedes(step, b_first) for step in called.get(a, ())):
            continue
        if a not in called and trajectory.cut_short:
            gap = Gap.INCOMPLETE
            continue
        violations.append(_violation(trajectory, f"before[{i}]", a, b_first, called.get(a, [])))
    return concluded(violations, gap=gap, activated=activated)


def _violation(trajectory: Trajectory, clause: str, a: str, b_first: int, calls_of_a: list[int]) -> Violation:
    refused = call(trajectory, b_first)
    if calls_of_a:
        message = f"{refused} did not wait for {call(trajectory, calls_of_a[0])}"
    else:
        message = f"{refused} was called without {named(a)}"
    return at_step(
        trajectory,
        b_first,
        rule=RULE.id,
        clause=clause,
        severity=RULE.severity,
        message=message,
        evidence=calls_of_a[:1],
    )


RULE = Rule("before", Severity.HARD, (BEFORE,), evaluate)
