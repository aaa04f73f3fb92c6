"""What waits for one destination. A plain data structure: no clock, no I/O; sender.py drives it.

Items are encoded Export requests. Requests of one signal concatenate into one request (all but profiles), because
every field of theirs is repeated: joining a hundred small bodies is `b"".join`, and costs the next hop one call.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from luckrate_otel.errors import Busy, TooLarge
from luckrate_otel.plural import plural
from luckrate_otel.service.send.batch import ITEM_BYTES, Batch, Item, Place
from luckrate_otel.service.send.line import Line
from luckrate_otel.service.signals import ROUTES, Signal

# Bodies are joined up to this size. Well under the 4 MiB that a gRPC server takes by default, and past it the cost of a
# call no longer shows beside that of its bytes.
JOIN_BYTES = 2**21

# How long a body may wait for others to join it. As long as a person does not notice; SDKs already batch for 5 s.
LINGER_NS = 100 * 10**6

# Seconds a sender is asked to wait when the queue is full. No more, as an SDK gives up on a request after 10 s in all.
RETRY_AFTER = 1.0


# One body → two that hold the same spans, each with its count; None if it cannot be divided.
Split = Callable[[Signal, bytes], tuple[tuple[bytes, int], tuple[bytes, int]] | None]


class Store(Protocol):
    """Where queued items survive the process. They are in it before put(); here it is only told which go."""

    def delete(self, numbers: Sequence[int]) -> None: ...


class Forgetful:
    """The store of a queue that lives in memory only."""

    def delete(self, numbers: Sequence[int]) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Account:
    """put + replayed = sent + rejected + sum(dropped) + queued, in spans, log records or requests of one signal.

    rejected: reported by the next hop in partial_success. queued includes what is being sent.
    """

    put: int = 0
    replayed: int = 0
    sent: int = 0
    rejected: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    queued: int = 0


class Queue:
    """Bounded in bytes. Every item handed out by take() comes back by exactly one of sent, drop, put_back or split."""

    def __init__(
        self,
        max_bytes: int,
        *,
        store: Store | None = None,
        join_bytes: int = JOIN_BYTES,
        linger_ns: int = LINGER_NS,
    ) -> None:
        self._max_bytes = max_bytes
        self._store = store or Forgetful()
        self._join_bytes = join_bytes
        self._linger_ns = linger_ns
        self._next = 0
        self._size_bytes = 0
        self._lines = {signal: Line(ROUTES[signal].joins) for signal in Signal}
        self._apart: deque[Batch] = deque()
        self._away: dict[Place, Item] = {}
        self._pieces: dict[int, int] = {}
        self._tallies = {signal: _Tally() for signal in Signal}

    @property
    def size_bytes(self) -> int:
        """Cost of all that waits or is being sent."""
        return self._size_bytes

    def __bool__(self) -> bool:
        """True while anything waits or is being sent."""
        return self._size_bytes > 0

    def check(self, size: int, ahead: int = 0) -> None:
        """Raise what put() of a body of this size would: Busy if it does not fit now, TooLarge if it never will.

        ahead: bytes of bodies that were promised room and are not put yet.
        """
        if size + ITEM_BYTES > self._max_bytes:
            raise TooLarge(f"request of {plural(size, 'byte')} is larger than the whole queue")
        if self._size_bytes + ahead + size + ITEM_BYTES > self._max_bytes:
            raise Busy("queue is full", RETRY_AFTER)

    def put(
        self,
        signal: Signal,
        body: bytes,
        count: int,
        now_ns: int,
        *,
        owed: bool = False,
        number: int | None = None,
    ) -> Item:
        """Append one body. Busy or TooLarge: nothing was taken.

        owed: it was acknowledged before, so it is taken beyond the bound too. number: under which the store knows it.
        """
        if not owed:
            self.check(len(body))
        item = Item(self._next if number is None else number, signal, body, count, now_ns)
        self._enter(item)
        self._tallies[signal].put += count
        return item

    def restore(self, items: Iterable[Item]) -> None:
        """Put back what a store kept, oldest first; beyond the bound too, as it was taken once."""
        for item in items:
            self._enter(replace(item, added_ns=0))
            self._tallies[item.signal].replayed += item.count

    def _enter(self, item: Item) -> None:
        self._next = max(self._next, item.number + 1)
        self._size_bytes += item.cost
        self._lines[item.signal].append(item)
        self._tallies[item.signal].queued += item.count

    def full(self, signal: Signal, limit: int | None = None) -> bool:
        """True when so much waits for this signal that there is no point in waiting for more."""
        return self._lines[signal].size_bytes >= (limit or self._join_bytes)

    def take(self, now_ns: int, *, limit: int | None = None, flush: bool = False) -> Batch | None:
        """The oldest batch that is full, has lingered long enough, or any when flushing; None if there is none.

        limit: bytes to join up to, if smaller than usual; a larger single body still goes, alone.
        """
        batch = self._apart.popleft() if self._apart else self._join(now_ns, limit or self._join_bytes, flush)
        if batch is not None:
            self._away.update((item.place, item) for item in batch.items)
        return batch

    def _join(self, now_ns: int, limit: int, flush: bool) -> Batch | None:
        ready = [line for line in self._lines.values() if line.ready(now_ns - self._linger_ns, limit, flush)]
        return min(ready, key=Line.head).pop(limit) if ready else None

    def due_ns(self) -> int | None:
        """When take() will next have something by age alone; None if nothing waits."""
        if self._apart:
            return 0
        firsts = [first for line in self._lines.values() if (first := line.first()) is not None]
        return min((first.added_ns + self._linger_ns for first in firsts), default=None)

    def sent(self, batch: Batch, rejected: int = 0) -> None:
        """The next hop took the batch, but for `rejected` of its spans, log records or data points."""
        self._leave(batch)
        tally = self._tallies[batch.signal]
        refused = min(max(rejected, 0), batch.count)
        tally.rejected += refused
        tally.sent += batch.count - refused

    def drop(self, batch: Batch, reason: str) -> None:
        """The batch can never be delivered."""
        self._leave(batch)
        self._tallies[batch.signal].dropped[reason] += batch.count

    def _leave(self, batch: Batch) -> None:
        self._land(batch)
        self._size_bytes -= sum(item.cost for item in batch.items)
        self._tallies[batch.signal].queued -= batch.count
        whole = [item.number for item in batch.items if self._last_piece(item)]
        if whole:
            self._store.delete(whole)

    def _last_piece(self, item: Item) -> bool:
        """A stored row goes only with the last piece of its body: a crash in between repeats but never loses."""
        if item.part == ():
            return True
        self._pieces[item.number] -= 1
        if self._pieces[item.number]:
            return False
        del self._pieces[item.number]
        return True

    def put_back(self, batch: Batch, *, behind: bool = False) -> None:
        """Not delivered: the batch waits again, in its old place or (its items each alone) behind all others."""
        self._land(batch)
        if behind:
            self._lines[batch.signal].put_back(tuple(replace(item, late=item.late + 1) for item in batch.items))
        elif batch.apart:
            self._set_apart(batch)
        else:
            self._lines[batch.signal].put_back(batch.items)

    def split(self, batch: Batch, split: Split | None) -> bool:
        """Divide a refused batch in two that will be sent apart; False (and the batch is still out) if it cannot be.

        Between items if there are several, else inside the only one.
        """
        halves = batch.halves() or self._divide(batch.items[0], split)
        if halves is None:
            return False
        self._land(batch)
        self._set_apart(*halves)
        return True

    def _set_apart(self, *batches: Batch) -> None:
        self._apart = deque(sorted([*self._apart, *batches], key=lambda batch: batch.items[0].place))

    def _divide(self, item: Item, split: Split | None) -> tuple[Batch, Batch] | None:
        pieces = split(item.signal, item.body) if split is not None else None
        if pieces is None:
            return None
        (left, counted), (right, others) = pieces
        if counted + others != item.count:  # counted as whole requests: one counts with its first piece
            counted, others = item.count, 0
        parts = [
            replace(item, body=left, count=counted, part=(*item.part, 0)),
            replace(item, body=right, count=others, part=(*item.part, 1)),
        ]
        self._size_bytes += sum(part.cost for part in parts) - item.cost
        self._pieces[item.number] = self._pieces.get(item.number, 1) + 1
        return Batch((parts[0],), apart=True), Batch((parts[1],), apart=True)

    def _land(self, batch: Batch) -> None:
        for item in batch.items:
            del self._away[item.place]

    def remaining(self) -> tuple[Item, ...]:
        """All that was not delivered, oldest first, being sent or not."""
        waiting = [item for line in self._lines.values() for item in (*line.items, *line.behind)]
        apart = [item for batch in self._apart for item in batch.items]
        return tuple(sorted([*waiting, *apart, *self._away.values()], key=lambda item: (item.number, item.part)))

    def account(self, signal: Signal) -> Account:
        tally = self._tallies[signal]
        return Account(tally.put, tally.replayed, tally.sent, tally.rejected, dict(tally.dropped), tally.queued)


@dataclass(slots=True)
class _Tally:
    put: int = 0
    replayed: int = 0
    sent: int = 0
    rejected: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    queued: int = 0
