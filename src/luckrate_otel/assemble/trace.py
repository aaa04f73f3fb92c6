"""What is known of one trace: its entries, its parent links, and the runs of it that were judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice, takewhile
from typing import cast

from luckrate_otel.assemble.sharing import Shared
from luckrate_otel.facts import Facts

NEVER_NS = 1 << 63


class Entry:
    """The facts of one span or log record, and its payload while it is held here."""

    __slots__ = ("compacted", "facts", "late", "payload", "payload_size", "released", "seen_ns", "size", "verdicts")

    def __init__(self, facts: Facts, seen_ns: int, size: int, payload: object | None, payload_size: int) -> None:
        self.facts = facts
        self.seen_ns = seen_ns
        self.size = size
        self.payload = payload
        self.payload_size = payload_size
        self.compacted = False
        self.verdicts = 0  # judged runs it is kept for: two when a run that came later took it from another
        self.late = False
        self.released = False  # its payload was handed out before any verdict

    @property
    def total_size(self) -> int:
        return self.size + (self.payload_size if self.payload is not None else 0)


@dataclass(slots=True)
class Judged:
    """A run that had a verdict, kept to judge it again if something late changes it.

    members: its entries at the time; empty once given up for want of memory (spent). size: bytes charged for them.
    """

    run_id: str
    root_id: str
    revision: int
    complete: bool
    members: frozenset[Entry]
    expires_ns: int
    size: int
    spent: bool = False


def key_of(facts: Facts) -> str:
    """Span id; for a log record with its time, as one span, or none at all, can have very many of them."""
    head = facts.head
    return f"{head.span_id}@{head.start_ns}" if facts.log else head.span_id


# Entries of one key are compared one by one: a span seen by client and server, events of one instant. Beyond this many,
# older ones are not looked at, and a retry of them would be graded twice: better than a way to keep the processor busy.
_MAX_ALIKE = 32


class Novelty(Enum):
    """Whether facts are known already."""

    NEW = auto()
    SAME = auto()
    CONFLICTING = auto()


class Trace:
    """The mutable state of one trace. Entries are found by span id; links are those of spans no adapter claimed."""

    __slots__ = (
        "agents",
        "check_ns",
        "checked_ns",
        "count",
        "entries",
        "judged",
        "link_ns",
        "links",
        "open_runs",
        "opened_ns",
        "queue",
        "queued_ns",
        "settled",
        "shared",
        "size",
        "trace_id",
        "waiting_from",
    )

    def __init__(self, trace_id: str, now_ns: int) -> None:
        self.trace_id = trace_id
        self.opened_ns = now_ns
        self.entries: dict[str, Entry | list[Entry]] = {}  # a list only where one span id has several: logs, mostly
        self.count = 0
        self.links: dict[str, str] = {}
        self.link_ns: dict[str, int] = {}
        # Held entries in order of arrival; those before `waiting_from` have left. An empty deque would take 760 B.
        self.queue: list[Entry] = []
        self.waiting_from = 0
        self.agents: dict[str, None] = {}
        self.judged: dict[str, Judged] = {}
        self.shared: Shared | None = None  # until there are messages to share
        self.size = 0  # of entries not judged yet
        self.check_ns = NEVER_NS  # when a run of it may be due
        self.checked_ns = -NEVER_NS
        self.queued_ns = NEVER_NS  # its place among all deadlines
        self.open_runs = 0
        self.settled = False  # one verdict stands for all that is known, so that the next look need not find its runs

    def _at(self, key: str) -> list[Entry]:
        found = self.entries.get(key, [])
        return [found] if isinstance(found, Entry) else found

    def all(self) -> Iterable[Entry]:
        """A view of its entries."""
        # Without a key of several entries, as in most traces, there is nothing to unfold: 0.1 µs an entry.
        return cast("Iterable[Entry]", self.entries.values()) if self.count == len(self.entries) else self._each()

    def _each(self) -> Iterator[Entry]:
        for found in self.entries.values():
            if isinstance(found, Entry):
                yield found
            else:
                yield from found

    def keep(self, key: str, entry: Entry) -> None:
        """key: key_of its facts."""
        found = self.entries.get(key)
        if found is None:
            self.entries[key] = entry
        elif isinstance(found, Entry):
            self.entries[key] = [found, entry]
        else:
            found.append(entry)
        self.count += 1
        self.settled = False
        agent = entry.facts.agent
        if agent:
            self.agents[agent] = None
        if entry.payload is not None:
            self.queue.append(entry)

    def forget(self, entries: Iterable[Entry]) -> None:
        """Take entries out of the index."""
        leaving = set(entries)
        self.settled = False
        if len(leaving) == self.count:  # all, as when the verdict on its only run is final: a tenth of the price
            self.entries.clear()
            self.count = 0
            return
        gone: dict[str, set[Entry]] = {}
        for entry in leaving:
            gone.setdefault(key_of(entry.facts), set()).add(entry)
        for key, of_key in gone.items():
            known = self._at(key)
            left = [e for e in known if e not in of_key]
            self.count -= len(known) - len(left)
            if left:
                self.entries[key] = left if len(left) > 1 else left[0]
            else:
                self.entries.pop(key, None)

    def novelty(self, key: str, facts: Facts, light: Facts | None) -> Novelty:
        """Whether these facts are a retry. key: key_of them. A span is known by its ids, kind and service; log records
        have no identity of their own and are the same only if all of their facts are."""
        head = facts.head
        novelty = Novelty.NEW
        for entry in self._at(key)[-_MAX_ALIKE:]:
            known = entry.facts
            if (light if entry.compacted and light is not None else facts) == known:
                return Novelty.SAME
            if not facts.log and (known.head.kind, known.head.service) == (head.kind, head.service):
                novelty = Novelty.CONFLICTING
        return novelty

    def first_held(self) -> Entry | None:
        """The held entry that has waited longest."""
        queue, at = self.queue, self.waiting_from
        while at < len(queue) and queue[at].payload is None:
            at += 1
        if 2 * at >= len(queue):  # half of it has left: each entry is moved at most once for each that leaves
            del queue[:at]
            at = 0
        self.waiting_from = at
        return queue[at] if at < len(queue) else None

    def held_until(self, seen_ns: int) -> list[Entry]:
        """The held entries that came no later."""
        self.first_held()
        came = takewhile(lambda entry: entry.seen_ns <= seen_ns, islice(self.queue, self.waiting_from, None))
        return [entry for entry in came if entry.payload is not None]
