"""Assemble: the facts of spans and log records become runs, when their time has come. Pure and driven by `now_ns`."""

from luckrate_otel.assemble.assembler import Assembler
from luckrate_otel.assemble.clocks import AgentClocks, Clocks, Limits
from luckrate_otel.assemble.compact import compact
from luckrate_otel.assemble.counts import Counts
from luckrate_otel.assemble.effects import Closed, Compact, Effect, Final, Held, Release, ReleaseReason, Restore

__all__ = [
    "AgentClocks",
    "Assembler",
    "Clocks",
    "Closed",
    "Compact",
    "Counts",
    "Effect",
    "Final",
    "Held",
    "Limits",
    "Release",
    "ReleaseReason",
    "Restore",
    "compact",
]
