"""`any_of`: at least one of several calls, in the run or before another call: either look-up before a refund."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.calls import Calls, parse_calls
from luckrate_otel.rules.clauses import Found, Reading, judge, numbered
from luckrate_otel.rules.contents import each_item
from luckrate_otel.rules.earlier import ByAbout
from luckrate_otel.rules.finding import call
from luckrate_otel.rules.key import Key, Place, block, items
from luckrate_otel.rules.lens import Hit, Lens
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.same import ALL, Same, parse_same
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.rules.within import ANYWHERE, Within, parse_within
from luckrate_otel.telemetry import Value

_WORDS = ("calls", "before", "same", "within")


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the calls; before None: anywhere in the run, else before each such call."""

    calls: tuple[Calls, ...]
    before: Calls | None = None
    same: Same = ALL
    within: Within = ANYWHERE

    def __str__(self) -> str:
        return " or ".join(map(str, self.calls))


def _choices(value: Value, place: Place) -> tuple[Choice, ...]:
    return tuple(_choice(item, place.at(i)) for i, item in enumerate(items(value, place, "a list of choices")))


def _choice(value: Value, place: Place) -> Choice:
    if not isinstance(value, Mapping):
        return Choice(_calls(value, place))
    read = block(value, place, _WORDS, "a list of calls, or a mapping with calls and before")
    if "calls" not in read:
        place.problem("calls is missing")
    if "before" not in read and ("same" in read or "within" in read):
        place.problem("same and within need before: they relate two calls")
    return Choice(
        _calls(read["calls"], place.at("calls")) if "calls" in read else (),
        parse_calls(read["before"], place.at("before")) if "before" in read else None,
        parse_same(read["same"], place.at("same")) if "same" in read else ALL,
        parse_within(read["within"], place.at("within")) if "within" in read else ANYWHERE,
    )


def _calls(value: Value, place: Place) -> tuple[Calls, ...]:
    calls = tuple(parse_calls(item, place.at(i)) for i, item in enumerate(items(value, place, "a list of calls")))
    if not calls and isinstance(value, list | tuple):
        place.problem("names no call")
    return calls


_SHAPE = shapes.a_list(
    shapes.either(
        shapes.a_list(shapes.ref("calls")),
        shapes.block(
            {
                "calls": shapes.a_list(shapes.ref("calls")),
                "before": shapes.ref("calls"),
                "same": shapes.ref("same"),
                "within": shapes.ref("within"),
            },
            ("calls",),
        ),
    )
)

ANY_OF: Key[tuple[Choice, ...]] = Key("any_of", _choices, (), _SHAPE, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(ANY_OF)), read, trajectory, spec)


def read(choice: Choice, lens: Lens) -> Reading:
    """One break of the run; with `before` one per call that none of them precedes."""
    able = sorted(
        {hit.step: hit for calls in choice.calls for hit in lens.clearing(calls, choice.same.first)}.values(),
        key=lambda hit: hit.step,
    )
    if choice.before is not None:
        return _before(choice, choice.before, able, lens)
    found = [] if able else [Found(None, f"{choice} was never called", open=True)]
    return Reading(found, activated=True)


def _before(choice: Choice, before: Calls, able: list[Hit], lens: Lens) -> Reading:
    earlier = ByAbout(lens.order, able)
    reading = Reading()
    for b in lens.accused(before, choice.same.then):
        reading.activated = True
        a = earlier.latest(b.step, b.about)
        if a is None or not choice.within.holds(lens.order, a, b.step):
            near = f" {choice.within}" if choice.within.bounded else ""
            words = f"{call(lens.trajectory, b.step)} was called without {choice} before it{near}"
            reading.found.append(Found(b.step, words, open=a is None))
    return reading


RULE = Rule(
    "any_of",
    Severity.HARD,
    (ANY_OF,),
    evaluate,
    mend="let the agent make at least one of these calls",
)
