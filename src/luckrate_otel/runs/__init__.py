"""The facts of a trace → its runs: which spans belong to one agent invocation, and which of them is its root."""

from luckrate_otel.runs.partition import RunGroup, fact_order, partition

__all__ = ["RunGroup", "fact_order", "partition"]
