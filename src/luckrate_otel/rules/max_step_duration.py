"""`max_step_duration`: how long one call may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import by_tool
from luckrate_otel.rules.finding import at_step, call, concluded
from luckrate_otel.rules.key import Aliases, Clause, Key, Place, entries, seconds, tool
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import NOTHING, Value

# Stands for every tool that is not named itself.
OTHERS = "*"


def _budgets(value: Value, place: Place) -> Mapping[str, float]:
    """`10s`, or `{search: 5s, "*": 30s}`: tool → seconds."""
    if not isinstance(value, Mapping):
        every = seconds(value, place)
        return NOTHING if every is None else {OTHERS: every}
    read: dict[str, float] = {}
    for name, item in entries(value, place, "a duration, or a mapping from tools to durations"):
        limit = seconds(item, place.at(name))
        if limit is not None:
            read[name if name == OTHERS else tool(name, place.at(name))] = limit
    return read


def _clauses(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    by_name = dict(value) if isinstance(value, Mapping) else {OTHERS: value}
    if OTHERS in by_name:
        yield key, key, by_name.pop(OTHERS)
    yield from by_tool(key, by_name, aliases)


_SHAPE = shapes.either(shapes.DURATION, shapes.a_map(shapes.DURATION))

MAX_STEP_DURATION: Key[Mapping[str, float]] = Key("max_step_duration", _budgets, NOTHING, _SHAPE, _clauses)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation per call. Without its duration it cannot be told."""
    budgets = spec.get(MAX_STEP_DURATION)
    violations: list[Violation] = []
    gap: Gap | None = None
    for index, step in enumerate(trajectory.steps):
        name = step.tool if step.tool in budgets else OTHERS
        if name not in budgets:
            continue
        if step.duration is None:
            gap = Gap.NOT_CAPTURED
        elif step.duration / 1000 > budgets[name]:
            violations.append(_violation(trajectory, index, name, step.duration / 1000, budgets[name]))
    return concluded(violations, gap=gap)


def _violation(trajectory: Trajectory, index: int, name: str, taken: float, budget: float) -> Violation:
    return at_step(
        trajectory,
        index,
        rule=RULE.id,
        clause=RULE.id if name == OTHERS else f"{RULE.id}.{name}",
        severity=RULE.severity,
        message=f"{call(trajectory, index)} took {taken:.3g} s, over the budget of {budget:g} s",
    )


RULE = Rule(
    "max_step_duration",
    Severity.SOFT,
    (MAX_STEP_DURATION,),
    evaluate,
    mend="put a timeout on the tool, or raise its limit",
)
