"""`where:` which calls of a tool a clause is about: filters over arguments, result, success, error and agent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from luckrate_otel.canonical import canonical
from luckrate_otel.facts import NO_RETURN, Gap
from luckrate_otel.known import suggestion
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.finding import agent_of, gap_of
from luckrate_otel.rules.key import Place, entries, shown
from luckrate_otel.rules.path import Path, Unreadable, follow, number, parse_path, result_value
from luckrate_otel.rules.patterns import Pattern, parse_pattern
from luckrate_otel.telemetry import Value

FIELDS = ("ok", "agent", "error", "result")

Test = Callable[[Value, Value], bool]


def _compared(compare: Callable[[float, float], bool]) -> Test:
    def test(value: Value, limit: Value) -> bool:
        left, right = number(value), number(limit)
        return left is not None and right is not None and compare(left, right)

    return test


def same_value(a: Value, b: Value) -> bool:
    """Equal, where "40" and 40.0 are: models write numbers as texts."""
    if isinstance(a, str) and isinstance(b, str):
        return a == b
    left, right = number(a), number(b)
    if left is not None and right is not None:
        return left == right
    return canonical(a) == canonical(b)


def _holds(value: Value, part: Value) -> bool:
    if isinstance(value, str):
        return str(part) in value
    return isinstance(value, list | tuple) and any(same_value(item, part) for item in value)


TESTS: Mapping[str, Test] = {
    "eq": same_value,
    "ne": lambda value, other: not same_value(value, other),
    "in": lambda value, options: any(same_value(value, option) for option in options),
    "gt": _compared(lambda a, b: a > b),
    "ge": _compared(lambda a, b: a >= b),
    "lt": _compared(lambda a, b: a < b),
    "le": _compared(lambda a, b: a <= b),
    "contains": _holds,
    "matches": lambda value, pattern: isinstance(value, str) and pattern.found_in(value),
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One filter. field: `args`, `result`, `ok`, `error` or `agent`. test "exists": whether the path leads anywhere.

    pattern: the compiled operand of `matches`; left out of comparison, as operand says the same.
    """

    field: str
    path: Path
    test: str
    operand: Value
    pattern: Pattern | None = dataclasses.field(default=None, compare=False)

    def holds(self, trajectory: Trajectory, index: int) -> bool | Gap:
        """Whether it fits a step, or why that cannot be told."""
        read = self._read(trajectory, index)
        if isinstance(read, Gap):
            return read
        if self.test == "exists":
            return bool(read) is self.operand
        operand = self.operand if self.pattern is None else self.pattern
        test = TESTS[self.test]
        return any(test(value, operand) for value in read)

    def _read(self, trajectory: Trajectory, index: int) -> list[Value] | Gap:
        step = trajectory.steps[index]
        if self.field == "args":
            return gap_of(trajectory, index, "args") if step.args is None else follow(step.args, self.path)
        if self.field == "agent":
            agent = agent_of(trajectory, index)
            return gap_of(trajectory, index, "agent") if agent is None else [agent]
        if self.field == "ok":
            return gap_of(trajectory, index, "ok") if step.ok is None else [step.ok]
        if self.field == "error":
            if step.error is None:
                return gap_of(trajectory, index, "ok") if step.ok is None else []
            return [step.error]
        if step.result is None:
            return [] if step.error == NO_RETURN else gap_of(trajectory, index, "result")
        try:
            return [step.result] if not self.path else follow(result_value(step.result), self.path)
        except Unreadable:
            return []


Where = tuple[Condition, ...]


def fits(where: Where, trajectory: Trajectory, index: int) -> bool | Gap:
    """Whether all filters fit a step. One that surely does not outweighs those that cannot be told."""
    gap: Gap | None = None
    for condition in where:
        answer = condition.holds(trajectory, index)
        if answer is False:
            return False
        if isinstance(answer, Gap):
            gap = gap or answer
    return True if gap is None else gap


# ---- reading -----------------------------------------------------------------------------------


def parse_where(value: Value, place: Place) -> Where:
    """`{amount: {gt: 100}, result.status: [paid, sent], ok: true}`; a plain value means eq, a list one of them."""
    conditions: list[Condition] = []
    for key, item in entries(value, place, "a mapping from arguments, result, ok, error or agent to conditions"):
        here = place.at(key)
        name, path = _field(key, here)
        if isinstance(item, Mapping):
            conditions += (_condition(name, path, test, operand, here) for test, operand in item.items())
        else:
            test = "in" if isinstance(item, list | tuple) else "eq"
            conditions.append(Condition(name, path, test, item))
    return tuple(conditions)


def _field(key: str, place: Place) -> tuple[str, Path]:
    if key in FIELDS:
        return key, ()
    if key.startswith(("result.", "result[")):
        return "result", parse_path(key.removeprefix("result"), place)
    return "args", parse_path(key.removeprefix("args."), place)


def _condition(name: str, path: Path, test: Value, operand: Value, place: Place) -> Condition:
    if test == "exists":
        if not isinstance(operand, bool):
            place.at("exists").problem(f"expected true or false, got {shown(operand)}")
        return Condition(name, path, "exists", operand)
    if test not in TESTS:
        known = (*TESTS, "exists")
        place.problem(f"expected one of {', '.join(known)}, got {test!r}{suggestion(test, known)}")
        return Condition(name, path, "eq", None)
    here = place.at(str(test))
    if test in ("gt", "ge", "lt", "le") and number(operand) is None:
        here.problem(f"expected a number, got {shown(operand)}")
    if test == "in" and not isinstance(operand, list | tuple):
        here.problem(f"expected a list of values, got {shown(operand)}")
    return Condition(name, path, str(test), operand, parse_pattern(operand, here) if test == "matches" else None)
