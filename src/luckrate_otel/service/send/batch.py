"""Encoded requests on their way out: one, and several that travel together."""

from __future__ import annotations

from dataclasses import dataclass

from luckrate_otel.service.signals import Signal

# Charged for each item beside its body (object, deque slot, bytes header), so that a flood of tiny ones is bounded too.
ITEM_BYTES = 256

# late, number, part of an item.
Place = tuple[int, int, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Item:
    """One body that waits. number: order of arrival. count: spans, log records or requests in it.

    part: () for a whole body; pieces of one that was split keep its number and are told apart by this path.
    late: how often it was put behind all others.
    """

    number: int
    signal: Signal
    body: bytes
    count: int
    added_ns: int
    part: tuple[int, ...] = ()
    late: int = 0

    @property
    def place(self) -> Place:
        """Order in the queue, and identity while it is out."""
        return self.late, self.number, self.part

    @property
    def cost(self) -> int:
        return len(self.body) + ITEM_BYTES


@dataclass(frozen=True, slots=True)
class Batch:
    """Items that travel in one request, oldest first. apart: pieces of a refused batch, not to be joined again."""

    items: tuple[Item, ...]
    apart: bool = False

    @property
    def signal(self) -> Signal:
        return self.items[0].signal

    @property
    def body(self) -> bytes:
        return self.items[0].body if len(self.items) == 1 else b"".join(item.body for item in self.items)

    @property
    def count(self) -> int:
        return sum(item.count for item in self.items)

    def halves(self) -> tuple[Batch, Batch] | None:
        """Two batches of its items, to be sent apart; None if there is only one."""
        middle = len(self.items) // 2
        if not middle:
            return None
        return Batch(self.items[:middle], apart=True), Batch(self.items[middle:], apart=True)
