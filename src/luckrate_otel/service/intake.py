"""Takes requests, and owns the one decision to acknowledge them.

A request is acknowledged when it is in the journal, and with that in every destination's queue (its passed part) and in
the assembler (its held part). What could not be written is refused, and nothing of it is taken. Without a journal both
live in memory only: what a kill of this process then loses is what was held or queued.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

from luckrate_otel.assemble import Assembler, Effect
from luckrate_otel.errors import LuckrateError
from luckrate_otel.facts import CloseReason
from luckrate_otel.otlp import encode
from luckrate_otel.otlp.shallow import Envelope
from luckrate_otel.service.events import event_request
from luckrate_otel.service.journal.keeping import Keeping, Sending
from luckrate_otel.service.journal.kept import Kept
from luckrate_otel.service.journal.pieces import Again, digest_of
from luckrate_otel.service.journal.rows import Change, Left, Piece
from luckrate_otel.service.judge import Judge, Sendings
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.reading import Arrival, Reader, Reading
from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.send.queue import JOIN_BYTES
from luckrate_otel.service.show.meter import Meter
from luckrate_otel.service.signals import Signal
from luckrate_otel.service.verdict_span import verdict_request

_log = logging.getLogger(__name__)

Clock = Callable[[], int]

# Pieces read again between two turns of the event loop, so that a long replay does not keep the process from answering.
_TURN = 50


# Log events in one body: some 2 KB each.
EVENTS: Final = 1000


class Outlet(Protocol):
    """Where bodies go: the sender of one destination."""

    name: str
    signals: frozenset[Signal]

    def check(self, size: int, ahead: int = 0) -> None:
        """Raise Busy or TooLarge if a body of this size would not be taken now, when `ahead` bytes are promised."""

    def put(self, signal: Signal, body: bytes, count: int, *, owed: bool = False, number: int | None = None) -> None:
        """Queue a body. owed: it was acknowledged before, so it is taken beyond the bound too. number: its row."""


class Intake:
    """What receivers call, and what the clock of the service drives.

    keeping: the journal's side, None without a journal. tap: a copy was sent to us; nothing of it is forwarded, only
    what is ours leaves. verdict_spans: one a run is ours. clock: nanoseconds, monotonic. wall: nanoseconds since the
    epoch.
    """

    def __init__(
        self,
        reader: Reader,
        outlets: Sequence[Outlet],
        assembler: Assembler,
        judge: Judge,
        meter: Meter,
        ledger: Ledger,
        *,
        clock: Clock,
        wall: Clock,
        keeping: Keeping | None = None,
        tap: bool = False,
        verdict_spans: bool = False,
    ) -> None:
        self._reader = reader
        self._outlets = tuple(outlets)
        self._assembler = assembler
        self._judge = judge
        self._meter = meter
        self.ledger = ledger
        self._clock = clock
        self._wall = wall
        self._keeping = keeping
        self._tap = tap
        self._verdict_spans = verdict_spans
        self._promised_bytes = 0  # of requests on their way to the disk, which the queues will have to take

    async def accept(self, signal: Signal, body: bytes) -> Accepted:
        """Take one request whole, or raise Rejected, TooLarge or Busy having taken nothing of it."""
        reading = self._read(signal, body)
        outlets = self._wanting(signal) if reading.passed and not self._tap else []
        for outlet in outlets:  # ask all before giving to any: a half-taken request would be sent twice
            outlet.check(len(reading.passed), self._promised_bytes)
        change = None
        if self._keeping is not None:
            change = self._keeping.admit(signal, reading, tuple(outlet.name for outlet in outlets))
        if self._keeping is not None and change:
            await self._write(self._keeping, change, signal, reading, outlets)
        else:
            self._take(signal, reading, outlets)
        return Accepted()

    def _read(self, signal: Signal, body: bytes) -> Reading:
        match signal:
            case Signal.TRACES:
                return self._reader.traces(body, self._open_traces())
            case Signal.LOGS:
                return self._reader.logs(body, self._open_traces())
            case Signal.METRICS | Signal.PROFILES:
                return self._reader.unread(body)

    def _open_traces(self) -> Container[bytes]:
        opened = self._assembler.open_traces
        return opened if self._keeping is None else self._keeping.with_coming(opened)

    def _wanting(self, signal: Signal) -> list[Outlet]:
        return [outlet for outlet in self._outlets if signal in outlet.signals]

    async def _write(
        self, keeping: Keeping, change: Change, signal: Signal, reading: Reading, outlets: Sequence[Outlet]
    ) -> None:
        """Wait until the request is on disk; it is taken then, even if its sender has gone meanwhile."""
        size = len(reading.passed)
        self._promised_bytes += size

        def told(written: bool) -> None:
            self._promised_bytes -= size
            if written:
                self._take(signal, reading, outlets, change.bodies[0].number if change.bodies else None)

        await keeping.write(change, told)

    def _take(self, signal: Signal, reading: Reading, outlets: Sequence[Outlet], number: int | None = None) -> None:
        """The request is ours from here on. Nothing in between awaits, so it is taken whole."""
        for outlet in outlets:
            outlet.put(signal, reading.passed, reading.passed_count, owed=True, number=number)
        if reading.passed and not self._tap and not outlets:
            self.ledger.unwanted[signal] += reading.passed_count
        self.ledger.received[signal] += reading.count
        self.ledger.handed_over[signal] += reading.passed_count
        self.ledger.regraded += reading.regraded
        if reading.failed:
            self.ledger.ungraded["read"] += reading.failed
        self._assemble(reading)

    def _assemble(self, reading: Reading) -> None:
        now_ns = self._clock()
        for arrival in reading.arrivals:
            payload = arrival.payload
            size = len(payload.wire) if payload else 0
            try:
                self._assembler.add(arrival.facts, now_ns, payload=payload, size=size)
            except Exception:  # noqa: BLE001 - grading never harms forwarding, and the request is ours already
                self._spare(arrival)
        for trace_id, span_id, parent_id in reading.links:  # after the facts, which open their traces
            self._assembler.link(trace_id.hex(), span_id.hex(), parent_id.hex(), now_ns)

    def _spare(self, arrival: Arrival) -> None:
        """A span that cannot be assembled goes on as it came."""
        self.ledger.ungraded["assemble"] += 1
        if arrival.payload is not None:
            self.ledger.handed_over[Signal.TRACES] += 1
            if not self._tap:
                body = encode.traces_request([(arrival.payload.envelope, arrival.payload.wire)])
                number = self._keeping.journal.next_number() if self._keeping is not None else None
                for outlet in self._wanting(Signal.TRACES):
                    outlet.put(Signal.TRACES, body, 1, owed=True, number=number)

    # ---- verdicts --------------------------------------------------------------------------------

    async def tick(self) -> bool:
        """Judge and release what is due; whether anything was. Costs next to nothing when nothing is. Not to be
        cancelled."""
        effects = self._assembler.take(self._clock())
        await self._settle(effects)
        if self._keeping is not None:
            self._keeping.sweep(self._wall())
        return bool(effects)

    async def finish(self) -> None:
        """Judge all that is open and hand it to the queues; nothing may be accepted afterwards."""
        if self._keeping is not None:
            await self._keeping.journal.flush()  # what was accepted last is still on its way
        await self._settle(self._assembler.drain(CloseReason.SHUTDOWN, self._clock()), forget=False)

    async def _settle(self, effects: Iterable[Effect], *, forget: bool = True) -> None:
        effects = tuple(effects)
        wall_ns = self._wall()
        if not effects and not self._judge.is_due(wall_ns):
            return
        out = self._judge.settle(effects, wall_ns)
        self.ledger.underway += len(out.spans)
        sendings = self._sendings(out, wall_ns)
        if self._keeping is None:
            self._send(out, sendings, None)
            return
        await self._keeping.hand_over(
            effects, sendings, out.begun, wall_ns, lambda change: self._send(out, sendings, change), forget=forget
        )

    def _sendings(self, out: Sendings, wall_ns: int) -> list[Sending]:
        """The bodies of a round: annotated spans, and what is ours on top of what was received."""
        sendings: list[Sending] = []
        if not self._tap:
            for spans in _by_size(out.spans):
                sendings.append(self._sending(Signal.TRACES, len(spans), partial(encode.traces_request, spans)))
        for at in range(0, len(out.events), EVENTS):
            events = out.events[at : at + EVENTS]
            sendings.append(self._sending(Signal.LOGS, len(events), partial(event_request, events, wall_ns)))
            if self._tap and self._verdict_spans:
                sendings.append(self._sending(Signal.TRACES, len(events), partial(verdict_request, events, wall_ns)))
        return sendings

    def _sending(self, signal: Signal, count: int, encoded: Callable[[], bytes]) -> Sending:
        """What nobody takes is counted and not encoded."""
        names = tuple(outlet.name for outlet in self._wanting(signal))
        return signal, encoded() if names else b"", count, names

    def _send(self, out: Sendings, sendings: Iterable[Sending], written: Change | None) -> None:
        numbers = iter(written.bodies) if written is not None else None
        for signal, body, count, destinations in sendings:
            number = next(numbers).number if numbers is not None and destinations else None
            for outlet in self._wanting(signal):
                outlet.put(signal, body, count, owed=True, number=number)
            if not destinations:
                self.ledger.unwanted[signal] += count
        self.ledger.underway -= len(out.spans)
        self.ledger.handed_over[Signal.TRACES] += len(out.spans)
        self.ledger.made[Signal.LOGS] += len(out.events)
        if self._tap and self._verdict_spans:
            self.ledger.made[Signal.TRACES] += len(out.events)
        self.ledger.graded += out.graded
        self.ledger.ungraded.update(out.ungraded)
        for point, trace_id, span_id in out.points:  # after the hand-over: a crash may undercount, never overcount
            self._meter.record(point, trace_id, span_id)

    # ---- after a restart -------------------------------------------------------------------------

    async def replay(self, keeping: Keeping, kept: Kept) -> None:
        """Take up what an earlier process held, oldest first. What its queues held is the senders' to restore."""
        now_ns, wall_ns = self._clock(), self._wall()
        expired = [run.run_id for run in kept.judged if run.until_ns <= wall_ns]
        keeping.journal.note(Change(final=expired))
        for run in kept.judged:
            if run.until_ns > wall_ns:
                self._assembler.restore_judged(run.run_id, run.revision, now_ns + run.until_ns - wall_ns)
        self._judge.resume(talk.begun for talk in kept.talks if talk.until_ns > wall_ns)
        keeping.restore(kept.pieces)
        again = Again(self._reader)
        again.note(kept.left)
        for number, piece in enumerate(kept.pieces):
            self._replay(again, piece)
            if number % _TURN == 0:
                await asyncio.sleep(0)
        await self._pass_on(keeping, again)

    def _replay(self, again: Again, piece: Piece) -> None:
        try:
            reading = again.read(piece)
        except (LuckrateError, ValueError) as error:
            _log.error("journal: a piece of trace %s is unreadable: %s", piece.trace_id, type(error).__name__)
            return
        self.ledger.replayed[Signal.TRACES] += reading.count
        self._assemble(reading)

    async def _pass_on(self, keeping: Keeping, again: Again) -> None:
        """Forward what can no longer be read, as it came."""
        if not again.unreadable:
            return
        spans = [(payload.envelope, payload.wire) for _, payload in again.unreadable]
        left = [Left(trace_id, judged=digest_of(payload.wire)) for trace_id, payload in again.unreadable]
        self.ledger.replayed[Signal.TRACES] += len(spans)
        self.ledger.underway += len(spans)
        out = Sendings(spans)
        encoded = partial(encode.traces_request, spans)
        sendings = [] if self._tap else [self._sending(Signal.TRACES, len(spans), encoded)]
        await keeping.forward(left, sendings, lambda change: self._send(out, sendings, change))


def _by_size(spans: Sequence[tuple[Envelope, bytes]]) -> Iterator[Sequence[tuple[Envelope, bytes]]]:
    """Spans of a round, as many at a time as make a body of the usual size; a larger span alone.

    A round may be all that was held: after a restart, or when it stops. As one body a next hop would refuse that for
    its size again and again, and one that takes it slowly would never have it within its time.
    """
    first = size = 0
    for at, (_, wire) in enumerate(spans):
        if at > first and size + len(wire) > JOIN_BYTES:
            yield spans[first:at]
            first, size = at, 0
        size += len(wire)
    if first < len(spans):
        yield spans[first:]
