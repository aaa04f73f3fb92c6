"""Parent links of spans that came before anything of an agent did.

A gateway's span may be exported before the spans of the agent it called; without its parent link the agent's run would
never be known to be whole. Nobody knows yet which traces will matter, so those of the last spans are remembered.
"""

from __future__ import annotations

from typing import Final

from luckrate_otel.otlp.shallow import link_of

Link = tuple[bytes, bytes, bytes]

# Spans in a generation; there are two, so that between one and two of it are remembered, in some 15 to 30 MB: half a
# minute of 4,000 spans a second, or half a second of the most that one process can forward.
GENERATION: Final = 131_072

# Bytes of an encoded span that hold its three ids when they come first, as all encoders write them.
_IDS: Final = 38


class Recent:
    """Links by trace, of the last spans that were not read. Costs 0.3 µs a span, so the ids are not taken apart yet."""

    __slots__ = ("_count", "_new", "_old")

    def __init__(self) -> None:
        self._new: dict[bytes, list[bytes]] = {}
        self._old: dict[bytes, list[bytes]] = {}
        self._count = 0

    def put(self, trace_id: bytes, span: bytes) -> None:
        """Remember an encoded span of a trace that is not open."""
        known = self._new.get(trace_id)
        # A span without parent there keeps its bytes whole, and can still be parsed; most are children.
        ids = span[:_IDS] if span[28:30] == b'"\x08' else span
        if known is None:
            self._new[trace_id] = [ids]
        else:
            known.append(ids)
        self._count += 1
        if self._count >= GENERATION:
            self._old, self._new, self._count = self._new, {}, 0

    def take(self, trace_id: bytes) -> list[Link]:
        """The links of a trace that opens now; they are forgotten here."""
        found = self._old.pop(trace_id, []) + self._new.pop(trace_id, [])
        return [link_of(span) for span in found]
