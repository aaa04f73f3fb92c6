"""`relations`: how arguments of one call compare with another call, `refund.amount <= lookup.result.total`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import each_item
from luckrate_otel.rules.earlier import ByAbout
from luckrate_otel.rules.finding import at_step, concluded, gap_of, inner_path, named
from luckrate_otel.rules.key import Key, Place, block, items, shown, tool
from luckrate_otel.rules.lens import Hit
from luckrate_otel.rules.order import Order, order_of
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.path import Unreadable, follow, number, result_value
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.same import ALL, Located, Same, about, parse_located, parse_same
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.rules.where import same_value
from luckrate_otel.telemetry import Value

_WORDS = ("that", "same")
_OPERAND = r"""(?:"([^"]+)"|([^\s."<>=!]+))\.([^\s<>=!]+)"""
_RELATION = re.compile(rf"\s*{_OPERAND}\s*(<=|>=|==|!=|<|>)\s*(?:{_OPERAND}|(-?[0-9]+(?:\.[0-9]+)?))\s*")

_COMPARE: Mapping[str, Callable[[float | str, float | str], bool]] = {
    "<=": lambda a, b: a <= b,  # type: ignore[operator]  # both are numbers, or both texts
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
    "<": lambda a, b: a < b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
}


@dataclass(frozen=True, slots=True)
class Operand:
    """A value of a call of this tool."""

    tool: str
    at: Located

    def __str__(self) -> str:
        path = inner_path(self.at.path)
        return f"{named(self.tool)}.{'result.' if self.at.in_result else ''}{path}"


@dataclass(frozen=True, slots=True)
class Relation:
    """left holds against right: a value of the latest call before, of those about the same; or a number."""

    left: Operand
    compare: str
    right: Operand | float
    same: Same = ALL


def _parse(value: Value, place: Place) -> tuple[Relation, ...]:
    found = (_one(item, place.at(i)) for i, item in enumerate(items(value, place, "a list of relations")))
    return tuple(relation for relation in found if relation is not None)


def _one(value: Value, place: Place) -> Relation | None:
    """`issue_refund.amount <= lookup_order.result.total`, or `{that: …, same: order_id}`."""
    if not isinstance(value, Mapping):
        return _relation(value, place, ALL)
    read = block(value, place, _WORDS, "a relation, or a mapping with that and same")
    same = parse_same(read["same"], place.at("same")) if "same" in read else ALL
    return _relation(read.get("that"), place.at("that"), Same(first=same.first, then=same.then))


def _relation(value: Value, place: Place, same: Same) -> Relation | None:
    match = _RELATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        expected = "a relation like issue_refund.amount <= lookup_order.result.total"
        place.problem(f"expected {expected}, got {shown(value)}")
        return None
    left = Operand(tool(match[1] or match[2], place), parse_located(match[3], place))
    if left.at.in_result:
        place.problem("the left side is an argument, not a result: it is the call that is judged")
    if match[8] is not None:
        return Relation(left, match[4], float(match[8]), same)
    return Relation(left, match[4], Operand(tool(match[5] or match[6], place), parse_located(match[7], place)), same)


_SHAPE = shapes.a_list(
    shapes.either(shapes.TEXT, shapes.block({"that": shapes.TEXT, "same": shapes.ref("same")}, ("that",)))
)

RELATIONS: Key[tuple[Relation, ...]] = Key("relations", _parse, (), _SHAPE, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation per call that does not hold. One with nothing to compare it with holds: `before` asks for that."""
    order = order_of(trajectory, spec.order if spec.writes_order else "overlap")
    violations: list[Violation] = []
    gap: Gap | None = None
    activated = False
    for i, relation in enumerate(spec.get(RELATIONS)):
        for index, answer in _answers(trajectory, relation, order):
            activated = True
            if isinstance(answer, Gap):
                gap = gap or answer
            elif answer is not None:
                violations.append(_violation(trajectory, f"{RULE.id}[{i}]", relation, index, answer.step))
    return concluded(violations, gap=gap, activated=activated)


@dataclass(frozen=True, slots=True)
class _Broken:
    """step: of the call it was compared with, None for a number."""

    step: int | None


def _answers(trajectory: Trajectory, relation: Relation, order: Order) -> list[tuple[int, _Broken | Gap | None]]:
    """Each call that can be compared, with what breaks it, why that cannot be told, or None."""
    right = relation.right
    others = _hits(trajectory, right.tool, relation.same.first) if isinstance(right, Operand) else []
    nameless = {hit.step for hit in others if hit.about is None}
    earlier = ByAbout(order, others)
    found: list[tuple[int, _Broken | Gap | None]] = []
    for hit in _hits(trajectory, relation.left.tool, relation.same.then):
        against = earlier.latest(hit.step, hit.about, accusing=True) if isinstance(right, Operand) else None
        if isinstance(right, Operand) and against is None:
            continue
        if hit.about is None or against in nameless:  # it may be about another thing than the call it stands beside
            step = hit.step if hit.about is None else against
            found.append((hit.step, gap_of(trajectory, step or 0, "args")))
            continue
        found.append((hit.step, _compared(trajectory, relation, hit.step, against)))
    return found


def _compared(trajectory: Trajectory, relation: Relation, index: int, against: int | None) -> _Broken | Gap | None:
    left = _values(trajectory, relation.left.at, index)
    right: list[Value] | Gap = [relation.right]
    if isinstance(relation.right, Operand):
        right = _values(trajectory, relation.right.at, against or 0)
    if isinstance(left, Gap) or isinstance(right, Gap):
        return left if isinstance(left, Gap) else right if isinstance(right, Gap) else None
    if not left:
        return None
    if not right:
        return Gap.NOT_CAPTURED
    holds = [[_holds(relation.compare, a, b) for b in right] for a in left]
    if all(any(answer is True for answer in row) for row in holds):
        return None
    if any(not any(answer is not False for answer in row) for row in holds):
        return _Broken(against)
    return Gap.NOT_CAPTURED


def _holds(compare: str, a: Value, b: Value) -> bool | None:
    """None: the two cannot be compared."""
    if compare in ("==", "!="):
        return same_value(a, b) is (compare == "==")
    left, right = number(a), number(b)
    if left is not None and right is not None:
        return _COMPARE[compare](left, right)
    if isinstance(a, str) and isinstance(b, str) and left is None and right is None:
        return _COMPARE[compare](a, b)  # dates as ISO 8601 has them
    return None


def _hits(trajectory: Trajectory, name: str, same: tuple[Located, ...]) -> list[Hit]:
    found = []
    for index, step in enumerate(trajectory.steps):
        if step.tool == name:
            speaks = about(same, trajectory, index)
            found.append(Hit(index, None if isinstance(speaks, Gap) else speaks))
    return found


def _values(trajectory: Trajectory, at: Located, index: int) -> list[Value] | Gap:
    step = trajectory.steps[index]
    if (step.result if at.in_result else step.args) is None:
        return gap_of(trajectory, index, "result" if at.in_result else "args")
    try:
        return follow(result_value(step.result or "") if at.in_result else step.args, at.path)
    except Unreadable:
        return [step.result] if not at.path else []


def _violation(trajectory: Trajectory, clause: str, relation: Relation, index: int, against: int | None) -> Violation:
    right = f"{relation.right} (step {against})" if against is not None else f"{relation.right:g}"
    return at_step(
        trajectory,
        index,
        rule=RULE.id,
        clause=clause,
        severity=RULE.severity,
        message=f"{relation.left} (step {index}) is not {relation.compare} {right}",
        argument=inner_path(relation.left.at.path),
        evidence=() if against is None else (against,),
    )


RULE = Rule(
    "relations",
    Severity.HARD,
    (RELATIONS,),
    evaluate,
    mend="let the tool compare the two values itself and refuse",
)
