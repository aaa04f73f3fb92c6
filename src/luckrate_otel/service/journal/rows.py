"""What the journal keeps, as plain rows, and one step of changes to them.

Requests in rows are packed (packing.py) on their way to the disk, and as they were when they are read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from luckrate_otel.conversation import Begun
from luckrate_otel.service.signals import Signal

# Charged for each row beside its bytes: the record's head, its place in the tree, an index entry.
ROW_BYTES = 128


@dataclass(frozen=True, slots=True)
class Body:
    """An encoded request that waits for destinations. number: order of arrival, the item's number in their queues."""

    number: int
    signal: Signal
    count: int
    wire: bytes
    destinations: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.wire) + ROW_BYTES


@dataclass(frozen=True, slots=True)
class Piece:
    """What one request brought of one trace that still waits for its verdict.

    held: a traces request of the spans that are held. read: a request of the piece's signal, with the spans or log
    records that left at once but matter to the verdict. links: 16 bytes each, span id and parent id
    (zero: none) of unread spans.
    """

    trace_id: str
    signal: Signal
    held: bytes
    read: bytes
    links: bytes

    @property
    def size(self) -> int:
        return len(self.held) + len(self.read) + len(self.links) + ROW_BYTES


@dataclass(frozen=True, slots=True)
class Left:
    """What left a trace of which something else still waits.

    forwarded: digests of held spans that were forwarded, while their facts are needed for the verdict. judged: of those
    whose verdict is spoken. span_ids: 8 bytes each, all spans of the judged run, for those that left at once.
    """

    trace_id: str
    forwarded: bytes = b""
    judged: bytes = b""
    span_ids: bytes = b""


@dataclass(frozen=True, slots=True)
class Judged:
    """A run that has its verdict. until_ns: wall clock; so long something late may come that must not count again."""

    run_id: str
    revision: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation that had a turn: Begun, and until when (wall clock) a run may ask for what was said in it."""

    begun: Begun
    until_ns: int


@dataclass(frozen=True, slots=True)
class Change:
    """One atomic step: rows that come, then rows that go.

    delivered: (number, destination) pairs, destination "" with the last of them. settled: traces of which nothing
    waits. final: run ids that nothing late can change any more. now_ns: conversations go whose time is over by then.
    """

    bodies: Sequence[Body] = ()
    pieces: Sequence[Piece] = ()
    left: Sequence[Left] = ()
    judged: Sequence[Judged] = ()
    talks: Sequence[Talk] = ()
    delivered: Sequence[tuple[int, str]] = ()
    settled: Sequence[str] = ()
    final: Sequence[str] = ()
    now_ns: int = 0

    def __bool__(self) -> bool:
        rows = (self.bodies, self.pieces, self.left, self.judged, self.talks)
        return any(rows) or bool(self.delivered or self.settled or self.final or self.now_ns)

    def touched(self) -> set[str | int]:
        """Numbers, trace ids and run ids of its rows: two steps that share one must keep their order. Rows of
        conversations need none, as each says all that is known."""
        return {
            *(row.number for row in self.bodies),
            *(number for number, _ in self.delivered),
            *(row.trace_id for row in self.pieces),
            *(row.trace_id for row in self.left),
            *self.settled,
            *(row.run_id for row in self.judged),
            *self.final,
        }

    @property
    def going(self) -> int:
        """Rows that go, or groups of them."""
        return len(self.delivered) + len(self.settled) + len(self.final)

    @property
    def size(self) -> int:
        """Bytes of the rows that come."""
        return sum(row.size for row in self.bodies) + sum(row.size for row in self.pieces)


def merge(changes: Iterable[Change]) -> list[Change]:
    """The same steps in fewer: each costs some statements however many rows it has.

    Rows come before rows go within a step, so what comes after its trace or run went starts a new one.
    """
    merged: list[Change] = []
    run: list[Change] = []
    gone: set[str] = set()
    for change in changes:
        comes = {row.trace_id for row in change.pieces} | {row.trace_id for row in change.left}
        comes |= {row.run_id for row in change.judged}
        if not gone.isdisjoint(comes):
            merged.append(_joined(run))
            run, gone = [], set()
        run.append(change)
        gone.update(change.settled, change.final)
    return [*merged, _joined(run)] if run else merged


def _joined(changes: Sequence[Change]) -> Change:
    if len(changes) == 1:
        return changes[0]
    return Change(
        [row for change in changes for row in change.bodies],
        [row for change in changes for row in change.pieces],
        [row for change in changes for row in change.left],
        [row for change in changes for row in change.judged],
        [row for change in changes for row in change.talks],
        [pair for change in changes for pair in change.delivered],
        [trace_id for change in changes for trace_id in change.settled],
        [run_id for change in changes for run_id in change.final],
        max(change.now_ns for change in changes),
    )
