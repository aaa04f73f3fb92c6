"""What a refused request leaves behind: nothing of its body, as refusals come by the thousand when a queue is full."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import aiohttp
import grpc
import grpc.aio
import pytest

from luckrate_otel.config import parse
from luckrate_otel.errors import Busy, Rejected, TooLarge
from luckrate_otel.otlp.json import to_protobuf
from luckrate_otel.service.receive.answers import PROTOBUF, Accept, Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.send.exporter_grpc import GrpcTransport
from luckrate_otel.service.send.exporter_http import HttpTransport
from luckrate_otel.service.server import Server
from luckrate_otel.service.signals import ROUTES, Signal
from tests.next_hop import resetting_next_hop, within

MIB = 2**20
MANY = 20
# What MANY may leave: a few KiB each of the libraries' own, and the last two bodies, which may still be on their way.
LITTLE = 5 * MIB // 2

NextHopOf = Callable[[], AbstractAsyncContextManager[str]]

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
    async with _sending_grpc(f"127.0.0.1:{port}") as send:
        try:
            await use(send)
        finally:
            await receiver.stop(0)


async def _over_http(row: Row, use: Callable[[Send], Awaitable[None]]) -> None:
    receiver = HttpReceiver(accept_of(row), token=row.token)
    port = await receiver.start("127.0.0.1", 0)
    async with _sending_http(f"127.0.0.1:{port}") as send:
        try:
            await use(send)
        finally:
            await receiver.stop()


@asynccontextmanager
async def _sending_grpc(address: str) -> AsyncIterator[Send]:
    async with grpc.aio.insecure_channel(address) as channel:
        call = channel.unary_unary(ROUTES[Signal.TRACES].method, None, None)

        async def send(body: bytes) -> grpc.StatusCode:
            return await call(body).code()

        yield send


@asynccontextmanager
async def _sending_http(address: str) -> AsyncIterator[Send]:
    async with aiohttp.ClientSession() as session:

        async def send(body: bytes) -> int:
            url = f"http://{address}/v1/traces"
            async with session.post(url, data=BytesIO(body), headers={"Content-Type": PROTOBUF}) as response:
                await response.read()
                return response.status

        yield send


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("over", [_over_grpc, _over_http], ids=["grpc", "http"])
def test_a_body_is_gone_with_its_answer_and_waits_for_no_collector(
    over: Callable[[Row, Callable[[Send], Awaitable[None]]], Awaitable[None]], row: Row
) -> None:
    """An error, its traceback and the frames in it refer to each other in a circle; a body in one of them would stay
    until the collector comes round, which is hundreds of requests later."""
    body = bytes(MIB)

    async def use(send: Send) -> None:
        assert await growth(lambda: send(body)) < LITTLE

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


@asynccontextmanager
async def _silent_next_hop() -> AsyncIterator[str]:
    """Reads all and never answers; yields the address."""

    reading: list[asyncio.Task[None]] = []
    open_ones: list[asyncio.StreamWriter] = []

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while await reader.read(MIB):
                pass

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.append(writer)
        reading.append(asyncio.create_task(read(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in open_ones:
            writer.transport.abort()
        await asyncio.gather(*reading)
        await server.wait_closed()


@pytest.mark.parametrize("gzip", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("next_hop", [_silent_next_hop, resetting_next_hop])
@pytest.mark.parametrize("kind", [GrpcTransport, HttpTransport])
def test_an_attempt_that_fails_midway_leaves_nothing_of_its_body(
    kind: type[GrpcTransport | HttpTransport], next_hop: NextHopOf, gzip: bool
) -> None:
    """The library's error refers to the frames that were writing, and those to a quarter of a mebibyte."""

    async def scenario() -> None:
        async with next_hop() as endpoint:
            transport = kind(endpoint, gzip=gzip, timeout=0.05)
            try:
                assert await growth(lambda: transport.send(Signal.TRACES, bytes(MIB))) < allowed
            finally:
                await transport.close()

    # From Python 3.13 on no error leads to the frames of aiohttp's writer, which keep their last piece of the body.
    pieces = kind is HttpTransport and sys.version_info >= (3, 13)
    allowed = MANY * 300 * 1024 if pieces else LITTLE
    without_collector(scenario)


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
            assert await growth(lambda: transport.send(Signal.TRACES, bytes(MIB))) < LITTLE
        finally:
            await transport.close()
            await receiver.stop()

    without_collector(scenario)


# ---- the whole processor -----------------------------------------------------------------------


def _request(operation: str | None = None) -> bytes:
    """One span of a mebibyte that hardly packs: of a tool, which is held, or one that leaves at once."""
    span = {
        "traceId": "0a" * 16,
        "spanId": "0b" * 8,
        "name": random.Random(1).randbytes(MIB // 2).hex(),
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": operation}}] if operation else [],
    }
    return to_protobuf("traces", {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


PASSED, HELD = _request(), _request("execute_tool")


@dataclass(frozen=True)
class Whole:
    """journal, queue: how large they may be. The first request fits where any does."""

    name: str
    body: bytes
    code: grpc.StatusCode
    http: int
    journal: str = "1GiB"
    queue: str = "1GiB"


WHOLE = [
    Whole("full queue", PASSED, grpc.StatusCode.UNAVAILABLE, 503, queue="1300KiB"),
    Whole("small queue", PASSED, grpc.StatusCode.RESOURCE_EXHAUSTED, 413, queue="512KiB"),
    Whole("full journal", HELD, grpc.StatusCode.UNAVAILABLE, 503, journal="1500KiB"),
    Whole("small journal", HELD, grpc.StatusCode.RESOURCE_EXHAUSTED, 413, journal="400KiB"),
    Whole("cut short", PASSED[:-9], grpc.StatusCode.INVALID_ARGUMENT, 400),
    Whole("cut short, of a tool", HELD[:-9], grpc.StatusCode.INVALID_ARGUMENT, 400),
]


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.name)
@pytest.mark.parametrize("wire", ["grpc", "http"])
def test_the_whole_processor_lets_go_of_what_it_refuses(wire: str, row: Whole, tmp_path: Path) -> None:
    config = parse(
        f"""
receivers: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: "127.0.0.1:0"}}}}
destinations: {{backend: {{endpoint: "http://127.0.0.1:1", queue_bytes: {row.queue}}}}}
journal: {{path: {tmp_path}, max_bytes: {row.journal}}}
admin: {{endpoint: none}}
metrics: {{prometheus: none}}""",
        "test.yaml",
        {},
    )
    answers: list[object] = []

    async def scenario() -> None:
        server = Server(config, ())
        await server.start()
        sending = _sending_grpc if wire == "grpc" else _sending_http
        try:
            async with sending(server.addresses[wire]) as send:

                async def once() -> None:
                    answers.append(await send(row.body))

                assert await growth(once) < LITTLE
        finally:
            await server.stop(0)

    without_collector(scenario)
    assert set(answers[1:]) == {row.code if wire == "grpc" else row.http}
