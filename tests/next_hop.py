"""A next hop that records what it is sent and answers as told: gRPC, HTTP, or nothing but a reset connection."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
import grpc.aio
from aiohttp import web
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.service.tls import Tls, server_context, server_credentials


@dataclass(frozen=True)
class Say:
    """One answer. code, http: on either wire; retry_after: seconds in RetryInfo, or the header as it is."""

    code: grpc.StatusCode = grpc.StatusCode.OK
    http: int = 200
    rejected: int = 0
    retry_after: float | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait_for: asyncio.Event | None = None
    reset: bool = False

    @property
    def good(self) -> bool:
        return self.code is grpc.StatusCode.OK and self.http == 200 and not self.reset


OK = Say()
Script = Callable[[Signal, bytes], Say]


@dataclass(frozen=True)
class Request:
    signal: Signal
    body: bytes
    headers: Mapping[str, str]
    said: Say


class NextHop:
    """requests: all that came, in order, with what was answered. script decides each answer and may be changed."""

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or (lambda _signal, _body: OK)
        self.requests: list[Request] = []
        self.endpoint = ""
        self._changed = asyncio.Condition()

    @property
    def taken(self) -> list[bytes]:
        return [request.body for request in self.requests if request.said.good]

    async def answer(self, signal: Signal, body: bytes, headers: Mapping[str, str]) -> Say:
        say = self.script(signal, body)
        async with self._changed:
            self.requests.append(Request(signal, body, headers, say))
            self._changed.notify_all()
        if say.wait_for is not None:
            await say.wait_for.wait()
        return say

    async def until(self, met: Callable[[NextHop], bool]) -> None:
        """Wait until the condition holds; the test's own deadline bounds it."""
        async with self._changed:
            await self._changed.wait_for(lambda: met(self))


def response(say: Say) -> bytes:
    made = trace_service_pb2.ExportTraceServiceResponse()
    if say.rejected:
        made.partial_success.rejected_spans = say.rejected
        made.partial_success.error_message = "some are bad"
    return made.SerializeToString()


@asynccontextmanager
async def grpc_next_hop(script: Script | None = None, tls: Tls | None = None, port: int = 0) -> AsyncIterator[NextHop]:
    hop = NextHop(script)
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers([_grpc_service(hop, signal) for signal in ROUTES])
    address = f"127.0.0.1:{port}"
    port = server.add_secure_port(address, server_credentials(tls)) if tls else server.add_insecure_port(address)
    hop.endpoint = f"{'https' if tls else 'http'}://localhost:{port}"
    await server.start()
    try:
        yield hop
    finally:
        await server.stop(0)


def _grpc_service(hop: NextHop, signal: Signal) -> grpc.GenericRpcHandler[bytes, bytes]:
    async def export(body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
        say = await hop.answer(signal, body, metadata)
        if say.code is not grpc.StatusCode.OK:
            await refuse(context, say)
        return response(say)

    async def refuse(context: grpc.aio.ServicerContext[bytes, bytes], say: Say) -> None:
        made = status_pb2.Status(code=say.code.value[0], message="as told")
        if isinstance(say.retry_after, float):
            info = error_details_pb2.RetryInfo()
            info.retry_delay.FromNanoseconds(int(say.retry_after * 1e9))
            made.details.add().Pack(info)
        await context.abort(say.code, "as told", (("grpc-status-details-bin", made.SerializeToString()),))

    handler = grpc.unary_unary_rpc_method_handler(export)
    return grpc.method_handlers_generic_handler(ROUTES[signal].service, {"Export": handler})


@asynccontextmanager
async def http_next_hop(script: Script | None = None, tls: Tls | None = None) -> AsyncIterator[NextHop]:
    hop = NextHop(script)
    signals = {route.path: signal for signal, route in ROUTES.items()}

    async def export(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        if request.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        signal = next((signal for path, signal in signals.items() if request.path.endswith(path)), None)
        if signal is None:
            return web.Response(status=404)
        say = await hop.answer(signal, body, {**request.headers, ":path": request.path})
        if say.reset:
            assert request.transport is not None
            request.transport.abort()
        retry = {} if say.retry_after is None else {"Retry-After": str(say.retry_after)}
        return web.Response(status=say.http, body=response(say), headers={**say.headers, **retry})

    runner = web.ServerRunner(web.Server(export, auto_decompress=False, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "localhost", 0, ssl_context=server_context(tls) if tls else None).start()
    hop.endpoint = f"{'https' if tls else 'http'}://localhost:{runner.addresses[0][1]}"
    try:
        yield hop
    finally:
        await runner.cleanup()


@asynccontextmanager
async def resetting_next_hop() -> AsyncIterator[str]:
    """Accepts connections and resets each; yields the address."""

    def reset(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(reset, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


def within(seconds: float, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine with a deadline, in a loop of its own."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await scenario()

    asyncio.run(bounded())
