"""Metrics whose values are kept elsewhere, and read only when somebody collects: one row each, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from luckrate_otel.assemble import Counts
from luckrate_otel.config import Destination
from luckrate_otel.service.journal.journal import Journal
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.send.sender import Sender
from luckrate_otel.service.show.balance import Balance
from luckrate_otel.service.show.meter import Observe
from luckrate_otel.service.signals import Signal


def observed(
    counts: Counts,
    ledger: Ledger,
    balance: Balance,
    senders: Sequence[Sender],
    destinations: Mapping[str, Destination],
    journal: Journal | None,
) -> Mapping[str, Observe]:
    return {
        "luckrate.spans.received": lambda: [(ledger.received[Signal.TRACES], {})],
        "luckrate.spans": balance.span_outcomes,
        "luckrate.ledger": balance.ledger_entries,
        "luckrate.unaccounted": balance.unaccounted,
        "luckrate.held.spans": lambda: [(counts.held_spans, {})],
        "luckrate.held.size": lambda: [(counts.held_bytes, {})],
        "luckrate.open_runs": lambda: [(counts.open_runs, {})],
        "luckrate.late.spans": lambda: [(counts.late, {})],
        "luckrate.journal.size": lambda: [(journal.size_bytes, {})] if journal is not None else [],
        "luckrate.queue.size": lambda: [(s.queue_bytes, {"luckrate.destination": s.name}) for s in senders],
        "luckrate.queue.limit": lambda: [
            (destination.queue_bytes, {"luckrate.destination": name}) for name, destination in destinations.items()
        ],
    }
