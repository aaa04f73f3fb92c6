"""Whether a run begins, ends or altogether goes as written, where calls that overlap may stand in either order."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from luckrate_otel.rules.calls import Calls, parse_calls
from luckrate_otel.rules.key import Place
from luckrate_otel.rules.lens import Lens
from luckrate_otel.rules.order import Order
from luckrate_otel.telemetry import Value


def parse_sequence(value: Value, place: Place) -> tuple[Calls, ...]:
    """One call or a list of calls, in order."""
    if isinstance(value, list | tuple):
        return tuple(parse_calls(item, place.at(i)) for i, item in enumerate(value))
    return (parse_calls(value, place),)


def begins(lens: Lens, wanted: Sequence[Calls]) -> tuple[int, list[int]]:
    """How many of the wanted calls come first, one after the other; and the steps left, those that come next first.

    Of several that would do, the one that holds up the others most is taken.
    """
    left = list(range(len(lens.order.issued)))
    for place, calls in enumerate(wanted):
        ready = _first(lens.order, left)
        fitting = [step for step in ready if lens.clears(calls, step)]
        if not fitting:
            return place, left
        left.remove(min(fitting, key=lambda step: (lens.order.ended[step], step)))
    return len(wanted), left


def ends(lens: Lens, wanted: Sequence[Calls]) -> tuple[int, list[int]]:
    """The same from the end: how many of the wanted calls, the last first, and the steps left, in order of issue."""
    left = list(range(len(lens.order.issued)))
    for place, calls in enumerate(reversed(wanted)):
        fitting = [step for step in _last(lens.order, left) if lens.clears(calls, step)]
        if not fitting:
            return place, left
        left.remove(max(fitting))
    return len(wanted), left


def _first(order: Order, left: Sequence[int]) -> list[int]:
    """The steps that none of the others precedes. Looks no further than calls overlap."""
    ready: list[int] = []
    first_end = inf
    for step in left:
        if order.issued[step] >= first_end:
            break
        ready.append(step)
        first_end = min(first_end, order.ended[step])
    return ready


def _last(order: Order, left: Sequence[int]) -> list[int]:
    """The steps that precede none of the others."""
    return [step for step in left if step == left[-1] or order.ended[step] > order.issued[left[-1]]]
