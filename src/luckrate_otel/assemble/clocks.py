"""How long to wait for what, and how much to hold meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from luckrate_otel.telemetry import nothing

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class AgentClocks:
    """The three waits of a run, in nanoseconds.

    settle_ns: after the root was seen and nothing new came; more than the SDK's 5 s batches plus the Collector's.
    release_after_ns: a span is held this long at most, so that a live run is visible.
    verdict_after_ns: without a span, a run whose root never came is judged.
    """

    settle_ns: int = 10 * SECOND_NS
    release_after_ns: int = 2 * MINUTE_NS
    verdict_after_ns: int = 15 * MINUTE_NS


@dataclass(frozen=True, slots=True)
class Clocks:
    """The waits of every run, and those of runs in which an agent of the given name takes part.

    late_window_ns: how long after its verdict a run can still be judged again. Longer than verdict_after, as a span
    whose parents never came is only then given to the run it was part of.
    """

    default: AgentClocks = AgentClocks()
    agents: Mapping[str, AgentClocks] = field(default_factory=nothing)
    late_window_ns: int = 30 * MINUTE_NS

    def of(self, names: Iterable[str]) -> AgentClocks:
        """The waits of a run of these agents: where several have their own, the longest of each."""
        own = [self.agents[name] for name in names if name in self.agents] if self.agents else []
        if not own:
            return self.default
        return AgentClocks(
            settle_ns=max(c.settle_ns for c in own),
            release_after_ns=max(c.release_after_ns for c in own),
            verdict_after_ns=max(c.verdict_after_ns for c in own),
        )

    @property
    def shortest_settle_ns(self) -> int:
        return min(c.settle_ns for c in (self.default, *self.agents.values()))


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds in bytes, by the assembler's own estimate (see sizes.py).

    held_bytes: payloads and facts of runs not judged yet; beyond it runs are judged early.
    late_bytes: facts of judged runs, kept to judge them again; beyond it the oldest are given up.
    link_bytes: parent links of passed spans; beyond it those of the trace that had links first are given up.
    compact_over_bytes: of a held span with a larger payload the contents are not kept a second time, but read again
    from the payload for the verdict. Below it they are kept, as reading costs as much again as the first time; a run of
    which half the spans are held stays within 1.5 × its wire bytes + 1 KiB per span even so.
    """

    held_bytes: int = 512 * MIB
    late_bytes: int = 64 * MIB
    link_bytes: int = 64 * MIB
    compact_over_bytes: int = 3072
