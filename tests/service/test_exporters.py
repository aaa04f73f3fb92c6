"""What each wire sends to a next hop, and how each answer is understood."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types

from luckrate_otel.service.receive.answers import PROTOBUF
from luckrate_otel.service.send.exporter_grpc import GrpcTransport, grpc_target
from luckrate_otel.service.send.exporter_http import HttpTransport, base_url
from luckrate_otel.service.send.replies import Kind, Reply, grpc_reply, http_reply, rejected_count
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.service.tls import Tls
from tests.next_hop import Say, grpc_next_hop, http_next_hop, resetting_next_hop, within

CERTS = Path(__file__).parent / "certs"
SERVER = Tls(str(CERTS / "server.pem"), str(CERTS / "server.key"))
MUTUAL = Tls(SERVER.cert, SERVER.key, str(CERTS / "ca.pem"))
TRUSTING = Tls(ca=str(CERTS / "ca.pem"))
KNOWN = Tls(str(CERTS / "client.pem"), str(CERTS / "client.key"), str(CERTS / "ca.pem"))
STRANGER = Tls(str(CERTS / "other.pem"), str(CERTS / "other.key"), str(CERTS / "ca.pem"))
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
C = grpc.StatusCode


def details(retry_after: float | None) -> bytes:
    made = status_pb2.Status(code=8, message="m")
    made.details.add().Pack(error_details_pb2.BadRequest())
    if retry_after is not None:
        delay = Duration()
        delay.FromNanoseconds(int(retry_after * 1e9))
        made.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return bytes(made.SerializeToString())


GRPC_KINDS = {
    C.CANCELLED: Kind.RETRY,
    C.UNKNOWN: Kind.REFUSED,
    C.INVALID_ARGUMENT: Kind.INVALID,
    C.DEADLINE_EXCEEDED: Kind.RETRY,
    C.NOT_FOUND: Kind.REFUSED,
    C.ALREADY_EXISTS: Kind.REFUSED,
    C.PERMISSION_DENIED: Kind.REFUSED,
    C.UNAUTHENTICATED: Kind.REFUSED,
    C.RESOURCE_EXHAUSTED: Kind.TOO_LARGE,
    C.FAILED_PRECONDITION: Kind.REFUSED,
    C.ABORTED: Kind.RETRY,
    C.OUT_OF_RANGE: Kind.RETRY,
    C.UNIMPLEMENTED: Kind.UNSUPPORTED,
    C.INTERNAL: Kind.REFUSED,
    C.UNAVAILABLE: Kind.RETRY,
    C.DATA_LOSS: Kind.RETRY,
}


@pytest.mark.parametrize("code", [code for code in C if code is not C.OK])
def test_every_grpc_code(code: grpc.StatusCode) -> None:
    assert grpc_reply(code, None) == Reply(GRPC_KINDS[code], code.name)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (details(None), Reply(Kind.TOO_LARGE, "RESOURCE_EXHAUSTED")),
        (details(0), Reply(Kind.RETRY, "RESOURCE_EXHAUSTED", retry_after=0.0)),
        (details(1.5), Reply(Kind.RETRY, "RESOURCE_EXHAUSTED", retry_after=1.5)),
        (details(-3), Reply(Kind.RETRY, "RESOURCE_EXHAUSTED", retry_after=0.0)),
        (b"\xff\xff", Reply(Kind.TOO_LARGE, "RESOURCE_EXHAUSTED")),
    ],
)
def test_resource_exhausted_is_retried_only_when_told_when(info: bytes, expected: Reply) -> None:
    assert grpc_reply(C.RESOURCE_EXHAUSTED, info) == expected


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, Kind.SENT), (202, Kind.SENT), (204, Kind.SENT), (301, Kind.REFUSED), (307, Kind.REFUSED),
        (400, Kind.INVALID), (401, Kind.REFUSED), (403, Kind.REFUSED), (404, Kind.UNSUPPORTED),
        (405, Kind.UNSUPPORTED), (408, Kind.REFUSED), (413, Kind.TOO_LARGE), (415, Kind.REFUSED), (429, Kind.RETRY),
        (500, Kind.REFUSED), (501, Kind.UNSUPPORTED), (502, Kind.RETRY), (503, Kind.RETRY), (504, Kind.RETRY),
        (505, Kind.REFUSED),
    ],
)  # fmt: skip
def test_http_statuses(status: int, kind: Kind) -> None:
    assert http_reply(status, None, lambda: NOW) == Reply(kind, str(status))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0), (" 0 ", 0.0), ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0), ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
        ("soon", None), ("-5", None), ("1.5", None), ("٣", None), ("", None), ("9" * 5000, 999999999.0),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(header: str, seconds: float | None) -> None:
    assert http_reply(503, header, lambda: NOW).retry_after == seconds


@pytest.mark.parametrize(
    ("response", "count"),
    [(b"", 0), (b"\x0a\x02\x08\x05", 5), (b"<html>", 0), (b"\x0a\x0b\x08" + b"\xff" * 9 + b"\x01", 0)],
)
def test_partial_success_is_read_and_rubbish_is_success(response: bytes, count: int) -> None:
    assert rejected_count(response) == count


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [
        ("http://collector:14317", ("collector:14317", False)),
        ("https://collector:443", ("collector:443", True)),
        ("https://collector", ("collector:4317", True)),
        ("http://[::1]:4317/ignored", ("[::1]:4317", False)),
        ("127.0.0.1:4317", ("127.0.0.1:4317", False)),
        ("unix:///run/otlp.sock", ("unix:///run/otlp.sock", False)),
    ],
)
def test_grpc_endpoints(endpoint: str, target: tuple[str, bool]) -> None:
    assert grpc_target(endpoint) == target


@pytest.mark.parametrize(
    ("endpoint", "base"),
    [
        ("http://c:4318", "http://c:4318"),
        ("http://c:4318/", "http://c:4318"),
        ("https://c/otlp/", "https://c/otlp"),
        ("https://c/otlp/v1/traces", "https://c/otlp"),
        ("https://c/v1development/profiles", "https://c"),
    ],
)
def test_http_endpoints(endpoint: str, base: str) -> None:
    assert base_url(endpoint) == base


@pytest.mark.parametrize("gzip", [False, True])
@pytest.mark.parametrize("signal", Signal)
def test_grpc_sends_the_bytes_it_was_given_with_headers(signal: Signal, gzip: bool) -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            transport = GrpcTransport(hop.endpoint, headers={"X-Team": "a"}, gzip=gzip)
            assert await transport.send(signal, b"raw \xff" * 100) == Reply(Kind.SENT, "OK")
            await transport.close()
            (request,) = hop.requests
            assert (request.signal, request.body) == (signal, b"raw \xff" * 100)
            assert request.headers["x-team"] == "a"

    within(10, scenario)


@pytest.mark.parametrize("gzip", [False, True])
@pytest.mark.parametrize("signal", Signal)
def test_http_sends_the_bytes_it_was_given_with_headers(signal: Signal, gzip: bool) -> None:
    async def scenario() -> None:
        async with http_next_hop() as hop:
            transport = HttpTransport(f"{hop.endpoint}/prefix/", headers={"X-Team": "a"}, gzip=gzip)
            assert await transport.send(signal, b"raw \xff" * 100) == Reply(Kind.SENT, "200")
            await transport.close()
            (request,) = hop.requests
            assert (request.signal, request.body) == (signal, b"raw \xff" * 100)
            assert request.headers["X-Team"] == "a"
            assert request.headers["Content-Type"] == PROTOBUF
            assert request.headers.get("Content-Encoding") == ("gzip" if gzip else None)
            assert request.headers[":path"] == f"/prefix{ROUTES[signal].path}"

    within(10, scenario)


@pytest.mark.parametrize(
    ("say", "over_grpc", "over_http"),
    [
        (Say(rejected=4), Reply(Kind.SENT, "OK", 4), Reply(Kind.SENT, "200", 4)),
        (
            Say(C.UNAVAILABLE, 503, retry_after=2.0),
            Reply(Kind.RETRY, "UNAVAILABLE", retry_after=2.0),
            Reply(Kind.RETRY, "503"),
        ),
        (Say(C.UNAVAILABLE, 503, retry_after="2"), Reply(Kind.RETRY, "UNAVAILABLE"), Reply(Kind.RETRY, "503", 0, 2.0)),
        (Say(C.INVALID_ARGUMENT, 400), Reply(Kind.INVALID, "INVALID_ARGUMENT"), Reply(Kind.INVALID, "400")),
        (
            Say(C.INTERNAL, 302, headers={"Location": "/v1/traces"}),
            Reply(Kind.REFUSED, "INTERNAL"),
            Reply(Kind.REFUSED, "302"),
        ),
    ],
)
def test_answers_on_the_wire(say: Say, over_grpc: Reply, over_http: Reply) -> None:
    async def scenario() -> None:
        async with grpc_next_hop(lambda _signal, _body: say) as grpc_hop, http_next_hop(grpc_hop.script) as http_hop:
            for transport, expected in (
                (GrpcTransport(grpc_hop.endpoint), over_grpc),
                (HttpTransport(http_hop.endpoint), over_http),
            ):
                assert await transport.send(Signal.TRACES, b"body") == expected
                await transport.close()
            assert len(http_hop.requests) == 1  # a redirect was not followed

    within(10, scenario)


def test_an_exact_endpoint_is_used_as_it_is() -> None:
    async def scenario() -> None:
        async with http_next_hop() as hop:
            transport = HttpTransport(f"{hop.endpoint}/own/v1/traces", exact=True)
            await transport.send(Signal.LOGS, b"body")
            await transport.close()
            assert hop.requests[0].headers[":path"] == "/own/v1/traces"

    within(10, scenario)


def test_a_grpc_endpoint_without_scheme_takes_tls_when_it_is_given() -> None:
    async def scenario() -> None:
        async with grpc_next_hop(tls=SERVER) as hop:
            transport = GrpcTransport(hop.endpoint.removeprefix("https://"), tls=TRUSTING)
            assert await transport.send(Signal.TRACES, b"body") == Reply(Kind.SENT, "OK")
            await transport.close()

    within(10, scenario)


def test_a_stream_that_is_reset_is_no_answer_of_the_next_hop_and_retried() -> None:
    """As a proxy does when its upstream dies: RST_STREAM with INTERNAL_ERROR on a healthy connection."""

    async def scenario() -> None:
        async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            settings, reset_stream = frame(4), frame(3, 1, (2).to_bytes(4, "big"))
            writer.write(settings)
            received = b""
            while b"/opentelemetry" not in received:
                received += await reader.read(1000)
            writer.write(reset_stream)
            while await reader.read(1000):
                pass
            writer.close()
            await writer.wait_closed()
            closed.set()

        closed = asyncio.Event()
        server = await asyncio.start_server(reset, "127.0.0.1", 0)
        transport = GrpcTransport(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", timeout=5)
        assert await transport.send(Signal.TRACES, b"body") == Reply(Kind.RETRY, "RST_STREAM")
        await transport.close()
        await closed.wait()
        server.close()
        await server.wait_closed()

    within(10, scenario)


def frame(kind: int, stream: int = 0, payload: bytes = b"") -> bytes:
    """One HTTP/2 frame without flags."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + payload


def test_no_connection_a_reset_and_silence_are_all_retried() -> None:
    async def scenario() -> None:
        never = asyncio.Event()
        silent = Say(wait_for=never)
        async with (
            resetting_next_hop() as resetting,
            grpc_next_hop(lambda _signal, _body: silent) as slow_grpc,
            http_next_hop(lambda _signal, _body: silent) as slow_http,
            http_next_hop(lambda _signal, _body: Say(reset=True)) as abrupt,
        ):
            nobody = "http://127.0.0.1:1"
            codes = []
            for transport in (
                GrpcTransport(nobody, timeout=5),
                GrpcTransport(resetting, timeout=5),
                GrpcTransport(slow_grpc.endpoint, timeout=0.2),
                HttpTransport(nobody, timeout=5),
                HttpTransport(resetting, timeout=5),
                HttpTransport(slow_http.endpoint, timeout=0.2),
                HttpTransport(abrupt.endpoint, timeout=5),
            ):
                reply = await transport.send(Signal.TRACES, b"body")
                assert reply.kind is Kind.RETRY
                codes.append(reply.code)
                await transport.close()
            never.set()
        assert codes[:4] == ["UNAVAILABLE", "UNAVAILABLE", "DEADLINE_EXCEEDED", "ClientConnectorError"]
        assert codes[5] in ("TimeoutError", "ConnectionTimeoutError", "SocketTimeoutError")

    within(20, scenario)


@pytest.mark.parametrize(
    ("server", "client", "kind"),
    [
        (SERVER, TRUSTING, Kind.SENT),
        (SERVER, None, Kind.RETRY),  # signed by nobody that the system knows
        (MUTUAL, KNOWN, Kind.SENT),
        (MUTUAL, TRUSTING, Kind.RETRY),
        (MUTUAL, STRANGER, Kind.RETRY),
    ],
)
def test_tls_and_mtls_to_the_next_hop(server: Tls, client: Tls | None, kind: Kind) -> None:
    async def scenario() -> None:
        async with grpc_next_hop(tls=server) as grpc_hop, http_next_hop(tls=server) as http_hop:
            for hop, transport in (
                (grpc_hop, GrpcTransport(grpc_hop.endpoint, tls=client, timeout=5)),
                (http_hop, HttpTransport(http_hop.endpoint, tls=client, timeout=5)),
            ):
                assert (await transport.send(Signal.TRACES, b"body")).kind is kind
                await transport.close()
                assert len(hop.requests) == (kind is Kind.SENT)

    within(20, scenario)
