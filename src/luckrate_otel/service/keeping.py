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
from luckrate_otel.service.journal import Journal
from luckrate_otel.service.journal_rows import Body, Change, Judged, Left, Piece
from luckrate_otel.service.packing import Packer
from luckrate_otel.service.pieces import left_by, pieces_of, trace_of
from luckrate_otel.service.reading import Reading
from luckrate_otel.service.signals import Signal

# An encoded request with its count, and the destinations that it is for.
Sending = tuple[Signal, bytes, int, tuple[str, ...]]

# Rounds of verdicts between two looks at all traces that have rows, for those that closed without leaving anything.
_SWEEP = 25


@dataclass(frozen=True, slots=True)
class _Either:
    one: Container[bytes]
    other: Container[bytes]

    def __contains__(self, trace_id: object) -> bool:
        return trace_id in self.other or trace_id in self.one


class Keeping:
    """late_window_ns: how long after a verdict something late may come."""

    def __init__(self, journal: Journal, assembler: Assembler, late_window_ns: int) -> None:
        self.journal = journal
        self._assembler = assembler
        self.late_window_ns = late_window_ns
        self._kept: set[str] = set()
        self._coming: Counter[str] = Counter()
        self._rounds = 0
        self._packer = Packer()

    def with_coming(self, opened: Container[bytes]) -> Container[bytes]:
        """The open traces, and those whose first spans are on their way to the disk."""
        return _Either(opened, {bytes.fromhex(trace_id) for trace_id in self._coming}) if self._coming else opened

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

    def write(self, change: Change, then: Callable[[Change], None]) -> asyncio.Future[None]:
        """Begin to write a request's rows. `then` is called when they are on disk, in the order of the calls, before
        the future is seen done and whether or not anybody still waits for it."""
        self._coming.update(piece.trace_id for piece in change.pieces)

        def arrived(done: asyncio.Future[None]) -> None:
            for piece in change.pieces:
                self._coming[piece.trace_id] -= 1
                if not self._coming[piece.trace_id]:
                    del self._coming[piece.trace_id]
            if done.exception() is None:
                self._kept.update(piece.trace_id for piece in change.pieces)
                then(change)

        return self._begin(change, arrived, owed=False)

    # ---- verdicts --------------------------------------------------------------------------------

    def hand_over(
        self,
        effects: Sequence[Effect],
        sendings: Iterable[Sending],
        wall_ns: int,
        then: Callable[[Change], None],
        *,
        forget: bool,
    ) -> asyncio.Future[None]:
        """Verdicts and what they send, in one step. forget: whether final verdicts go; not at shutdown, when they are
        final only for want of a process, and late spans still count as such after it."""
        change = self._change(effects, self._bodies(sendings), wall_ns, forget=forget)
        return self._begin(change, lambda _: then(change), owed=True)

    def forward(
        self, left: Sequence[Left], sendings: Iterable[Sending], then: Callable[[Change], None]
    ) -> asyncio.Future[None]:
        """Hand over spans that are not judged."""
        change = Change(bodies=self._bodies(sendings), left=left)
        return self._begin(change, lambda _: then(change), owed=True)

    def sweep(self) -> None:
        """Let go of traces that closed without leaving anything to forward."""
        self._rounds += 1
        if self._rounds % _SWEEP == 0:
            settled = [trace_id for trace_id in self._kept if self._is_settled(trace_id)]
            if settled:
                self._kept.difference_update(settled)
                self.journal.note(Change(settled=settled))

    def restore(self, pieces: Iterable[Piece]) -> None:
        """Know the traces that have rows since an earlier process."""
        self._kept.update(piece.trace_id for piece in pieces)

    def _change(self, effects: Sequence[Effect], bodies: list[Body], wall_ns: int, *, forget: bool) -> Change:
        traces = {trace_of(effect) for effect in effects} & (self._kept | set(self._coming))
        settled = [trace_id for trace_id in traces if self._is_settled(trace_id)]
        self._kept.difference_update(settled)
        partly = traces.difference(settled)
        left = [row for effect in effects if trace_of(effect) in partly and (row := left_by(effect)) is not None]
        until_ns = wall_ns + self.late_window_ns
        judged = {e.run.run_id: Judged(e.run.run_id, e.revision, until_ns) for e in effects if isinstance(e, Closed)}
        replaced = [run_id for e in effects if isinstance(e, Closed) for run_id in e.supersedes if run_id not in judged]
        final = [effect.run_id for effect in effects if isinstance(effect, Final)] if forget else []
        return Change(
            bodies=bodies,
            left=_joined(left),
            judged=list(judged.values()),
            settled=settled,
            final=[*replaced, *final],
        )

    def _is_settled(self, trace_id: str) -> bool:
        return trace_id not in self._coming and not self._assembler.waiting(trace_id)

    def _bodies(self, sendings: Iterable[Sending]) -> list[Body]:
        return [
            Body(self.journal.next_number(), signal, count, self._packer.pack(body), destinations)
            for signal, body, count, destinations in sendings
            if body and destinations
        ]

    def _begin(
        self, change: Change, arrived: Callable[[asyncio.Future[None]], None], *, owed: bool
    ) -> asyncio.Future[None]:
        done = self.journal.write(change, owed=owed)
        done.add_done_callback(arrived)
        return done


def _joined(left: Iterable[Left]) -> list[Left]:
    """One row for each trace of a round."""
    joined: dict[str, Left] = {}
    for row in left:
        known = joined.get(row.trace_id, Left(row.trace_id))
        joined[row.trace_id] = Left(
            row.trace_id,
            known.forwarded + row.forwarded,
            known.judged + row.judged,
            known.span_ids + row.span_ids,
        )
    return list(joined.values())
