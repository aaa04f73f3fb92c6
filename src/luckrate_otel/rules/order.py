"""When one step precedes another; every order rule asks here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from luckrate_otel.model import Trajectory

if TYPE_CHECKING:
    from luckrate_otel.spec import Spec

Precedes = Callable[[int, int], bool]


def ordering(trajectory: Trajectory, spec: Spec) -> Precedes:
    """`issue`: by the order the calls were issued in. `overlap`: a call precedes another that was issued after it
    had ended; calls that overlap are unordered. Where the duration of the earlier is not known, its issue decides.
    """
    steps = trajectory.steps

    def issued_before(a: int, b: int) -> bool:
        return a < b

    def ended_before(a: int, b: int) -> bool:
        lasted = steps[a].duration
        return a < b and (lasted is None or steps[a].t + lasted <= steps[b].t)

    return ended_before if spec.order == "overlap" else issued_before
