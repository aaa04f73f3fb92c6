"""When one step precedes another; every order rule asks here."""

from __future__ import annotations

from itertools import accumulate
from math import inf

from luckrate_otel.model import Trajectory
from luckrate_otel.record import record


@record(frozen=True, slots=True)
class Order:
    """Step a precedes step b if a < b and ended[a] <= issued[b].

    issued: milliseconds, per step; never decreasing, as steps stand in the order they were issued in.

    ended: when a step's result can have been known, -inf where only the order of issue counts.
    """

    issued: tuple[float, ...]
    ended: tuple[float, ...]


def order_of(trajectory: Trajectory, kind: str) -> Order:
    """`issue`: by the order the calls were issued in. `overlap`: a call precedes another that was issued after it
    had ended; calls that overlap are unordered. Where the duration of the earlier is not known, its issue decides.
    """
    issued = tuple(accumulate([step.t for step in trajectory.steps], max))
    if kind != "overlap":
        return Order(issued, (-inf,) * len(issued))
    ended = (
        -inf if step.duration is None else at + step.duration for at, step in zip(issued, trajectory.steps, strict=True)
    )
    return Order(issued, tuple(ended))
