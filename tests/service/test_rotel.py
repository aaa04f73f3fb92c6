"""A third-party collector agent in front of the transport and behind it, over gRPC and over HTTP.

SDK → rotel → receiver → queue → exporter → rotel → next hop: what the SDK sent must arrive, each span once.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import rotel  # type: ignore[import-untyped]  # ships no types
from opentelemetry.sdk.trace.export import SpanExportResult

from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.send.exporter_grpc import GrpcTransport
from luckrate_otel.service.send.exporter_http import HttpTransport
from luckrate_otel.service.send.queue import Account, Queue
from luckrate_otel.service.send.replies import Transport
from luckrate_otel.service.send.sender import Sender
from luckrate_otel.service.signals import Signal
from tests.next_hop import grpc_next_hop, http_next_hop, within
from tests.programs.found import REQUIRE
from tests.service.test_sdk import GRPC, HTTP, names, spans

AGENT = Path(rotel.__file__).parent / "rotel-agent"


@pytest.fixture(scope="module", autouse=True)
def _can_run() -> None:
    """Its wheel is linked against Python's shared library, which not every Python has."""
    tried = subprocess.run([AGENT, "--help"], capture_output=True, text=True, check=False)
    if tried.returncode and os.environ.get(REQUIRE):
        pytest.fail(f"rotel is required and cannot run: {tried.stderr.strip()}", pytrace=False)
    if tried.returncode:
        pytest.skip(f"rotel cannot run with this Python: {tried.stderr.strip()}")


@asynccontextmanager
async def agent(wire: str, next_hop: str, directory: Path, *, gzip: bool) -> AsyncIterator[int]:
    """A running rotel; yields the port on which it takes this wire's OTLP."""
    ports = dict(zip(("grpc", "http"), free_ports(2), strict=True))
    process = await asyncio.create_subprocess_exec(
        AGENT, "start", "--batch-timeout", "50ms", "--pid-file", str(directory / f"{ports[wire]}.pid"),
        "--otlp-grpc-endpoint", f"127.0.0.1:{ports['grpc']}", "--otlp-http-endpoint", f"127.0.0.1:{ports['http']}",
        "--exporter", "otlp", "--otlp-exporter-endpoint", next_hop, "--otlp-exporter-protocol", wire,
        "--otlp-exporter-compression", "gzip" if gzip else "none",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, cwd=directory,
    )  # fmt: skip
    try:
        await listening(ports[wire])
        yield ports[wire]
    finally:
        process.terminate()
        await process.wait()


def free_ports(count: int) -> list[int]:
    """rotel does not say which port it took when told any, so it has to be told one."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [taken.getsockname()[1] for taken in sockets]
    for taken in sockets:
        taken.close()
    return ports


async def listening(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)  # another program's start shows in nothing but this
        else:
            writer.close()
            return


@pytest.mark.slow
@pytest.mark.parametrize("gzip", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("wire", ["grpc", "http"])
def test_spans_pass_between_two_rotel_agents(wire: str, gzip: bool, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            hop = await stack.enter_async_context(grpc_next_hop() if wire == "grpc" else http_next_hop())
            behind = await stack.enter_async_context(agent(wire, hop.endpoint, tmp_path, gzip=gzip))
            transport: Transport = (GrpcTransport if wire == "grpc" else HttpTransport)(
                f"http://127.0.0.1:{behind}", gzip=gzip
            )
            sender = Sender("rotel", Queue(10**6), transport)

            async def accept(signal: Signal, body: bytes) -> Accepted:
                sender.put(signal, body, len(names(body)))
                return Accepted()

            if wire == "grpc":
                grpc_receiver = GrpcReceiver(accept)
                stack.push_async_callback(grpc_receiver.stop, 0)
                port = await grpc_receiver.start("127.0.0.1:0")
            else:
                http_receiver = HttpReceiver(accept, grace=0.1)
                stack.push_async_callback(http_receiver.stop)
                port = await http_receiver.start("127.0.0.1", 0)
            front = await stack.enter_async_context(agent(wire, f"http://127.0.0.1:{port}", tmp_path, gzip=gzip))

            exporter = (GRPC if wire == "grpc" else HTTP)["gzip" if gzip else "plain"](front, {})
            for count in (1, 3, 40):
                assert await asyncio.to_thread(exporter.export, spans(count)) is SpanExportResult.SUCCESS
            await asyncio.to_thread(exporter.shutdown)
            await hop.until(lambda hop: sum(len(names(body)) for body in hop.taken) >= 44)
            sent = sorted(name for body in hop.taken for name in names(body))
            assert sent == sorted(f"span {index}" for count in (1, 3, 40) for index in range(count))
            assert await sender.drain(5) == ()
            assert sender.account(Signal.TRACES) == Account(put=44, sent=44)

    within(40, scenario)
