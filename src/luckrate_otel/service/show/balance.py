"""The ledger and the destinations' accounts side by side: the one sum that /status, metrics and the last log line show.

What came in stands in the ledger, what left in the account of each destination; docs/reliability.md says how to add
them up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from luckrate_otel.assemble import Counts
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.send.queue import Account
from luckrate_otel.service.send.sender import Sender
from luckrate_otel.service.signals import Signal

Observations = Iterable[tuple[float, Mapping[str, str]]]

# What the ledger and an account only ever add to, so that a metric may count it.
_COUNTED: Final = ("received", "replayed", "handed_over", "unwanted", "made")
_COUNTED_PER_DESTINATION: Final = ("put", "replayed", "sent")

_PARTLY: Final = "partial_success"  # the one way in which OTLP refuses a part of a request


class Balance:
    """Reads, never writes. counts: the assembler's own, which hold what no verdict has released yet."""

    def __init__(self, ledger: Ledger, counts: Counts, senders: Sequence[Sender]) -> None:
        self._ledger = ledger
        self._counts = counts
        self._senders = senders

    @property
    def held_spans(self) -> int:
        return self._counts.held_spans + self._ledger.underway

    def signals(self) -> dict[str, dict[str, int]]:
        """Per signal, where everything is that came in; unaccounted is 0 unless there is a bug."""
        return {str(signal): self._of(signal) for signal in Signal}

    def _of(self, signal: Signal) -> dict[str, int]:
        held = self.held_spans if signal is Signal.TRACES else 0
        return {
            "received": self._ledger.received[signal],
            "replayed": self._ledger.replayed[signal],
            "held": held,
            "handed_over": self._ledger.handed_over[signal],
            "unwanted": self._ledger.unwanted[signal],
            "made": self._ledger.made[signal],
            "unaccounted": self._ledger.missing(signal, held),
        }

    def accounts(self, sender: Sender) -> dict[str, Account]:
        """Per signal that the destination takes."""
        return {str(signal): sender.account(signal) for signal in Signal if signal in sender.signals}

    def line(self) -> str:
        """Everything that is not zero, for the log."""
        parts = []
        for signal, entry in self.signals().items():
            if entry["received"] or entry["replayed"] or entry["made"]:
                shown = {name: count for name, count in entry.items() if name != "unwanted"}  # in handed_over as well
                parts.append(f"{signal} {_nonzero(shown)}")
        for sender in self._senders:
            for signal, account in self.accounts(sender).items():
                if account.put or account.replayed:
                    flat = {**asdict(account), "dropped": sum(account.dropped.values())}
                    parts.append(f"{sender.name} {signal} {_nonzero(flat)}")
        return "; ".join(parts) or "nothing was received"

    # ---- as metrics ------------------------------------------------------------------------------

    def ledger_entries(self) -> Observations:
        """`luckrate.ledger`: what came in and where it is, so that anybody can add it up."""
        for signal, entry in self.signals().items():
            for name in _COUNTED:
                yield entry[name], _entry(name, signal)
        for sender in self._senders:
            for signal, account in self.accounts(sender).items():
                for name in _COUNTED_PER_DESTINATION:
                    yield getattr(account, name), _entry(name, signal, sender.name)
                yield account.rejected, _entry("rejected", signal, sender.name, _PARTLY)
                for reason, count in account.dropped.items():
                    yield count, _entry("dropped", signal, sender.name, reason)

    def span_outcomes(self) -> Observations:
        """`luckrate.spans`: what became of spans, per destination."""
        for sender in self._senders:
            account = sender.account(Signal.TRACES)
            where = {"luckrate.destination": sender.name}
            yield account.sent, {**where, "luckrate.outcome": "forwarded", "luckrate.reason": ""}
            yield account.rejected, {**where, "luckrate.outcome": "rejected", "luckrate.reason": _PARTLY}
            for reason, count in account.dropped.items():
                yield count, {**where, "luckrate.outcome": "dropped", "luckrate.reason": reason}

    def unaccounted(self) -> Observations:
        return [(entry["unaccounted"], {"luckrate.signal": signal}) for signal, entry in self.signals().items()]


def _entry(name: str, signal: str, destination: str = "", reason: str = "") -> Mapping[str, str]:
    return {
        "luckrate.signal": signal,
        "luckrate.entry": name,
        "luckrate.destination": destination,
        "luckrate.reason": reason,
    }


def _nonzero(counts: Mapping[str, int]) -> str:
    return " ".join(f"{name} {count}" for name, count in counts.items() if count)
