"""What held spans take in memory, beside the estimate that the bounds are kept by. Payloads are left out."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from luckrate_otel.assemble import Assembler, Limits
from luckrate_otel.facts import Facts, Message, Role, Text
from luckrate_otel.telemetry import Head

SPANS = 4096
START_NS = 1_700_000_000_000_000_000
KIB = 1024


def spans(per_trace: int) -> list[Facts]:
    """Tool spans as a decoder makes them: each with texts of its own, except those it looks up in a table."""
    return [span(i // per_trace + 1, i % per_trace + 1, per_trace) for i in range(SPANS)]


def span(trace: int, number: int, per_trace: int) -> Facts:
    start_ns = START_NS + trace * 1_000_000 + number * 1000
    root = number == per_trace
    head = Head(
        trace_id=f"{trace:032x}",
        span_id=f"{trace:08x}{number:08x}",
        parent_id="" if root else f"{trace:08x}{per_trace:08x}",
        name="execute_tool lookup_order",
        kind=1,
        start_ns=start_ns,
        end_ns=start_ns + 999,
        scope="agents",
        service="shop",
    )
    if root:
        return Facts(role=Role.AGENT, adapter="test", head=head, agent="order_support")
    return Facts(
        role=Role.TOOL,
        adapter="test",
        head=head,
        agent="order_support",
        tool="lookup_order",
        call_id=f"call_{trace}_{number}",
        args={"order_id": f"{trace}-{number}"},
        result=f'{{"order_id": "{trace}-{number}", "total": {number}, "status": "shipped"}}',
        ok=True,
    )


def taken(make: Callable[[], Assembler]) -> tuple[int, Assembler]:
    """Bytes that what make() leaves behind takes."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        made = make()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before, made


@pytest.mark.parametrize(
    ("per_trace", "compact_over_bytes", "at_most"),
    [(1, 1024, 2 * KIB), (8, 1024, 1.4 * KIB), (64, 1024, 1.2 * KIB), (64, 0, 0.8 * KIB)],
)
def test_bytes_of_a_held_span_and_the_estimate(per_trace: int, compact_over_bytes: int, at_most: float) -> None:
    def hold() -> Assembler:
        assembler = Assembler(limits=Limits(compact_over_bytes=compact_over_bytes), restore=lambda held: held.facts)
        for fact in spans(per_trace):
            assembler.add(fact, 0, payload=b"", size=300)
        return assembler

    measured, assembler = taken(hold)
    assert measured / SPANS <= at_most
    estimate = assembler.counts.held_bytes - 300 * SPANS
    assert 0.9 <= estimate / measured <= 1.5


def test_a_history_that_every_model_call_repeats_is_kept_once() -> None:
    calls = 60

    def history(length: int) -> tuple[Message, ...]:
        return tuple(Message("user", (Text(f"{i} " + "x" * 2000),)) for i in range(length))

    def hold() -> Assembler:
        assembler = Assembler()
        for i in range(1, calls + 1):
            head = Head("1" * 32, f"{i:016x}", "f" * 16, start_ns=i)
            assembler.add(Facts(role=Role.MODEL, adapter="test", head=head, inputs=history(i)), 0)
        return assembler

    measured, assembler = taken(hold)
    assert measured < calls * 5000  # and not calls * calls / 2 * 2000, 12 times as much
    assert 0.9 <= assembler.counts.held_bytes / measured <= 1.5
