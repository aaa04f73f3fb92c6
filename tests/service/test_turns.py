"""Large requests in turn, small ones past them."""

from __future__ import annotations

import asyncio

import pytest

from luckrate_otel.errors import Busy
from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.receive.turns import in_turn
from luckrate_otel.service.signals import Signal
from tests.next_hop import within


def test_one_large_request_at_a_time_and_small_ones_pass() -> None:
    async def scenario() -> None:
        begun: list[bytes] = []
        gates = {body: asyncio.Event() for body in (b"large 1", b"large 2", b"large 3")}

        async def accept(_signal: Signal, body: bytes) -> Accepted:
            begun.append(body)
            if body in gates:
                await gates[body].wait()
            if body == b"large 2":
                raise Busy("full", 1.0)
            return Accepted()

        accepting = in_turn(accept, 5)
        first, second, third = (asyncio.ensure_future(accepting(Signal.TRACES, body)) for body in gates)
        await asyncio.sleep(0)
        assert await accepting(Signal.TRACES, b"small") == Accepted()
        assert begun == [b"large 1", b"small"]
        gates[b"large 1"].set()
        assert await first == Accepted()
        gates[b"large 2"].set()
        with pytest.raises(Busy):  # and the turn goes on
            await second
        gates[b"large 3"].set()
        assert await third == Accepted()
        assert begun == [b"large 1", b"small", b"large 2", b"large 3"]

    within(10, scenario)
