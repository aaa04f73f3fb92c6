"""Verdicts that wait for an evaluation of their run's output, which comes as a log record of its own."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

# At once; beyond it the oldest wait no longer. A digest with its metric points is about 10 kB.
MAX_WAITING = 10_000


class Waiting(Generic[T]):
    """Digests by run id, each until its deadline. No timers: ask due() with the time."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._digests: dict[str, tuple[int, T]] = {}
        self._deadlines: list[tuple[int, str]] = []  # may name runs that wait no more, or until another time

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, run_id: object) -> bool:
        return run_id in self._digests

    def put(self, run_id: str, digest: T, deadline_ns: int) -> None:
        self._digests[run_id] = (deadline_ns, digest)
        heappush(self._deadlines, (deadline_ns, run_id))

    def pop(self, run_id: str) -> tuple[int, T] | None:
        """Its deadline and digest; None if it does not wait."""
        return self._digests.pop(run_id, None)

    def due(self, now_ns: int) -> list[T]:
        """Those whose time has passed or for which there is no room, by deadline. They wait no more."""
        out: list[T] = []
        while self._deadlines and (self._deadlines[0][0] <= now_ns or len(self._digests) > self._max_waiting):
            deadline_ns, run_id = heappop(self._deadlines)
            if run_id in self._digests and self._digests[run_id][0] == deadline_ns:
                out.append(self._digests.pop(run_id)[1])
        return out

    def is_due(self, now_ns: int) -> bool:
        return bool(self._deadlines) and self._deadlines[0][0] <= now_ns
