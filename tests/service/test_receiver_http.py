"""OTLP/HTTP beyond the contract table: streams, limits of time and memory, and senders that misbehave."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import AsyncIterator

import aiohttp
import pytest
from google.rpc import status_pb2  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.service.receive.answers import JSON, PROTOBUF, Accepted
from luckrate_otel.service.receive.inflate import CODINGS, MAX_MEMBERS, OFFERED, WINDOW_LOG, Body
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.signals import Signal
from tests.next_hop import within
from tests.service.test_contract import BODY, COMPRESS, LIMIT, NAMED, Intake, http_receiver

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"


def inflated(body: bytes, *, step: int, coding: str = "gzip", max_bytes: int = LIMIT) -> bytes:
    made = Body(coding=coding, max_bytes=max_bytes)
    for at in range(0, len(body), step):
        made.feed(body[at : at + step])
    return made.finish()


def test_every_coding_is_tried_here() -> None:
    assert {*COMPRESS, "", "identity"} == set(CODINGS)
    assert set(OFFERED.split(", ")) <= set(COMPRESS)


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("coding", COMPRESS)
def test_members_are_inflated_to_the_last(coding: str, step: int) -> None:
    made = COMPRESS[coding]
    for body, expected in (
        (made(b"ab"), b"ab"),
        (made(b"ab") + made(b"cd"), b"abcd"),
        (made(b"") * 3 + made(b"z"), b"z"),
        (made(bytes(LIMIT)), bytes(LIMIT)),
        (made(bytes(LIMIT - 1)) + made(b"z"), bytes(LIMIT - 1) + b"z"),
        (b"", b""),
    ):
        assert inflated(body, step=step, coding=coding) == expected


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (gzip.compress(b"ab") + bytes(20), b"ab"),
        (gzip.compress(b"ab") + bytes(20) + gzip.compress(b"cd"), b"abcd"),
    ],
    ids=["at the end", "between two"],
)
def test_gzip_may_be_padded(body: bytes, expected: bytes, step: int) -> None:
    assert inflated(body, step=step) == expected


SKIPPED = (0x184D2A50).to_bytes(4, "little") + (4).to_bytes(4, "little") + b"skip"


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_zstd_frames_that_are_to_be_skipped_are(step: int) -> None:
    body = SKIPPED + zstd.compress(b"ab") + SKIPPED + zstd.compress(b"cd") + SKIPPED
    assert inflated(body, step=step, coding="zstd") == b"abcd"


def windowed(log: int) -> bytes:
    """A zstd body that needs a window of 2^log bytes."""
    made = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: log})
    return made.compress(bytes(100)) + made.flush()


@pytest.mark.parametrize("step", [1, 10_000])
@pytest.mark.parametrize("coding", COMPRESS)
def test_bad_bodies_are_refused(coding: str, step: int) -> None:
    made = COMPRESS[coding]
    name = NAMED.get(coding, coding)
    rows: list[tuple[bytes, type[Exception], str]] = [
        (made(bytes(LIMIT + 1)), TooLarge, "over 1000 bytes once inflated"),
        (made(bytes(500)) * 3, TooLarge, "over 1000 bytes once inflated"),
        (made(b"ab")[:-1], Rejected, f"{name} body ends early"),
        (made(b"ab")[:1], Rejected, f"{name} body ends early"),
        (made(b"ab") + made(b"cd")[:5], Rejected, f"{name} body ends early"),
        (made(b"ab") + b"garbage", Rejected, f"not valid {name}"),
        (made(made(b"ab"))[1:], Rejected, f"not valid {name}"),
        (b"not compressed", Rejected, f"not valid {name}"),
    ]
    if name == "gzip":
        rows.append((made(b"ab")[:-8] + b"\1\2\3\4" + made(b"ab")[-4:], Rejected, "not valid gzip"))
    if name == "zstd":
        rows.append((windowed(WINDOW_LOG + 1), Rejected, "not valid zstd"))
    for body, error, message in rows:
        with pytest.raises(error, match=message) as raised:
            inflated(body, step=step, coding=coding)
        assert raised.type is error


def test_a_zstd_window_as_the_collectors_best_level_uses_is_taken() -> None:
    assert inflated(windowed(WINDOW_LOG), step=7, coding="zstd") == bytes(100)


@pytest.mark.parametrize("coding", COMPRESS)
@pytest.mark.parametrize(("members", "ok"), [(MAX_MEMBERS, True), (MAX_MEMBERS + 1, False)])
def test_a_flood_of_empty_members_is_cut_off(coding: str, members: int, ok: bool) -> None:
    body = COMPRESS[coding](b"") * members
    if ok:
        assert inflated(body, step=4096, coding=coding, max_bytes=10**6) == b""
    else:
        with pytest.raises(Rejected, match="more than 1024 members"):
            inflated(body, step=4096, coding=coding, max_bytes=10**6)


@pytest.mark.parametrize("coding", COMPRESS)
def test_inflating_stops_at_the_limit_and_not_after_it(coding: str) -> None:
    """A mebibyte of zeros in a kilobyte: what is held never passes the limit, or twice that with a zstd window."""
    body = Body(coding=coding, max_bytes=2**16)
    with pytest.raises(TooLarge):
        body.feed(COMPRESS[coding](bytes(2**20)))
    assert body.size == (2**16 + 1) * (2 if coding == "zstd" else 1)


def test_a_chunked_body_of_several_gzip_members_arrives_whole() -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())

        async def chunks() -> AsyncIterator[bytes]:
            for body in (b"ab", b"cd"):
                yield gzip.compress(body)

        async with http_receiver(intake) as url, aiohttp.ClientSession() as session:
            headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
            async with session.post(f"{url}/v1/traces", data=chunks(), headers=headers) as response:
                assert response.status == 200
        assert intake.taken == [(Signal.TRACES, b"abcd")]

    within(10, scenario)


async def talk(url: str, *sent: bytes) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
    """Send raw bytes; return the head of the first answer and the open connection."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for data in sent:
        writer.write(data)
    return await reader.readuntil(b"\r\n\r\n"), reader, writer


def test_a_sender_that_trickles_is_told_408_and_cut_off_however_often_it_writes() -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        async with http_receiver(intake, deadline=0.2) as url:
            host, port = url.removeprefix("http://").split(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(HEAD + b"Content-Length: 999\r\n\r\n")

            async def trickle() -> None:
                while True:
                    writer.write(b"x")
                    await asyncio.sleep(0.01)  # the misbehaviour under test, not a wait

            trickling = asyncio.create_task(trickle())
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 ")
            assert b"Connection: close" in head
            trickling.cancel()
            writer.close()
        assert intake.taken == []

    within(10, scenario)


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_sent() -> None:
    async def scenario() -> None:
        async with http_receiver(Intake(Accepted())) as url:
            head, _, writer = await talk(url, HEAD + b"Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 413 ")
            writer.close()

    within(10, scenario)


def test_a_sender_that_asks_before_sending_is_told_to_go_on() -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        async with http_receiver(intake) as url:
            head, reader, writer = await talk(url, HEAD + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
            assert head == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(BODY)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
            writer.close()
        assert intake.taken == [(Signal.TRACES, BODY)]

    within(10, scenario)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02 rubbish\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_not_http_is_refused_with_a_status_and_no_traceback(sent: bytes) -> None:
    async def scenario() -> None:
        async with http_receiver(Intake(Accepted())) as url:
            head, reader, writer = await talk(url, sent)
            assert head.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            made = status_pb2.Status.FromString(await reader.readexactly(length))
            assert made.message in ("not a valid HTTP request", "request body is not valid HTTP")
            writer.close()

    within(10, scenario)


def test_a_sender_that_hangs_up_half_way_costs_nothing_to_the_next() -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        async with http_receiver(intake, max_buffered_bytes=900) as url:
            for _ in range(3):
                host, port = url.removeprefix("http://").split(":")
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(HEAD + b"Content-Length: 999\r\n\r\n" + b"x" * 800)
                await writer.drain()
                writer.transport.abort()
            async with aiohttp.ClientSession() as session:
                headers = {"Content-Type": PROTOBUF}
                while True:  # until the aborted connections are noticed
                    async with session.post(f"{url}/v1/traces", data=b"y" * 800, headers=headers) as response:
                        if response.status == 200:
                            break
                        assert response.status == 503
        assert intake.taken == [(Signal.TRACES, b"y" * 800)]

    within(10, scenario)


def test_bodies_in_work_are_bounded_together_and_the_rest_is_asked_to_come_back() -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        entered = asyncio.Event()

        class Slow(Intake):
            async def accept(self, signal: Signal, body: bytes) -> Accepted:
                entered.set()
                await gate.wait()
                return await super().accept(signal, body)

        async with http_receiver(Slow(Accepted()), max_buffered_bytes=1500) as url, aiohttp.ClientSession() as session:

            async def post(size: int) -> int:
                headers = {"Content-Type": PROTOBUF}
                async with session.post(f"{url}/v1/traces", data=b"x" * size, headers=headers) as response:
                    return response.status

            first = asyncio.create_task(post(900))
            await entered.wait()
            assert await post(601) == 503
            second = asyncio.create_task(post(600))
            gate.set()
            assert (await first, await second, await post(900)) == (200, 200, 200)

    within(10, scenario)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "request: expected an object"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"kind": "SERVER"}]}]}]}', "scopeSpans[0].spans[0].kind"),
        (b'{"resourceSpans":' * 20_000, "nested too deep"),
    ],
)
def test_json_that_is_no_request_is_refused_in_json_and_names_the_place(body: bytes, message: str) -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        receiver = HttpReceiver(intake.accept, grace=0.1)
        url = f"http://127.0.0.1:{await receiver.start('127.0.0.1', 0)}/v1/traces"
        headers = {"Content-Type": JSON}
        async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as response:
            answer = await response.json()
            assert (response.status, answer["code"]) == (400, 3)
            assert message in answer["message"]
        await receiver.stop()
        assert intake.taken == []

    within(10, scenario)


def test_json_becomes_the_same_request_in_protobuf() -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        receiver = HttpReceiver(intake.accept, grace=0.1)
        url = f"http://127.0.0.1:{await receiver.start('127.0.0.1', 0)}/v1/traces"
        span = {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "eee19b7ec3c1b174", "startTimeUnixNano": "7"}
        document = {"resourceSpans": [{"scopeSpans": [{"spans": [span], "unknown": 1}]}]}
        async with aiohttp.ClientSession() as session, session.post(url, json=document) as response:
            assert (response.status, await response.json()) == (200, {})
        await receiver.stop()
        expected = ExportTraceServiceRequest()
        expected.resource_spans.add().scope_spans.add().spans.add(
            trace_id=bytes.fromhex("5b8efff798038103d269b633813fc60c"),
            span_id=bytes.fromhex("eee19b7ec3c1b174"),
            start_time_unix_nano=7,
        )
        ((signal, body),) = intake.taken
        assert (signal, ExportTraceServiceRequest.FromString(body)) == (Signal.TRACES, expected)

    within(10, scenario)
