"""Takes requests, and owns the one decision to acknowledge them.

A request is acknowledged when every destination's queue took its passed part and the assembler its held part. Nothing
in between awaits, so a request is taken whole or not at all. Until there is a journal both live in memory: what a kill
of this process then loses is what was held or queued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from luckrate_otel.assemble import Assembler, Effect
from luckrate_otel.facts import CloseReason
from luckrate_otel.otlp import encode
from luckrate_otel.service.answers import Accepted
from luckrate_otel.service.events import event_request
from luckrate_otel.service.judge import Judge, Sendings
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.meter import Meter
from luckrate_otel.service.reading import Reader, Reading
from luckrate_otel.service.signals import Signal
from luckrate_otel.service.verdict_span import verdict_request

Clock = Callable[[], int]


class Outlet(Protocol):
    """Where bodies go: the sender of one destination."""

    signals: frozenset[Signal]

    def check(self, size: int) -> None:
        """Raise Busy or TooLarge if a body of this size would not be taken now."""

    def put(self, signal: Signal, body: bytes, count: int, *, owed: bool = False) -> None:
        """Queue a body. owed: it was acknowledged before, so it is taken beyond the bound too."""


class Intake:
    """What receivers call, and what the clock of the service drives.

    tap: a copy was sent to us; nothing of it is forwarded, only what is ours leaves. verdict_spans: one a run is ours.
    clock: nanoseconds, monotonic. wall: nanoseconds since the epoch.
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
        self._tap = tap
        self._verdict_spans = verdict_spans

    async def accept(self, signal: Signal, body: bytes) -> Accepted:
        """Take one request whole, or raise Rejected, TooLarge or Busy having taken nothing of it."""
        match signal:
            case Signal.TRACES:
                reading = self._reader.traces(body, self._assembler.open_traces)
            case Signal.LOGS:
                reading = self._reader.logs(body)
            case Signal.METRICS | Signal.PROFILES:
                reading = self._reader.unread(body)
        self._acknowledge(signal, reading)
        self._assemble(reading)
        return Accepted()

    def tick(self) -> None:
        """Judge and release what is due. Costs next to nothing when nothing is."""
        self._settle(self._assembler.take(self._clock()))

    def finish(self) -> None:
        """Judge all that is open and hand it to the queues; nothing may be accepted afterwards."""
        self._settle(self._assembler.drain(CloseReason.SHUTDOWN, self._clock()))

    def _acknowledge(self, signal: Signal, reading: Reading) -> None:
        if reading.passed and not self._tap:
            outlets = [outlet for outlet in self._outlets if signal in outlet.signals]
            for outlet in outlets:  # ask all before giving to any: a half-taken request would be sent twice
                outlet.check(len(reading.passed))
            for outlet in outlets:
                outlet.put(signal, reading.passed, reading.passed_count)
            if not outlets:
                self.ledger.unwanted[signal] += reading.passed_count
        self.ledger.received[signal] += reading.count
        self.ledger.handed_over[signal] += reading.passed_count
        self.ledger.regraded += reading.regraded
        if reading.failed:
            self.ledger.ungraded["read"] += reading.failed

    def _assemble(self, reading: Reading) -> None:
        now_ns = self._clock()
        for arrival in reading.arrivals:
            payload = arrival.payload
            size = len(payload.wire) if payload else 0
            self._assembler.add(arrival.facts, now_ns, payload=payload, size=size)
        for trace_id, span_id, parent_id in reading.links:  # after the facts, which open their traces
            self._assembler.link(trace_id.hex(), span_id.hex(), parent_id.hex(), now_ns)

    def _settle(self, effects: Iterable[Effect]) -> None:
        effects = tuple(effects)
        wall_ns = self._wall()
        if not effects and not self._judge.is_due(wall_ns):
            return
        out = self._judge.settle(effects, wall_ns)
        self._forward(out)
        self._tell(out, wall_ns)
        self.ledger.graded += out.graded
        self.ledger.ungraded.update(out.ungraded)
        for point, trace_id, span_id in out.points:  # after the hand-over: a crash may undercount, never overcount
            self._meter.record(point, trace_id, span_id)

    def _forward(self, out: Sendings) -> None:
        count = len(out.spans)
        if not count:
            return
        self.ledger.handed_over[Signal.TRACES] += count
        if not self._tap:
            self._put(Signal.TRACES, encode.traces_request(out.spans), count)

    def _tell(self, out: Sendings, wall_ns: int) -> None:
        """What is ours, log events and verdict spans: it comes on top of what was received."""
        if not out.events:
            return
        self._make(Signal.LOGS, event_request(out.events, wall_ns), len(out.events))
        if self._tap and self._verdict_spans:
            self._make(Signal.TRACES, verdict_request(out.events, wall_ns), len(out.events))

    def _make(self, signal: Signal, body: bytes, count: int) -> None:
        self.ledger.made[signal] += count
        self._put(signal, body, count)

    def _put(self, signal: Signal, body: bytes, count: int) -> None:
        outlets = [outlet for outlet in self._outlets if signal in outlet.signals]
        for outlet in outlets:
            outlet.put(signal, body, count, owed=True)
        if not outlets:
            self.ledger.unwanted[signal] += count
