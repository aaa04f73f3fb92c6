"""`max_calls`: how often a tool may be called, in all or about one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.calls import Calls
from luckrate_otel.rules.clauses import Found, Reading, judge
from luckrate_otel.rules.contents import by_tool
from luckrate_otel.rules.finding import call
from luckrate_otel.rules.key import Key, Place, block, entries, tool, whole
from luckrate_otel.rules.lens import Hit, Lens
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.same import ALL, Same, parse_same
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.rules.where import parse_where
from luckrate_otel.telemetry import Value

_WORDS = ("max", "where", "same")


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many of these calls, per thing that they are about."""

    calls: Calls
    most: int
    same: Same = ALL


def _limits(value: Value, place: Place) -> tuple[Limit, ...]:
    """`{issue_refund: 1, send_email: {max: 2, same: to}}`."""
    expected = "a mapping from tools to numbers"
    return tuple(_limit(name, item, place.at(name)) for name, item in entries(value, place, expected))


def _limit(name: str, value: Value, place: Place) -> Limit:
    calls = Calls((tool(name, place),))
    if not isinstance(value, Mapping):
        return Limit(calls, whole(0)(value, place))
    read = block(value, place, _WORDS, "a number, or a mapping with max, where and same")
    if "max" not in read:
        place.problem("max is missing")
    return Limit(
        Calls(calls.tools, parse_where(read["where"], place.at("where")) if "where" in read else ()),
        whole(0)(read["max"], place.at("max")) if "max" in read else 0,
        parse_same(read["same"], place.at("same")) if "same" in read else ALL,
    )


_SHAPE = shapes.a_map(
    shapes.either(
        shapes.COUNT,
        shapes.block({"max": shapes.COUNT, "where": shapes.ref("where"), "same": shapes.ref("same")}, ("max",)),
    )
)

MAX_CALLS: Key[tuple[Limit, ...]] = Key("max_calls", _limits, (), _SHAPE, by_tool)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    clauses = [(f"{RULE.id}.{limit.calls.tools[0]}", limit) for limit in spec.get(MAX_CALLS)]
    return judge((RULE.id, RULE.severity), clauses, read, trajectory, spec)


def read(limit: Limit, lens: Lens) -> Reading:
    """One break per thing, on the first call over the limit, the others over it as evidence. Never vacuous."""
    groups: dict[object, list[Hit]] = {}
    unknown: list[Hit] = []
    for hit in lens.accused(limit.calls, limit.same.first):
        (unknown if hit.about is None else groups.setdefault(hit.about, [])).append(hit)
    if unknown:  # which may all be about the same thing, and each about any
        most = max(groups.values(), key=len, default=[])
        groups = {None: sorted([*most, *unknown], key=lambda hit: hit.step)}
    found = [
        Found(
            hits[limit.most].step,
            f"{call(lens.trajectory, hits[limit.most].step)} is over the limit of {limit.most} ({len(hits)} made)",
            tuple(hit.step for hit in hits[limit.most + 1 :]),
        )
        for hits in groups.values()
        if len(hits) > limit.most
    ]
    return Reading(sorted(found, key=lambda one: one.step or 0), activated=True)


RULE = Rule(
    "max_calls",
    Severity.SOFT,
    (MAX_CALLS,),
    evaluate,
    mend="look for a loop first; raise the limit only if good runs need more",
)
