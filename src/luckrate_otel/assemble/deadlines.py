"""The next deadline of each trace, in a heap. Nothing here knows what time it is."""

from __future__ import annotations

from heapq import heappop, heappush

from luckrate_otel.assemble.trace import NEVER_NS, Trace


class Deadlines:
    """Traces by deadline. Cost: O(log traces) for each change.

    A changed deadline gets a new place and the old one is skipped when its turn comes, as in Refinery and in asyncio;
    the heap is rebuilt when most of it is such places, so that it stays in proportion to the open traces.
    """

    __slots__ = ("_heap", "_live", "_order")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Trace]] = []
        self._order = 0
        self._live = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, trace: Trace, due_ns: int) -> None:
        """Set the deadline of a trace; NEVER_NS takes it out."""
        if due_ns == trace.queued_ns:
            return
        self._live += (due_ns != NEVER_NS) - (trace.queued_ns != NEVER_NS)
        trace.queued_ns = due_ns
        if due_ns != NEVER_NS:
            self._order += 1
            heappush(self._heap, (due_ns, self._order, trace))
        if len(self._heap) > 2 * self._live + 8:
            self._rebuild()

    def _rebuild(self) -> None:
        latest: dict[str, tuple[int, int, Trace]] = {}
        for place in self._heap:
            if place[0] == place[2].queued_ns:
                latest[place[2].trace_id] = place
        self._heap = sorted(latest.values(), key=lambda place: place[:2])

    def next_ns(self) -> int | None:
        while self._heap and self._heap[0][0] != self._heap[0][2].queued_ns:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ns: int) -> Trace | None:
        """The trace with the oldest deadline, taken out, if it has passed."""
        due_ns = self.next_ns()
        if due_ns is None or due_ns > now_ns:
            return None
        trace = heappop(self._heap)[2]
        trace.queued_ns = NEVER_NS
        self._live -= 1
        return trace
