"""Parent links of spans that came before anything of an agent did.

A gateway's span may be exported before the spans of the agent it called; without its parent link the agent's run would
never be known to be whole. Nobody knows yet which traces will matter, so those of the last spans are remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from luckrate_otel.errors import Rejected
from luckrate_otel.otlp.shallow import link_of, trace_id_at

Link = tuple[bytes, bytes, bytes]

# Spans in a generation; there are two, so that between one and two of it are remembered, in some 15 to 30 MB: half a
# minute of 4,000 spans a second, or a third of a second of the most that one process can forward.
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
        """Remember encoded spans of traces that are not open, each at least as far as `shallow.heads` keeps it."""
        self._new.put(heads)
        if self._new.count >= GENERATION:
            self._old, self._new = self._new, _Generation()

    def take(self, trace_id: bytes) -> list[Link]:
        """The links of a trace that opens now, oldest first; they are forgotten here."""
        return [link_of(head) for head in self._old.take(trace_id) + self._new.take(trace_id)]


class _Generation:
    __slots__ = ("_by_trace", "_unsorted", "count")

    def __init__(self) -> None:
        self.count = 0
        self._unsorted: list[bytes] = []
        self._by_trace: dict[bytes, list[bytes]] = {}

    def put(self, heads: Sequence[bytes]) -> None:
        self._unsorted += heads
        self.count += len(heads)

    def take(self, trace_id: bytes) -> list[bytes]:
        if self._unsorted:
            self._sort()
        return self._by_trace.pop(trace_id, [])

    def _sort(self) -> None:
        for head in self._unsorted:
            try:
                self._by_trace.setdefault(trace_id_at(head), []).append(head)
            except Rejected:  # bytes that are no span pass like any other; the next hop may know better
                continue
        self._unsorted = []
