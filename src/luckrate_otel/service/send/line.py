"""The waiting items of one signal: what may be joined with what, and in which order they go."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import merge

from luckrate_otel.service.send.batch import Batch, Item, Place


@dataclass(slots=True)
class Line:
    """items: oldest first. behind: those that go only when no other waits, alone. joins: may items share a request."""

    joins: bool
    items: deque[Item] = field(default_factory=deque)
    behind: deque[Item] = field(default_factory=deque)
    size_bytes: int = 0

    def append(self, item: Item) -> None:
        self.items.append(item)
        self.size_bytes += len(item.body)

    def first(self) -> Item | None:
        return self.items[0] if self.items else self.behind[0] if self.behind else None

    def head(self) -> Place:
        first = self.first()
        assert first is not None
        return first.place

    def ready(self, before_ns: int, limit: int, flush: bool) -> bool:
        first = self.first()
        return first is not None and (flush or self.size_bytes >= limit or first.added_ns <= before_ns)

    def pop(self, limit: int) -> Batch:
        taken = [(self.items or self.behind).popleft()]
        size = len(taken[0].body)
        alone = not self.joins or taken[0].late
        while not alone and self.items and size + len(self.items[0].body) <= limit:
            taken.append(self.items.popleft())
            size += len(taken[-1].body)
        self.size_bytes -= size
        return Batch(tuple(taken))

    def put_back(self, items: tuple[Item, ...]) -> None:
        self.size_bytes += sum(len(item.body) for item in items)
        if items[0].late:
            self.behind = deque(merge(self.behind, items, key=lambda item: item.place))
        elif not self.items or items[-1].place < self.items[0].place:
            self.items.extendleft(reversed(items))
        else:  # several sends were out, and a younger one came back first
            self.items = deque(merge(items, self.items, key=lambda item: item.place))
