"""What of a request must survive a crash, and what of it still counts when it is read again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from luckrate_otel.assemble import Closed, Effect, Held, Release, ReleaseReason
from luckrate_otel.facts import Facts
from luckrate_otel.otlp.encode import traces_request
from luckrate_otel.otlp.shallow import NO_PARENT, Envelope, link_of, shallow
from luckrate_otel.service.journal.rows import Left, Piece
from luckrate_otel.service.reading import Arrival, Payload, Reader, Reading
from luckrate_otel.service.signals import Signal

_DIGEST = 16
_ID = 8


def pieces_of(signal: Signal, reading: Reading, pack: Callable[[bytes], bytes] = bytes) -> list[Piece]:
    """The parts of a request that wait for a verdict, one for each trace. pack: see packing.py."""
    traces: dict[str, _Parts] = {}
    for arrival in reading.arrivals:
        trace_id, payload, source = arrival.facts.head.trace_id, arrival.payload, arrival.source
        if payload is None and not trace_id:
            continue  # a log record outside every trace: it is joined with nothing, and has left
        parts = traces.get(trace_id)
        if parts is None:
            parts = traces[trace_id] = _Parts()
        if payload is not None:
            parts.held.append((payload.envelope, payload.wire))
        elif source is not None:
            parts.read.append((source.envelope, source.wire))
    for trace, span_id, parent_id in reading.links:
        traces.setdefault(trace.hex(), _Parts()).links += span_id + (parent_id or NO_PARENT)
    return [
        # Both signals share their layout, so one encoder serves them.
        Piece(trace_id, signal, pack(traces_request(parts.held)), pack(traces_request(parts.read)), bytes(parts.links))
        for trace_id, parts in traces.items()
    ]


@dataclass(slots=True)
class _Parts:
    held: list[tuple[Envelope, bytes]] = field(default_factory=list)
    read: list[tuple[Envelope, bytes]] = field(default_factory=list)
    links: bytearray = field(default_factory=bytearray)


def trace_of(effect: Effect) -> str:
    """The trace that an effect is about."""
    if isinstance(effect, Release):
        return effect.trace_id
    return (effect.run.run_id if isinstance(effect, Closed) else effect.run_id).partition(":")[0]


def forwarded_by(closed: Closed) -> Left:
    """What a run takes out of its trace while its verdict is unspoken: its spans have left, their facts are needed."""
    return Left(trace_of(closed), forwarded=_digests(closed.held))


def left_by(effect: Effect) -> Left | None:
    """What an effect takes out of a trace of which something else still waits; None if it takes nothing for good."""
    if isinstance(effect, Closed):
        return Left(trace_of(effect), judged=_digests(effect.held), span_ids=_span_ids(effect.run.facts))
    if not isinstance(effect, Release) or effect.reason is ReleaseReason.DUPLICATE:
        return None  # what the duplicate repeats still waits
    if effect.reason is ReleaseReason.RELEASE_AFTER:
        return Left(effect.trace_id, forwarded=_digests(effect.held))
    return Left(effect.trace_id, judged=_digests(effect.held))


def _digests(held: Iterable[Held]) -> bytes:
    return b"".join(digest_of(h.payload.wire) for h in held if isinstance(h.payload, Payload))


def digest_of(wire: bytes) -> bytes:
    return blake2b(wire, digest_size=_DIGEST).digest()


def _span_ids(facts: Iterable[Facts]) -> bytes:
    return b"".join({bytes.fromhex(fact.head.span_id) for fact in facts if len(fact.head.span_id) == 2 * _ID})


def _cut(joined: bytes, size: int) -> set[bytes]:
    return {joined[at : at + size] for at in range(0, len(joined), size)}


@dataclass(slots=True)
class Again:
    """Reads pieces again.

    unreadable: (trace id, payload) of held spans that no adapter reads any more; they are owed to the next hop.
    """

    reader: Reader
    gone: dict[str, _Gone] = field(default_factory=dict)
    unreadable: list[tuple[str, Payload]] = field(default_factory=list)

    def note(self, left: Iterable[Left]) -> None:
        for row in left:
            gone = self.gone.setdefault(row.trace_id, _Gone())
            gone.forwarded |= _cut(row.forwarded, _DIGEST)
            gone.judged |= _cut(row.judged, _DIGEST)
            gone.span_ids |= _cut(row.span_ids, _ID)

    def read(self, piece: Piece) -> Reading:
        """The piece as a request that brings only what still counts. Raises Rejected if it is none."""
        gone = self.gone.get(piece.trace_id, _NOTHING_GONE)
        arrivals = [*self._held(piece, gone), *self._passed(piece, gone)]
        trace_id = bytes.fromhex(piece.trace_id)
        # A span without parent counts as well: it tells that the run below it is whole.
        links = [
            (trace_id, piece.links[at : at + _ID], piece.links[at + _ID : at + 2 * _ID].replace(NO_PARENT, b""))
            for at in range(0, len(piece.links), 2 * _ID)
        ]
        return Reading(sum(arrival.payload is not None for arrival in arrivals), b"", 0, arrivals, links)

    def _held(self, piece: Piece, gone: _Gone) -> Iterable[Arrival]:
        for group in shallow(piece.held):
            for wire in group.items:
                digest = digest_of(wire) if gone.forwarded or gone.judged else b""
                if digest in gone.judged:
                    continue
                forwarded = digest in gone.forwarded
                if forwarded and link_of(wire)[1] in gone.span_ids:
                    continue
                facts = self._facts(wire, group.envelope)
                payload = Payload(group.envelope, wire)
                if facts is not None:
                    yield Arrival(facts, source=payload) if forwarded else Arrival(facts, payload)
                elif not forwarded:
                    self.unreadable.append((piece.trace_id, payload))

    def _facts(self, wire: bytes, envelope: Envelope) -> Facts | None:
        try:
            return self.reader.span(wire, envelope)
        except Exception:  # noqa: BLE001 - one unreadable span must not cost the others
            return None

    def _passed(self, piece: Piece, gone: _Gone) -> Sequence[Arrival]:
        if not piece.read:
            return ()
        if piece.signal is Signal.LOGS:
            arrivals = self.reader.logs(piece.read, ()).arrivals
        else:
            read = self.reader.traces(piece.read, ()).arrivals
            arrivals = [Arrival(arrival.facts, source=arrival.source or arrival.payload) for arrival in read]
        return [a for a in arrivals if _raw(a.facts.head.span_id) not in gone.span_ids]


@dataclass(slots=True)
class _Gone:
    forwarded: set[bytes] = field(default_factory=set)
    judged: set[bytes] = field(default_factory=set)
    span_ids: set[bytes] = field(default_factory=set)


_NOTHING_GONE = _Gone()


def _raw(span_id: str) -> bytes:
    try:
        return bytes.fromhex(span_id)
    except ValueError:
        return b""
