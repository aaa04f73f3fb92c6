"""CPU of accept → queue → export over loopback gRPC, beside a bare raw-bytes gRPC pass-through in the same run.

    python benchmarks/transport.py [--seconds 3] [--rounds 3]

Three processes: a load generator (this one), the subject, and a next hop that takes everything. Only the subject's CPU
(user + system, all its threads) is counted, and only after the last span has arrived at the next hop.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import IO

import grpc
import grpc.aio
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from luckrate_otel.service.answers import Accepted
from luckrate_otel.service.exporter_grpc import GrpcTransport
from luckrate_otel.service.queue import Queue
from luckrate_otel.service.receiver_grpc import GrpcReceiver
from luckrate_otel.service.sender import Sender
from luckrate_otel.service.signals import ROUTES, Signal

TRACES = ROUTES[Signal.TRACES]
SPAN_BYTES = 300
IN_FLIGHT = 8  # requests the generator keeps open, as a few SDKs would


def request(spans: int) -> bytes:
    """One Export request of so many spans of about SPAN_BYTES each."""
    made = trace_service_pb2.ExportTraceServiceRequest()
    scope = made.resource_spans.add().scope_spans.add()
    for index in range(spans):
        span = scope.spans.add(trace_id=index.to_bytes(16, "big"), span_id=index.to_bytes(8, "big"), name="GET /item")
        attribute = span.attributes.add(key="http.route")
        attribute.value.string_value = "x" * (SPAN_BYTES - 62)
    return made.SerializeToString()


def serve_raw(export: Callable[[bytes, object], Awaitable[bytes]]) -> grpc.aio.Server:
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    handler = grpc.unary_unary_rpc_method_handler(export)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(TRACES.service, {"Export": handler})])
    return server


async def bare(next_hop: str) -> int:
    """The least a proxy can do: hand the bytes on and wait for the answer."""
    channel = grpc.aio.insecure_channel(next_hop, [("grpc.max_send_message_length", -1)])
    call = channel.unary_unary(TRACES.method, None, None)

    async def export(body: bytes, _context: object) -> bytes:
        return bytes(await call(body))

    server = serve_raw(export)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    keep.extend((server, channel))
    return int(port)


async def queued(next_hop: str) -> int:
    sender = Sender("next hop", Queue(2**28), GrpcTransport(next_hop))

    async def accept(signal: Signal, body: bytes) -> Accepted:
        sender.put(signal, body, 1)
        return Accepted()

    receiver = GrpcReceiver(accept)
    keep.append(receiver)
    return await receiver.start("127.0.0.1:0")


async def sink(_next_hop: str) -> int:
    async def export(body: bytes, _context: object) -> bytes:
        seen[0] += len(body)
        return b""

    server = serve_raw(export)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    keep.append(server)
    return int(port)


keep: list[object] = []
seen = [0]
ROLES = {"bare": bare, "queued": queued, "sink": sink}


async def play(role: str, next_hop: str) -> None:
    """Run one role; each line on stdin is answered with the CPU seconds used and the bytes seen so far."""
    port = await ROLES[role](next_hop)
    print(port, flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        print(json.dumps([time.process_time(), seen[0]]), flush=True)


class Peer:
    def __init__(self, role: str, next_hop: str = "") -> None:
        command = [sys.executable, __file__, "--role", role, "--next-hop", next_hop]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = f"127.0.0.1:{self._read().strip()}"

    def ask(self) -> tuple[float, int]:
        pipe: IO[str] | None = self._process.stdin
        assert pipe is not None
        pipe.write("\n")
        pipe.flush()
        cpu, size = json.loads(self._read())
        return cpu, size

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


async def load(address: str, body: bytes, seconds: float) -> int:
    """Send for so long; return the number of requests acknowledged."""
    sent = 0
    end = time.monotonic() + seconds

    async def one(call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]) -> None:
        nonlocal sent
        while time.monotonic() < end:
            await call(body)
            sent += 1

    async with grpc.aio.insecure_channel(address, [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary(TRACES.method, None, None)
        await asyncio.gather(*(one(call) for _ in range(IN_FLIGHT)))
    return sent


def measure(role: str, spans: int, seconds: float) -> float:
    """CPU-microseconds of the subject per request."""
    next_hop = Peer("sink")
    subject = Peer(role, next_hop.address)
    body = request(spans)
    try:
        warm = asyncio.run(load(subject.address, body, seconds / 4))
        arrived(next_hop, warm * len(body))
        before, _ = subject.ask()
        sent = asyncio.run(load(subject.address, body, seconds))
        arrived(next_hop, (warm + sent) * len(body))
        after, _ = subject.ask()
        return (after - before) / sent * 1e6
    finally:
        subject.stop()
        next_hop.stop()


def arrived(next_hop: Peer, size: int) -> None:
    end = time.monotonic() + 30
    while next_hop.ask()[1] < size:
        if time.monotonic() > end:
            raise SystemExit("spans did not arrive at the next hop")
        time.sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="load time of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of which the median is shown")
    parser.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    parser.add_argument("--next-hop", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        asyncio.run(play(options.role, options.next_hop))
        return
    print(
        f"{platform.machine()} {platform.processor()} Python {platform.python_version()}, spans of {SPAN_BYTES} bytes"
    )
    print(f"{'spans/request':>13} {'bare µs/span':>13} {'queued µs/span':>15} {'queued/bare':>12}")
    for spans in (1, 64, 512):
        rounds = [
            [measure(role, spans, options.seconds) / spans for role in ("bare", "queued")]
            for _ in range(options.rounds)
        ]
        plain, joined = (median(column) for column in zip(*rounds, strict=True))
        print(f"{spans:>13} {plain:>13.2f} {joined:>15.2f} {joined / plain:>12.2f}", flush=True)


if __name__ == "__main__":
    main()
