"""A clause about two calls: `[a, b]`, or the same with `where:`, `same:` and `within:`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from luckrate_otel.rules.calls import Calls, parse_calls
from luckrate_otel.rules.key import Place, block, items, shown
from luckrate_otel.rules.same import ALL, Same, parse_same
from luckrate_otel.rules.within import ANYWHERE, Within, parse_within
from luckrate_otel.telemetry import Value

_WORDS = ("first", "then", "same", "within")
_EXPECTED = "a pair of calls, [a, b], or a mapping with first and then"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two kinds of calls; what is said of them is the rule's."""

    first: Calls
    then: Calls
    same: Same = ALL
    within: Within = ANYWHERE


def parse_pairs(value: Value, place: Place) -> tuple[Pair, ...]:
    """A list of pairs."""
    return tuple(_pair(item, place.at(i)) for i, item in enumerate(items(value, place, "a list of pairs of calls")))


def _pair(value: Value, place: Place) -> Pair:
    if isinstance(value, list | tuple) and len(value) == 2:
        first, then = (parse_calls(item, place.at(i)) for i, item in enumerate(value))
        return Pair(first, then)
    if not isinstance(value, Mapping):
        place.problem(f"expected {_EXPECTED}, got {shown(value)}")
        return Pair(Calls(()), Calls(()))
    read = block(value, place, _WORDS, _EXPECTED)
    for key in ("first", "then"):
        if key not in read:
            place.problem(f"{key} is missing")
    return Pair(
        parse_calls(read["first"], place.at("first")) if "first" in read else Calls(()),
        parse_calls(read["then"], place.at("then")) if "then" in read else Calls(()),
        parse_same(read["same"], place.at("same")) if "same" in read else ALL,
        parse_within(read["within"], place.at("within")) if "within" in read else ANYWHERE,
    )
