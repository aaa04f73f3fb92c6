"""`no_repeat`: an identical call after that call already succeeded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from luckrate_otel.canonical import canonical
from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Step, Trajectory, Violation
from luckrate_otel.rules import shapes
from luckrate_otel.rules.finding import at_step, call, concluded, gap_of
from luckrate_otel.rules.key import Key, flag
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import Value

NO_REPEAT: Key[bool] = Key("no_repeat", flag, default=False, shape=shapes.FLAG)


_TEXT = frozenset({str})


def evaluate(trajectory: Trajectory, _spec: SpecView) -> Outcome:
    """One violation per repeat. A retry after a failure is right; whether a call with ok None failed cannot be told."""
    key_of = _flat if all(map(_is_flat, trajectory.steps)) else canonical
    succeeded: dict[tuple[str, Hashable], int] = {}
    untold: dict[tuple[str, Hashable], int] = {}
    violations: list[Violation] = []
    gaps: list[Gap] = []
    for index, step in enumerate(trajectory.steps):
        if step.args is None:
            gaps.append(gap_of(trajectory, index, "args"))
            continue
        key = (step.tool, key_of(step.args))
        if key in succeeded:
            violations.append(_violation(trajectory, index, succeeded[key]))
        elif key in untold:
            gaps.append(gap_of(trajectory, untold[key], "ok"))
        if step.ok:
            succeeded.setdefault(key, index)
        elif step.ok is None:
            untold.setdefault(key, index)
    return concluded(violations, gap=next(iter(gaps), None), activated=len(trajectory.steps) > 1)


def _is_flat(step: Step) -> bool:
    """Its arguments are texts under texts, which are equal where their JSON is."""
    args = step.args
    return args is None or (_TEXT.issuperset(map(type, args)) and _TEXT.issuperset(map(type, args.values())))


def _flat(args: Mapping[str, Value]) -> Hashable:
    """Saves the JSON of each call, most of what the rule takes."""
    return frozenset(args.items())


def _violation(trajectory: Trajectory, index: int, done: int) -> Violation:
    return at_step(
        trajectory,
        index,
        rule=RULE.id,
        clause="no_repeat",
        severity=RULE.severity,
        message=f"{call(trajectory, index)} repeats step {done}, which had already succeeded",
        evidence=(done,),
    )


RULE = Rule(
    "no_repeat",
    Severity.SOFT,
    (NO_REPEAT,),
    evaluate,
    mend="let the agent keep the first result, or leave the tool out if its answers change",
)
