"""Calls that still wait for another to follow them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush

from luckrate_otel.rules.lens import Hit
from luckrate_otel.rules.order import Order
from luckrate_otel.rules.same import About

_Waiting = list[tuple[float, int]]  # (ended, step), a heap


class Unanswered:
    """Waiting calls by what they are about. Asked in order of steps; each enters and leaves a heap once."""

    __slots__ = ("_coming", "_lost", "_order", "_waiting")

    def __init__(self, order: Order, hits: Iterable[Hit]) -> None:
        self._order = order
        self._coming = deque(hits)
        self._waiting: dict[About, _Waiting] = {}
        self._lost: list[int] = []  # may be about anything, so that nothing surely answers them

    def answer(self, hit: Hit) -> list[int]:
        """The waiting calls that precede this one and are about the same; they wait no more."""
        self._enter(hit.step)
        abouts = list(self._waiting) if hit.about is None else [hit.about]
        return [step for about in abouts for step in self._ended(about, hit.step)]

    def rest(self) -> list[int]:
        """Those that nothing answered, in order."""
        self._enter(len(self._order.issued))
        return sorted([*self._lost, *(step for waiting in self._waiting.values() for _, step in waiting)])

    def _ended(self, about: About, step: int) -> list[int]:
        waiting = self._waiting.get(about, [])
        ended: list[int] = []
        while waiting and waiting[0][0] <= self._order.issued[step]:
            ended.append(heappop(waiting)[1])
        if not waiting:
            self._waiting.pop(about, None)
        return ended

    def _enter(self, step: int) -> None:
        while self._coming and self._coming[0].step < step:
            hit = self._coming.popleft()
            if hit.about is None:
                self._lost.append(hit.step)
            else:
                heappush(self._waiting.setdefault(hit.about, []), (self._order.ended[hit.step], hit.step))
