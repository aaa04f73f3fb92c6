"""Rounds come by the clock, at once when memory is full, and requests wait for the room that they make."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.rounds import EVERY, PATIENCE, Rounds
from luckrate_otel.service.signals import Signal
from tests.next_hop import within

ROOM = 2


class Memory:
    """Room for two requests, which a round lets go."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.held = self.highest = self.taken = self.rounds = 0
        self.began = asyncio.Event()
        self.disk = asyncio.Event()  # on which verdicts wait
        self.disk.set()
        self._fault = fault

    async def accept(self, _signal: Signal, _body: bytes) -> Accepted:
        self.held += 1
        self.taken += 1
        self.highest = max(self.highest, self.held)
        return Accepted()

    async def judge(self) -> bool:
        self.rounds += 1
        self.began.set()
        if self._fault is not None:
            raise self._fault
        let_go = self.held > 0
        self.held = 0
        await self.disk.wait()
        return let_go

    def is_full(self) -> bool:
        return self.held >= ROOM


def play(memory: Memory, scenario: Callable[[Rounds], Awaitable[None]]) -> None:
    async def run() -> None:
        repeats = Repeats(time.monotonic_ns)
        rounds = Rounds(memory.judge, memory.is_full, lambda: 0, clock=time.monotonic_ns, repeats=repeats)
        rounds.start()
        try:
            await scenario(rounds)
        finally:
            await rounds.stop()

    within(30, run)


async def send(rounds: Rounds, memory: Memory, requests: int) -> None:
    accept = rounds.first(memory.accept)
    await asyncio.gather(*(accept(Signal.TRACES, b"") for _ in range(requests)))


def test_requests_that_come_together_stay_within_the_bound() -> None:
    memory = Memory()
    began = time.monotonic()
    play(memory, lambda rounds: send(rounds, memory, 100))
    assert (memory.taken, memory.highest) == (100, ROOM)
    assert memory.rounds >= 49
    assert time.monotonic() - began < 40 * EVERY, "rounds come when they are wanted, not by the clock"


def test_a_request_that_fits_waits_for_no_round() -> None:
    memory = Memory()

    async def scenario(rounds: Rounds) -> None:
        await send(rounds, memory, ROOM)
        assert memory.rounds == 0

    play(memory, scenario)


@pytest.mark.parametrize(
    ("signal", "rounds_before"),
    [(Signal.TRACES, 1), (Signal.LOGS, 1), (Signal.METRICS, 0), (Signal.PROFILES, 0)],
)
def test_what_is_never_held_waits_for_no_room(signal: Signal, rounds_before: int) -> None:
    memory = Memory()

    async def scenario(rounds: Rounds) -> None:
        await send(rounds, memory, ROOM)
        await rounds.first(memory.accept)(signal, b"")
        assert (memory.taken, memory.rounds) == (ROOM + 1, rounds_before)

    play(memory, scenario)


def test_a_round_that_makes_no_room_comes_by_the_clock_and_the_request_is_taken() -> None:
    memory = Memory(OSError("disk"))

    async def scenario(rounds: Rounds) -> None:
        await send(rounds, memory, ROOM)
        for _ in range(2):
            memory.began.clear()
            await memory.began.wait()
        began = time.monotonic()
        await asyncio.wait_for(send(rounds, memory, 3), PATIENCE)
        assert (memory.taken, memory.rounds) == (ROOM + 3, 5), "one round each, as none helps"
        assert time.monotonic() - began >= 2 * EVERY

    play(memory, scenario)


def test_rounds_during_which_memory_fills_again_come_at_once() -> None:
    """While verdicts go to the disk there is room, and requests take it."""
    memory = Memory()

    async def scenario(rounds: Rounds) -> None:
        began = time.monotonic()
        for made in range(1, 41):
            memory.disk.clear()
            memory.began.clear()
            await send(rounds, memory, ROOM - memory.held)
            first = asyncio.create_task(send(rounds, memory, 1))
            await memory.began.wait()
            memory.held = ROOM  # by requests that found room
            memory.disk.set()
            memory.began.clear()
            await first
            assert memory.rounds >= 2 * made
        assert time.monotonic() - began < 40 * EVERY

    play(memory, scenario)


def test_who_waits_is_taken_before_who_comes_when_there_is_room() -> None:
    memory = Memory()
    order: list[bytes] = []

    async def accept(signal: Signal, body: bytes) -> Accepted:
        order.append(body)
        return await memory.accept(signal, body)

    async def scenario(rounds: Rounds) -> None:
        await send(rounds, memory, ROOM)
        memory.disk.clear()
        taken = rounds.first(accept)
        early = asyncio.ensure_future(taken(Signal.TRACES, b"early"))
        await memory.began.wait()  # there is room from here on
        late = asyncio.ensure_future(taken(Signal.TRACES, b"late"))
        await asyncio.sleep(0)
        memory.disk.set()
        await asyncio.gather(early, late)
        assert order == [b"early", b"late"]

    play(memory, scenario)


@pytest.mark.parametrize("during_a_round", [False, True])
def test_a_stop_ends_every_wait(*, during_a_round: bool) -> None:
    memory = Memory()

    async def scenario(rounds: Rounds) -> None:
        memory.disk.clear()
        if during_a_round:
            await memory.began.wait()
        memory.held = ROOM
        waiting = [asyncio.create_task(send(rounds, memory, 1)) for _ in range(3)]
        await asyncio.sleep(0)
        stopping = asyncio.create_task(rounds.stop())
        await asyncio.sleep(0)
        memory.disk.set()
        began = time.monotonic()
        await stopping
        await asyncio.gather(*waiting)
        assert time.monotonic() - began < PATIENCE / 2
        assert memory.taken == 3

    play(memory, scenario)


def test_a_sender_that_hangs_up_leaves_the_line_to_the_next() -> None:
    memory = Memory()

    async def scenario(rounds: Rounds) -> None:
        await send(rounds, memory, ROOM)
        memory.disk.clear()
        waiting = [asyncio.create_task(send(rounds, memory, 1)) for _ in range(4)]
        await memory.began.wait()
        for gone in waiting[:2]:
            gone.cancel()
        memory.disk.set()
        await asyncio.gather(*waiting[2:])
        assert memory.taken == ROOM + 2

    play(memory, scenario)
