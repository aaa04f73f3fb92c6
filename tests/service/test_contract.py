"""The OTLP contract, one row per condition: what it is on gRPC, what it is on HTTP, in both encodings."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import grpc
import grpc.aio
import pytest
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from luckrate_otel.errors import Busy, Rejected, TooLarge
from luckrate_otel.service.receive.answers import ANSWERS, JSON, PROTOBUF, Accepted, Outcome, accepted_body, short
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.signals import ROUTES, Signal
from tests.next_hop import within

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LIMIT = 1000
BODY = b"\x0a\x00"


class Intake:
    """The stage behind the receivers: takes what it is given, or raises what the test wants."""

    def __init__(self, outcome: Accepted | Exception) -> None:
        self.outcome = outcome
        self.taken: list[tuple[Signal, bytes]] = []

    async def accept(self, signal: Signal, body: bytes) -> Accepted:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        self.taken.append((signal, body))
        return self.outcome


def from_json(_signal: Signal, body: bytes) -> bytes:
    """Stands in for the JSON decoder: what matters here is that its answer reaches the next stage."""
    if not body.startswith(b"{"):
        raise Rejected("body is not valid JSON")
    return BODY


@dataclass(frozen=True)
class Row:
    """condition → gRPC code and whether it carries RetryInfo → HTTP status and headers.

    code None: cannot happen on gRPC, or the library itself answers.
    """

    name: str
    http: int
    code: grpc.StatusCode | None
    outcome: Accepted | Exception = field(default_factory=Accepted)
    retry: bool = False
    body: bytes = BODY
    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    path: str = "/v1/traces"
    method: str = "POST"
    token: str | None = None
    compression: grpc.Compression = grpc.Compression.NoCompression
    message: str | None = None


# Each coding with what makes it; the Collector's exporter offers `zlib` as a second name of deflate.
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "zstd": zstd.compress,
    "deflate": zlib.compress,
    "zlib": zlib.compress,
}
NAMED = {"x-gzip": "gzip", "zlib": "deflate"}

C = grpc.StatusCode
ROWS = [
    Row("success", 200, C.OK),
    Row("empty request", 200, C.OK, body=b""),
    Row("partial", 200, C.OK, Accepted(3, "three spans have no id")),
    Row("warning only", 200, C.OK, Accepted(0, "deprecated field")),
    Row("rejected", 400, C.INVALID_ARGUMENT, Rejected("no such field"), message="no such field"),
    Row("too large for what follows", 413, C.RESOURCE_EXHAUSTED, TooLarge("bigger than the queue")),
    Row("too large on the wire", 413, C.RESOURCE_EXHAUSTED, body=b"x" * (LIMIT + 1)),
    Row("largest allowed", 200, C.OK, body=b"x" * LIMIT),
    Row(
        "too large once inflated", 413, C.RESOURCE_EXHAUSTED, body=bytes(100_000),
        request_headers={"Content-Encoding": "gzip"}, compression=grpc.Compression.Gzip,
    ),
    Row(
        "largest allowed, inflated", 200, C.OK, body=bytes(LIMIT),
        request_headers={"Content-Encoding": "gzip"}, compression=grpc.Compression.Gzip,
    ),
    Row("busy", 503, C.UNAVAILABLE, Busy("queue is full", 2.5), retry=True, response_headers={"Retry-After": "3"}),
    Row("busy for no time", 503, C.UNAVAILABLE, Busy("full", 0.0), retry=True, response_headers={"Retry-After": "1"}),
    Row(
        "our own fault", 503, C.UNAVAILABLE, KeyError("secret"), retry=True, response_headers={"Retry-After": "1"},
        message="internal error; nothing was taken, try again",
    ),
    Row("no token", 401, C.UNAUTHENTICATED, token="s3cret", response_headers={"WWW-Authenticate": "Bearer"}),
    Row("wrong token", 401, C.UNAUTHENTICATED, token="s3cret", request_headers={"Authorization": "Bearer s3cre"}),
    Row("longer token", 401, C.UNAUTHENTICATED, token="s3cret", request_headers={"Authorization": "Bearer s3cret1"}),
    Row("wrong scheme", 401, C.UNAUTHENTICATED, token="s3cret", request_headers={"Authorization": "Basic s3cret"}),
    Row("right token", 200, C.OK, token="s3cret", request_headers={"Authorization": "bearer s3cret"}),
    Row("wrong path", 404, C.UNIMPLEMENTED, path="/v1/trace"),
    Row("wrong method", 405, None, method="GET", response_headers={"Allow": "POST"}),
    Row("unsupported encoding", 415, None, request_headers={"Content-Encoding": "br"},
        response_headers={"Accept-Encoding": "gzip, zstd, deflate"}),
    *(
        row
        for coding in ("gzip", "zstd", "deflate", "zlib", "x-gzip")
        for row in (
            Row(f"{coding}", 200, None, request_headers={"Content-Encoding": coding}, body=b"x" * LIMIT),
            Row(f"{coding} too large inflated", 413, None, request_headers={"Content-Encoding": coding},
                body=bytes(LIMIT + 1)),
            Row(f"{coding} cut short", 400, None, request_headers={"Content-Encoding": coding}, body=b"",
                message=f"{NAMED.get(coding, coding)} body ends early"),
        )
    ),
    Row("coding in capitals", 200, None, request_headers={"Content-Encoding": "GZIP"}),
    Row("no coding by name", 200, None, request_headers={"Content-Encoding": ""}),
    Row("two codings", 415, None, request_headers={"Content-Encoding": "gzip, zstd"}),
    Row("content type with a parameter", 200, None, request_headers={"Content-Type": "%s; charset=utf-8"}),
]  # fmt: skip


@asynccontextmanager
async def http_receiver(intake: Intake, refused: Counter[Outcome] | None = None, **options: Any) -> AsyncIterator[str]:
    receiver = HttpReceiver(intake.accept, from_json=from_json, max_message_bytes=LIMIT, grace=0.1, **options)
    port = await receiver.start("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await receiver.stop()
        if refused is not None:
            refused.update(receiver.refused)


@asynccontextmanager
async def grpc_receiver(intake: Intake, **options: Any) -> AsyncIterator[grpc.aio.Channel]:
    receiver = GrpcReceiver(intake.accept, max_message_bytes=LIMIT, **options)
    port = await receiver.start("127.0.0.1:0")
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await receiver.stop(0)


@pytest.mark.parametrize("media", [PROTOBUF, JSON])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_http(row: Row, media: str) -> None:
    async def scenario() -> None:
        intake = Intake(row.outcome)
        body = b"{}".ljust(len(row.body)) if media == JSON and row.body else row.body
        headers = {"Content-Type": media, **row.request_headers}
        headers["Content-Type"] = headers["Content-Type"].replace("%s", media)
        compress = COMPRESS.get(row.request_headers.get("Content-Encoding", "").lower())
        if compress is not None:
            body = compress(body) if body else compress(BODY)[:-3]
        if media == JSON and not body:
            body = b"{}"  # nothing at all is not JSON
        counted: Counter[Outcome] = Counter()
        async with http_receiver(intake, counted, token=row.token) as url, aiohttp.ClientSession() as session:
            request = session.request(row.method, url + row.path, data=body, headers=headers)
            async with request as response:
                answer = await response.read()
                assert (response.status, response.content_type) == (row.http, media)
                for name, value in row.response_headers.items():
                    assert response.headers[name] == value
        assert sum(counted.values()) == (row.http != 200)
        if row.http == 200:
            assert isinstance(row.outcome, Accepted)
            assert len(intake.taken) == 1
            check_accepted(answer, media, row.outcome)
        else:
            assert intake.taken == []
            check_status(answer, media, row)

    within(10, scenario)


@pytest.mark.parametrize("row", [row for row in ROWS if row.code is not None], ids=lambda row: row.name)
def test_grpc(row: Row) -> None:
    async def scenario() -> None:
        intake = Intake(row.outcome)
        method = ROUTES[Signal.TRACES].method if row.path == "/v1/traces" else "/no.such.Service/Export"
        metadata = [(k.lower(), v) for k, v in row.request_headers.items() if k == "Authorization"]
        async with grpc_receiver(intake, token=row.token) as channel:
            call = channel.unary_unary(method, None, None)(row.body, metadata=metadata, compression=row.compression)
            assert await call.code() is row.code
            if row.code is C.OK:
                assert isinstance(row.outcome, Accepted)
                check_accepted(await call, PROTOBUF, row.outcome)
                assert intake.taken == [(Signal.TRACES, row.body)]
                return
            assert intake.taken == []
            details = dict(await call.trailing_metadata() or ()).get("grpc-status-details-bin")
            if details is None:  # answered by the library, before any handler
                assert not row.retry
                assert row.name in ("wrong path", "too large on the wire")
            else:
                check_status(details, PROTOBUF, row, (await call.details()) or "")

    within(10, scenario)


def check_accepted(answer: bytes, media: str, accepted: Accepted) -> None:
    plain = accepted == Accepted()
    if media == JSON:
        partial = f'{{"rejectedSpans": "{accepted.rejected}", "errorMessage": "{accepted.message}"}}'
        assert answer == (b"{}" if plain else f'{{"partialSuccess": {partial}}}'.encode())
        return
    made = trace_service_pb2.ExportTraceServiceResponse.FromString(answer)
    assert made.HasField("partial_success") is not plain
    assert (made.partial_success.rejected_spans, made.partial_success.error_message) == (
        accepted.rejected,
        accepted.message,
    )


def check_status(answer: bytes, media: str, row: Row, grpc_message: str | None = None) -> None:
    made = status_pb2.Status()
    if media == JSON:
        json_format.Parse(answer, made)
    else:
        made.ParseFromString(answer)
    assert made.message != ""
    assert grpc_message in (None, made.message)
    assert made.message == (row.message or made.message)
    assert "secret" not in made.message
    assert made.code == (row.code.value[0] if row.code else made.code)
    assert any(detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for detail in made.details) is row.retry
    assert any(detail.Is(error_details_pb2.BadRequest.DESCRIPTOR) for detail in made.details) is (row.http == 400)


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/jsonx"])
def test_other_content_types_are_refused_in_protobuf(content_type: str) -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        async with http_receiver(intake) as url, aiohttp.ClientSession() as session:
            headers = {"Content-Type": content_type}
            async with session.post(f"{url}/v1/traces", data=BODY, headers=headers) as response:
                assert (response.status, response.content_type) == (415, PROTOBUF)
                assert status_pb2.Status.FromString(await response.read()).message.startswith("content type must be")
        assert intake.taken == []

    within(10, scenario)


def test_only_what_may_succeed_later_is_retryable_on_both_wires() -> None:
    retryable = {Outcome.BUSY, Outcome.FAULT}
    assert {outcome for outcome, answer in ANSWERS.items() if answer.retry} == retryable
    assert set(ANSWERS) == set(Outcome)
    for outcome, answer in ANSWERS.items():
        assert (answer.http in (429, 502, 503, 504)) is (outcome in retryable)


@pytest.mark.parametrize("letter", ["x", "ß", "😀", "\n", "\ud800"])
def test_trailers_stay_under_8_kib_however_long_the_message(letter: str) -> None:
    async def scenario() -> None:
        async with grpc_receiver(Intake(Rejected(letter * 100_000))) as channel:
            call = channel.unary_unary(ROUTES[Signal.TRACES].method, None, None)(BODY)
            assert await call.code() is C.INVALID_ARGUMENT
            trailers = dict(await call.trailing_metadata() or ())
            details = trailers["grpc-status-details-bin"]
            assert len(details) * 4 / 3 + 3 * len(((await call.details()) or "").encode()) < 8192 - 200

    within(10, scenario)


def test_messages_are_cut_between_characters() -> None:
    assert short("x" * 1023 + "ß") == "x" * 1023
    assert short("x" * 1022 + "ß") == "x" * 1022 + "ß"


ACCEPTED_JSON: list[tuple[Signal, str]] = [
    (Signal.TRACES, "rejectedSpans"),
    (Signal.METRICS, "rejectedDataPoints"),
    (Signal.LOGS, "rejectedLogRecords"),
    (Signal.PROFILES, "rejectedProfiles"),
]


@pytest.mark.parametrize(("signal", "key"), ACCEPTED_JSON)
def test_every_signal_is_received_on_both_wires_and_names_its_own_count(signal: Signal, key: str) -> None:
    async def scenario() -> None:
        intake = Intake(Accepted(1, "m"))
        async with http_receiver(intake) as url, aiohttp.ClientSession() as session:
            for media in (PROTOBUF, JSON):
                headers = {"Content-Type": media}
                async with session.post(url + ROUTES[signal].path, data=b"{raw}", headers=headers) as response:
                    if media == PROTOBUF:
                        assert accepted_body(signal, Accepted(1, "m")) == await response.read()
                    elif signal is Signal.PROFILES:  # there is no stable JSON form to read
                        assert response.status == 415
                    else:
                        assert await response.json() == {"partialSuccess": {key: "1", "errorMessage": "m"}}
        async with grpc_receiver(intake) as channel:
            await channel.unary_unary(ROUTES[signal].method, None, None)(b"raw \xff bytes")
        over_json = [] if signal is Signal.PROFILES else [(signal, BODY)]
        assert intake.taken == [(signal, b"{raw}"), *over_json, (signal, b"raw \xff bytes")]

    within(10, scenario)
