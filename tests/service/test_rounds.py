"""Rounds come by the clock, at once when memory is full, and requests wait for the room that they make."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.rounds import EVERY, Rounds
from luckrate_otel.service.signals import Signal
from tests.next_hop import within

ROOM = 2


class Memory:
    """Room for two requests, which a round lets go."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.held = self.highest = self.taken = self.rounds = 0
        self.began = asyncio.Event()
        self._fault = fault

    async def accept(self, _signal: Signal, _body: bytes) -> Accepted:
        self.held += 1
        self.taken += 1
        self.highest = max(self.highest, self.held)
        return Accepted()

    async def judge(self) -> None:
        self.rounds += 1
        self.began.set()
        if self._fault is not None:
            raise self._fault
        self.held = 0

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


def test_rounds_that_make_no_room_come_by_the_clock_and_end_the_wait_when_they_stop() -> None:
    memory = Memory(OSError("disk"))

    async def scenario(rounds: Rounds) -> None:
        began = time.monotonic()
        await send(rounds, memory, ROOM)
        waiting = asyncio.create_task(send(rounds, memory, 1))
        for _ in range(3):
            memory.began.clear()
            await memory.began.wait()
        passed = time.monotonic() - began
        await rounds.stop()
        await waiting
        assert (memory.taken, memory.rounds) == (ROOM + 1, 4)
        assert passed >= 2 * EVERY

    play(memory, scenario)
