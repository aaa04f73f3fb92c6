"""What `/status` shows: one snapshot of plain values. Names, ids and counts only; never a prompt or a tool result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from luckrate_otel.assemble import Assembler
from luckrate_otel.service.journal.journal import Journal
from luckrate_otel.service.journal.keeping import Keeping
from luckrate_otel.service.judge import Judge
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.receive.answers import Outcome
from luckrate_otel.service.send.sender import Sender
from luckrate_otel.service.show.balance import Balance
from luckrate_otel.spec import Spec
from luckrate_otel.version import own_version

# Open traces that are listed, those due first.
SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class ServerState:
    """What only the server itself can say. refused: listener → outcome → requests."""

    ready: str | None
    uptime_ns: int
    listening: Mapping[str, str]
    mode: str
    specs: Sequence[Spec]
    refused: Mapping[str, Mapping[Outcome, int]]


@dataclass(frozen=True, slots=True)
class Status:
    """The parts of one processor that have something to show."""

    assembler: Assembler
    judge: Judge
    ledger: Ledger
    balance: Balance
    senders: Sequence[Sender]
    journal: Journal | None
    keeping: Keeping | None

    def snapshot(self, server: ServerState) -> Mapping[str, Any]:
        return {
            "version": own_version(),
            "uptime_seconds": round(server.uptime_ns / 1e9, 1),
            "ready": server.ready or "yes",
            "listening": dict(server.listening),
            "mode": server.mode,
            "specs": [{"name": spec.name, "version": spec.version} for spec in server.specs],
            "runs": self._runs(),
            "open_traces": self._open_traces(),
            "held": self._held(),
            "refused": {
                name: {str(outcome): count for outcome, count in counts.items()}
                for name, counts in server.refused.items()
            },
            "kept": self._kept(),
            "ledger": self.balance.signals(),
            "journal": self._journal(),
            "destinations": {sender.name: self._destination(sender) for sender in self.senders},
        }

    def _runs(self) -> dict[str, Any]:
        counts = self.assembler.counts
        return {
            "open": counts.open_runs,
            "graded": self.ledger.graded,
            "ungraded": dict(self.ledger.ungraded),
            "traces_given_up": counts.errors,
            "unjudged_late_spans": counts.unjudged_late,
            "standing_verdicts": self.judge.standing,
            "waiting_for_evaluation": self.judge.waiting,
        }

    def _open_traces(self) -> list[dict[str, Any]]:
        now_ns = time.monotonic_ns()
        return [
            {"trace_id": trace_id, "entries": count, "bytes": size, "due_in_seconds": round((due - now_ns) / 1e9, 1)}
            for trace_id, count, size, due in self.assembler.overview(SHOWN)
        ]

    def _held(self) -> dict[str, int]:
        counts = self.assembler.counts
        return {
            "spans": self.balance.held_spans,
            "bytes": counts.held_bytes,
            "duplicates": counts.duplicates,
            "conflicting_duplicates": counts.conflicting,
            "stripped_of_earlier_findings": self.ledger.regraded,
        }

    def _kept(self) -> dict[str, int]:
        counts = self.assembler.counts
        return {
            "late_bytes": counts.late_bytes,
            "link_bytes": counts.link_bytes,
            "links_dropped": counts.links_dropped,
            "open_traces": len(self.assembler.open_traces),
        }

    def _journal(self) -> dict[str, Any] | None:
        if self.journal is None or self.keeping is None:
            return None
        return {
            "path": str(self.journal.path),
            "bytes": self.journal.size_bytes,
            "max_bytes": self.journal.max_bytes,
            "open_traces": self.keeping.traces,
            "trouble": self.journal.trouble or None,
        }

    def _destination(self, sender: Sender) -> dict[str, Any]:
        return {
            "queue_bytes": sender.queue_bytes,
            "failures_in_a_row": sender.failures,
            "last_answer": sender.last_code or None,
            "signals": {signal: asdict(account) for signal, account in self.balance.accounts(sender).items()},
        }
