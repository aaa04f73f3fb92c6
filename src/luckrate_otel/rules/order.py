"""When one step precedes another; every order rule asks here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from luckrate_otel.model import Trajectory

if TYPE_CHECKING:
    from luckrate_otel.spec import Spec

Precedes = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class Order:
    """issued: milliseconds, per step; never decreasing, as steps stand in the order they were issued in.

    ended: when a step's result can have been known, -inf where only the order of issue counts.
    """

    issued: tuple[float, ...]
    ended: tuple[float, ...]

    def precedes(self, a: int, b: int) -> bool:
        return a < b and self.ended[a] <= self.issued[b]


def order_of(trajectory: Trajectory, kind: str) -> Order:
    """`issue`: by the order the calls were issued in. `overlap`: a call precedes another that was issued after it
    had ended; calls that overlap are unordered. Where the duration of the earlier is not known, its issue decides.
    """
    issued: list[float] = []
    for step in trajectory.steps:
        issued.append(max(step.t, issued[-1]) if issued else step.t)
    if kind != "overlap":
        return Order(tuple(issued), (-inf,) * len(issued))
    ended = (
        -inf if step.duration is None else at + step.duration for at, step in zip(issued, trajectory.steps, strict=True)
    )
    return Order(tuple(issued), tuple(ended))


def ordering(trajectory: Trajectory, spec: Spec) -> Precedes:
    """As the spec's `order` has it, which is `issue` unless written."""
    return order_of(trajectory, spec.order).precedes
