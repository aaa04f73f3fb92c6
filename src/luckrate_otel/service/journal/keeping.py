"""What the journal must be told: of a request before it is acknowledged, of verdicts before they are sent.

Knows which traces have rows in the journal. It decides when they go: when nothing of the trace waits for a verdict and
nothing of it is on its way to the disk.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from luckrate_otel.assemble import Assembler, Closed, Effect, Final
from luckrate_otel.conversation import Begun
from luckrate_otel.service.journal.journal import Journal
from luckrate_otel.service.journal.packing import Packer
from luckrate_otel.service.journal.pieces import forwarded_by, left_by, pieces_of, trace_of
from luckrate_otel.service.journal.rows import Body, Change, Judged, Left, Piece, Talk
from luckrate_otel.service.reading import Reading
from luckrate_otel.service.signals import Signal

# An encoded request with its count, and the destinations that it is for.
Sending = tuple[Signal, bytes, int, tuple[str, ...]]

# Rounds of verdicts between two looks at all traces that have rows, for those that closed without leaving anything.
_SWEEP = 25

# Rows of conversations between two looks at whose time is over.
_TALKS = 4096


@dataclass(frozen=True, slots=True)
class _WithComing:
    """Raw trace ids. A view: to copy what is coming would cost each of a thousand requests at once all the others."""

    opened: Container[bytes]
    coming: Container[str]

    def __contains__(self, trace_id: object) -> bool:
        return trace_id in self.opened or (isinstance(trace_id, bytes) and trace_id.hex() in self.coming)


@dataclass(frozen=True, slots=True)
class _Run:
    """A closed run. known: what it is known to take out of its trace, besides what `closed` tells, once its verdict is
    spoken; to find that out means a look at all its bytes, and most traces go whole."""

    run_id: str
    revision: int
    known: tuple[Left, ...] = ()
    closed: Closed | None = None

    @property
    def trace_id(self) -> str:
        return self.run_id.partition(":")[0]

    def left(self) -> Left:
        row = left_by(self.closed) if self.closed is not None else None
        return _join([*self.known, *([row] if row is not None else [])])


class Keeping:
    """late_window_ns: how long after a verdict something late may come. conversation_age_ns: how long a run may ask for
    what was said in its conversation. awaits: whether the verdict on a closed run is not spoken yet, because an
    evaluation may still come; its trace keeps its rows until then, so that a crash in between costs nothing but the
    time waited."""

    def __init__(
        self,
        journal: Journal,
        assembler: Assembler,
        late_window_ns: int,
        conversation_age_ns: int,
        awaits: Callable[[str], bool] = lambda _run_id: False,
    ) -> None:
        self.journal = journal
        self._assembler = assembler
        self.late_window_ns = late_window_ns
        self._conversation_age_ns = conversation_age_ns
        self._awaits = awaits
        self._unspoken: dict[str, dict[str, _Run]] = {}  # by trace, then by run
        self._kept: set[str] = set()
        self._coming: Counter[str] = Counter()
        self._rounds = 0
        self._talks = 0  # written since those whose time is over last went
        self._packer = Packer()

    def with_coming(self, opened: Container[bytes]) -> Container[bytes]:
        """The open traces, and those whose first spans are on their way to the disk."""
        return _WithComing(opened, self._coming) if self._coming else opened

    @property
    def traces(self) -> int:
        """Traces that have rows."""
        return len(self._kept)

    # ---- requests --------------------------------------------------------------------------------

    def admit(self, signal: Signal, reading: Reading, destinations: tuple[str, ...]) -> Change:
        """The rows of a request. Raises Busy or TooLarge if they do not fit."""
        pieces = pieces_of(signal, reading, self._packer.pack)
        bodies = self._bodies([(signal, reading.passed, reading.passed_count, destinations)])
        change = Change(bodies, pieces)
        self.journal.check(change.size)
        return change

    def write(self, change: Change, told: Callable[[bool], None]) -> asyncio.Future[None]:
        """Begin to write a request's rows. told: called with whether they are on disk, see Journal.write."""
        traces = [piece.trace_id for piece in change.pieces]
        self._coming.update(traces)

        def arrived(written: bool) -> None:
            for trace_id in traces:
                self._coming[trace_id] -= 1
                if not self._coming[trace_id]:
                    del self._coming[trace_id]
            if written:
                self._kept.update(traces)
            told(written)

        return self.journal.write(change, arrived)

    # ---- verdicts --------------------------------------------------------------------------------

    def hand_over(
        self,
        effects: Sequence[Effect],
        sendings: Iterable[Sending],
        begun: Iterable[Begun],
        wall_ns: int,
        then: Callable[[Change], None],
        *,
        forget: bool,
    ) -> asyncio.Future[None]:
        """Verdicts and what they send, in one step. begun: the conversations of their runs. forget: whether final
        verdicts go; not at shutdown, when they are final only for want of a process, and late spans still count as such
        after it."""
        change = self._change(effects, self._bodies(sendings), begun, wall_ns, forget=forget)
        return self.journal.write(change, lambda _: then(change), owed=True)

    def forward(
        self, left: Sequence[Left], sendings: Iterable[Sending], then: Callable[[Change], None]
    ) -> asyncio.Future[None]:
        """Hand over spans that are not judged."""
        change = Change(bodies=self._bodies(sendings), left=left)
        return self.journal.write(change, lambda _: then(change), owed=True)

    def sweep(self, wall_ns: int) -> None:
        """Let go of traces that closed without leaving anything to forward, and of conversations that are over."""
        self._rounds += 1
        if self._talks > _TALKS:
            self._talks = 0
            self.journal.note(Change(now_ns=wall_ns))
        if self._rounds % _SWEEP == 0:
            settled = [trace_id for trace_id in self._kept if self._is_settled(trace_id)]
            if settled:
                self._kept.difference_update(settled)
                self.journal.note(Change(settled=settled))

    def restore(self, pieces: Iterable[Piece]) -> None:
        """Know the traces that have rows since an earlier process."""
        self._kept.update(piece.trace_id for piece in pieces)

    def _change(
        self, effects: Sequence[Effect], bodies: list[Body], begun: Iterable[Begun], wall_ns: int, *, forget: bool
    ) -> Change:
        closed = [effect for effect in effects if isinstance(effect, Closed)]
        spoken = self._spoken(closed)
        seen = {trace_of(effect) for effect in effects} | {run.trace_id for run in spoken}
        traces = {trace_id for trace_id in seen if trace_id in self._kept or trace_id in self._coming}
        settled = [trace_id for trace_id in traces if self._is_settled(trace_id)]
        self._kept.difference_update(settled)
        partly = traces.difference(settled)
        left = [run.left() for run in spoken if run.trace_id in partly]
        for effect in effects:
            if trace_of(effect) in partly and (row := self._leaving(effect)) is not None:
                left.append(row)
        until_ns = wall_ns + self.late_window_ns
        judged = {run.run_id: Judged(run.run_id, run.revision, until_ns) for run in spoken}
        replaced = [run_id for e in closed for run_id in e.supersedes if run_id not in judged]
        final = [effect.run_id for effect in effects if isinstance(effect, Final)] if forget else []
        talks = [Talk(one, wall_ns + self._conversation_age_ns) for one in begun]
        self._talks += len(talks)
        return Change(
            bodies=bodies,
            left=_joined(left),
            judged=list(judged.values()),
            talks=talks,
            settled=settled,
            final=[*replaced, *final],
        )

    def _spoken(self, closed: Iterable[Closed]) -> list[_Run]:
        """The runs whose verdict is spoken in this round: of those that closed, and of those that waited."""
        spoken: list[_Run] = []
        for effect in closed:
            before = [known for run_id in effect.supersedes if (known := self._forget(run_id)) is not None]
            run = _Run(effect.run.run_id, effect.revision, tuple(known.left() for known in before), effect)
            if self._awaits(run.run_id):
                waiting = _Run(run.run_id, run.revision, (run.left(),))
                self._unspoken.setdefault(run.trace_id, {})[run.run_id] = waiting
            else:
                spoken.append(run)
        waited = [run_id for runs in self._unspoken.values() for run_id in runs if not self._awaits(run_id)]
        return [*spoken, *(late for run_id in waited if (late := self._forget(run_id)) is not None)]

    def _leaving(self, effect: Effect) -> Left | None:
        """What of an effect has left its trace, but for runs whose verdict is spoken."""
        if not isinstance(effect, Closed):
            return left_by(effect)
        waits = effect.run.run_id in self._unspoken.get(trace_of(effect), {})
        return forwarded_by(effect) if waits else None

    def _forget(self, run_id: str) -> _Run | None:
        trace_id = run_id.partition(":")[0]
        runs = self._unspoken.get(trace_id, {})
        run = runs.pop(run_id, None)
        if run is not None and not runs:
            del self._unspoken[trace_id]
        return run

    def _is_settled(self, trace_id: str) -> bool:
        return not (trace_id in self._coming or trace_id in self._unspoken or self._assembler.waiting(trace_id))

    def _bodies(self, sendings: Iterable[Sending]) -> list[Body]:
        return [
            Body(self.journal.next_number(), signal, count, self._packer.pack(body), destinations)
            for signal, body, count, destinations in sendings
            if body and destinations
        ]


def _joined(left: Iterable[Left]) -> list[Left]:
    """One row for each trace of a round."""
    by_trace: dict[str, list[Left]] = {}
    for row in left:
        by_trace.setdefault(row.trace_id, []).append(row)
    return [_join(rows) for rows in by_trace.values()]


def _join(rows: Sequence[Left]) -> Left:
    """Rows of one trace as one."""
    if len(rows) == 1:
        return rows[0]
    return Left(
        rows[0].trace_id,
        b"".join(row.forwarded for row in rows),
        b"".join(row.judged for row in rows),
        b"".join(row.span_ids for row in rows),
    )
