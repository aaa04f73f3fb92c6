"""Which calls precede one that now comes: calls enter as they are issued, and count once they have ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush

from luckrate_otel.rules.lens import Hit
from luckrate_otel.rules.order import Order
from luckrate_otel.rules.same import About
from luckrate_otel.rules.within import Within


class Earlier:
    """Calls about one thing. Fed in order of issue; every call enters and leaves a heap once: O(n log n) per run."""

    __slots__ = ("_done", "_going", "_latest", "_order")

    def __init__(self, order: Order) -> None:
        self._order = order
        self._going: list[tuple[float, int]] = []
        self._done: list[int] = []
        self._latest: int | None = None

    def add(self, step: int) -> None:
        heappush(self._going, (self._order.ended[step], step))

    def latest(self, step: int) -> int | None:
        """The last issued of those that precede this step."""
        self._settle(step)
        return self._latest

    def take_oldest(self, step: int, within: Within) -> int | None:
        """The first issued of those that precede this step, are near enough and were not taken yet."""
        self._settle(step)
        while self._done:
            oldest = heappop(self._done)
            if within.holds(self._order, oldest, step):
                return oldest
        return None

    def _settle(self, step: int) -> None:
        while self._going and self._going[0][0] <= self._order.issued[step]:
            _, ended = heappop(self._going)
            heappush(self._done, ended)
            self._latest = ended if self._latest is None else max(ended, self._latest)


class ByAbout:
    """Earlier calls by what they are about, those that may be about anything beside them. Asked in order of steps."""

    __slots__ = ("_all", "_by", "_coming", "_order", "_unknown")

    def __init__(self, order: Order, hits: Iterable[Hit]) -> None:
        self._order = order
        self._coming = deque(hits)
        self._by: dict[About, Earlier] = {}
        self._unknown = Earlier(order)
        self._all = Earlier(order)

    def latest(self, step: int, about: About | None, *, accusing: bool = False) -> int | None:
        """The last issued that precedes this step and is, or may be, about the same.

        accusing: the earlier call is what accuses, so that one which may be about anything meets every other;
        else it is cleared by none.
        """
        self._enter(step)
        if about is None:
            return self._all.latest(step) if accusing else None
        own = self._by[about].latest(step) if about in self._by else None
        unknown = self._unknown.latest(step)
        return own if unknown is None else unknown if own is None else max(own, unknown)

    def take_oldest(self, step: int, about: About | None, within: Within) -> int | None:
        """The first issued that was not taken yet and is near enough.

        One that may be about anything is never used up: it may have been about this as well.
        """
        self._enter(step)
        if about is None:
            return None
        own = self._by[about].take_oldest(step, within) if about in self._by else None
        if own is not None:
            return own
        unknown = self._unknown.latest(step)
        return unknown if unknown is not None and within.holds(self._order, unknown, step) else None

    def _enter(self, step: int) -> None:
        while self._coming and self._coming[0].step < step:
            hit = self._coming.popleft()
            self._all.add(hit.step)
            own = self._unknown if hit.about is None else self._by.setdefault(hit.about, Earlier(self._order))
            own.add(hit.step)
