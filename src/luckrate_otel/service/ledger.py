"""The ledger: what became of every span and log record that was acknowledged.

    received + replayed = forwarded + held + queued + rejected + dropped{reason}

Intake keeps its own side here (received, held, handed over); each destination's queue keeps the other (queued,
forwarded, dropped with a reason). `balance.py` puts the two together, so that `/status`, the metrics and the last log
line all show the same sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from luckrate_otel.service.signals import Signal


@dataclass(slots=True)
class Ledger:
    """Counts per signal: spans, log records; requests for metrics and profiles. Only underway ever shrinks.

    received: in acknowledged requests. replayed: held ones that an earlier process left in the journal, and what waited
    for a destination that is gone (each destination counts those of its queue). handed_over: to the destinations,
    annotated or not. unwanted: of those, what no destination takes. made: log events of our own. ungraded: stage that
    failed → spans (read, assemble) or runs. regraded: spans that came with findings of a luckrate before us. underway:
    a gauge, spans between a verdict and the queues; they count as held.
    """

    received: Counter[Signal] = field(default_factory=Counter)
    replayed: Counter[Signal] = field(default_factory=Counter)
    handed_over: Counter[Signal] = field(default_factory=Counter)
    unwanted: Counter[Signal] = field(default_factory=Counter)
    made: Counter[Signal] = field(default_factory=Counter)
    ungraded: Counter[str] = field(default_factory=Counter)
    underway: int = 0
    graded: int = 0
    regraded: int = 0

    def missing(self, signal: Signal, held: int) -> int:
        """What intake took and cannot account for: 0 unless there is a bug. held: spans in the assembler now."""
        return self.received[signal] + self.replayed[signal] - self.handed_over[signal] - held
