"""Parent links of spans that came before anything of an agent did.

A gateway's span may be exported before the spans of the agent it called; without its parent link the agent's run would
never be known to be whole. Nobody knows yet which traces will matter, so those of the last spans are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from luckrate_otel.otlp.shallow import link_of

Link = tuple[bytes, bytes, bytes]

# Spans in a generation; there are two, so that between one and two of it are remembered, in some 20 MB, 75 if each
# is of another trace: half a minute of 4,000 spans a second, or a third of a second of the most that one process can
# forward.
GENERATION: Final = 131_072


class Recent:
    """Links of the last spans that were not read.

    Remembering costs next to nothing; the spans are sorted by trace when the next trace opens (some 50 ms if a whole
    generation has come since), as most are forgotten before anybody asks.
    """

    __slots__ = ("_new", "_old")

    def __init__(self) -> None:
        self._new = _Generation()
        self._old = _Generation()

    def put(self, heads: Sequence[bytes]) -> None:
        """Remember spans of traces that are not open, as `shallow.heads` gives them."""
        self._new.put(heads)
        if self._new.count >= GENERATION:
            self._old, self._new = self._new, _Generation()

    def of(self, trace_id: bytes) -> list[Link]:
        """The links of a trace that opens now, oldest first. Not forgotten: the request may be refused, and retried."""
        return [link_of(head) for head in self._old.of(trace_id) + self._new.of(trace_id)]


class _Generation:
    __slots__ = ("_by_trace", "_unsorted", "count")

    def __init__(self) -> None:
        self.count = 0
        self._unsorted: list[bytes] = []
        self._by_trace: dict[bytes, list[bytes]] = {}

    def put(self, heads: Sequence[bytes]) -> None:
        self._unsorted += heads
        self.count += len(heads)

    def of(self, trace_id: bytes) -> list[bytes]:
        if self._unsorted:
            self._sort()
        return self._by_trace.get(trace_id, [])

    def _sort(self) -> None:
        for head in self._unsorted:
            self._by_trace.setdefault(head[2:18], []).append(head)
        self._unsorted = []
