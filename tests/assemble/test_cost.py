"""What the assembler's work grows with, by counting operations and not time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

import pytest

from luckrate_otel.assemble import Assembler, Closed, check
from luckrate_otel.facts import CloseReason, Facts, Role
from luckrate_otel.runs import RunGroup, partition
from tests.making import agent, tool

S = 1_000_000_000


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many facts each look at a trace goes through."""
    sizes: list[int] = []

    def counted(
        facts: Iterable[Facts], links: Mapping[str, str], *, final: bool | AbstractSet[str] = False
    ) -> tuple[RunGroup, ...]:
        known = tuple(facts)
        sizes.append(len(known))
        return partition(known, links, final=final)

    monkeypatch.setattr(check, "partition", counted)
    return sizes


def hold(assembler: Assembler, fact: Facts, now_ns: int) -> None:
    assembler.add(fact, now_ns, payload=None if fact.role is Role.MODEL else b"x", size=1)


def test_a_trace_that_comes_at_once_is_looked_at_once_for_its_verdict(looks: list[int]) -> None:
    assembler = Assembler()
    for i in range(500):
        hold(assembler, tool(f"{i + 16:x}", "a", i, trace=f"{i % 100 + 1:032x}"), 0)
    for i in range(100):
        hold(assembler, agent("a", trace=f"{i + 1:032x}"), 0)
    assert len(assembler.take(10 * S)) == 100
    assert looks == [6] * 100


def test_a_long_trace_is_looked_at_once_in_a_settle_time(looks: list[int]) -> None:
    """A span a second for two minutes; the agent itself comes last, as agents do."""
    assembler = Assembler()
    for i in range(120):
        assembler.take(i * S)
        hold(assembler, tool(f"{i + 16:x}", "a", i), i * S)
    hold(assembler, agent("a"), 119 * S)
    assert [type(e) for e in assembler.take(129 * S)][-1:] == [Closed]
    assert len(looks) <= 13


def test_a_trace_made_to_be_expensive_is_not(looks: list[int]) -> None:
    """Thousands of runs in one trace, each with a deadline of its own a millisecond after the last."""
    assembler = Assembler()
    closed = 0
    spans = 3000
    for i in range(spans):
        hold(assembler, agent(f"{i + 16:x}", "", i), i * 1_000_000)
    for ms in range(10_000, 14_000):
        closed += sum(isinstance(e, Closed) for e in assembler.take(ms * 1_000_000))
    assert closed == spans
    assert len(looks) <= 4_000 * 1_000_000 / (spans * 100_000) + 2  # and not one for each of the 3000


def test_deadlines_take_room_for_open_traces_only() -> None:
    assembler = Assembler()
    for i in range(2000):
        hold(assembler, agent("a", "f", trace=f"{i % 10 + 1:032x}", service=str(i)), i * S // 100)
        assembler.take(i * S // 100)
        assert len(assembler._deadlines) <= 2 * 10 + 8


def test_a_flood_of_traces_that_never_close_leaves_nothing_behind() -> None:
    assembler = Assembler()
    for i in range(3000):
        hold(assembler, tool("b", "f", trace=f"{i + 1:032x}"), i)
    effects = assembler.drain(CloseReason.SHUTDOWN, 3000)
    assert sum(len(e.held) for e in effects if isinstance(e, Closed)) == 3000
    assert assembler.next_deadline() is None
    assert (assembler.counts.held_bytes, assembler.counts.late_bytes, len(assembler.open_traces)) == (0, 0, 0)
