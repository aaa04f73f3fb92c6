"""What a refused request leaves behind: nothing of its body, as refusals come by the thousand when a queue is full."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import aiohttp
import grpc
import grpc.aio
import pytest

from luckrate_otel.errors import Busy, Rejected, TooLarge
from luckrate_otel.service.receive.answers import PROTOBUF, Accept, Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.send.exporter_grpc import GrpcTransport
from luckrate_otel.service.send.exporter_http import HttpTransport
from luckrate_otel.service.signals import ROUTES, Signal
from tests.next_hop import within

MIB = 2**20
MANY = 20

Send = Callable[[bytes], Awaitable[object]]


@dataclass(frozen=True)
class Row:
    name: str
    error: Callable[[], Exception] | None
    token: str | None = None


ROWS = [
    Row("taken", None),
    Row("busy", lambda: Busy("queue is full", 1.0)),
    Row("rejected", lambda: Rejected("no such field")),
    Row("too large", lambda: TooLarge("larger than the queue")),
    Row("our own fault", lambda: KeyError("secret")),
    Row("no token", None, "s3cret"),
]


def accept_of(row: Row) -> Accept:
    async def accept(_signal: Signal, body: bytes) -> Accepted:
        assert len(body) == MIB
        if row.error is not None:
            raise row.error()
        return Accepted()

    return accept


async def _over_grpc(row: Row, use: Callable[[Send], Awaitable[None]]) -> None:
    receiver = GrpcReceiver(accept_of(row), token=row.token)
    port = await receiver.start("127.0.0.1:0")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(ROUTES[Signal.TRACES].method, None, None)

        async def send(body: bytes) -> grpc.StatusCode:
            return await call(body).code()

        try:
            await use(send)
        finally:
            await receiver.stop(0)


async def _over_http(row: Row, use: Callable[[Send], Awaitable[None]]) -> None:
    receiver = HttpReceiver(accept_of(row), token=row.token)
    port = await receiver.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as session:

        async def send(body: bytes) -> int:
            url = f"http://127.0.0.1:{port}/v1/traces"
            async with session.post(url, data=body, headers={"Content-Type": PROTOBUF}) as response:
                await response.read()
                return response.status

        try:
            await use(send)
        finally:
            await receiver.stop()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("over", [_over_grpc, _over_http], ids=["grpc", "http"])
def test_a_body_is_gone_with_its_answer_and_waits_for_no_collector(
    over: Callable[[Row, Callable[[Send], Awaitable[None]]], Awaitable[None]], row: Row
) -> None:
    """An error, its traceback and the frames in it refer to each other in a circle; a body in one of them would stay
    until the collector comes round, which is hundreds of requests later."""
    body = bytes(MIB)

    async def use(send: Send) -> None:
        assert await growth(lambda: send(body)) < 4 * MIB

    without_collector(lambda: over(row, use))


async def growth(once: Callable[[], Awaitable[object]]) -> int:
    """Bytes that MANY repetitions leave behind."""
    for _ in range(3):  # what is made once
        await once()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(MANY):
        await once()
    await asyncio.sleep(0)
    return tracemalloc.get_traced_memory()[0] - before


def without_collector(scenario: Callable[[], Awaitable[None]]) -> None:
    gc.disable()
    tracemalloc.start()
    try:
        within(30, scenario)
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("row", ROWS[:2], ids=lambda row: row.name)
@pytest.mark.parametrize("listens", [True, False], ids=["answers", "does not listen"])
@pytest.mark.parametrize("wire", ["grpc", "http"])
def test_a_body_that_could_not_be_sent_is_held_by_its_queue_alone(wire: str, listens: bool, row: Row) -> None:
    """As above: each attempt joins what waits into one body anew."""

    async def scenario() -> None:
        receiver: GrpcReceiver | HttpReceiver
        if wire == "grpc":
            receiver = GrpcReceiver(accept_of(row))
            port = await receiver.start("127.0.0.1:0")
        else:
            receiver = HttpReceiver(accept_of(row))
            port = await receiver.start("127.0.0.1", 0)
        if not listens:
            await receiver.stop()
        endpoint = f"http://127.0.0.1:{port}"
        transport = GrpcTransport(endpoint) if wire == "grpc" else HttpTransport(endpoint)
        try:
            assert await growth(lambda: transport.send(Signal.TRACES, bytes(MIB))) < 4 * MIB
        finally:
            await transport.close()
            await receiver.stop()

    without_collector(scenario)
