"""OTLP/gRPC beyond the contract table: bombs, senders that go away, and stopping."""

from __future__ import annotations

import asyncio
import gzip
import sys
import zlib

import grpc
import grpc.aio
import pytest

from luckrate_otel.errors import TooLarge
from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver, _inflated
from luckrate_otel.service.send.replies import rejected_count
from luckrate_otel.service.signals import ROUTES, Signal
from tests.next_hop import within
from tests.service.test_contract import BODY, Intake, grpc_receiver

EXPORT = ROUTES[Signal.TRACES].method
MIB = 2**20

# Tells its own largest resident size, in KiB, to whoever sends it something.
MEASURED = """
import asyncio, re, sys
from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver

async def accept(signal, body):
    return Accepted(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]))

async def main():
    receiver = GrpcReceiver(accept, max_message_bytes=16 * 2**20)
    print(await receiver.start("127.0.0.1:0"), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_gzip_bombs_are_refused_without_being_inflated() -> None:
    """gRPC before 1.84 inflates the whole of one and refuses only then; all of them inflate as many as come at once."""

    async def scenario() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", MEASURED, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        try:
            port = int(await process.stdout.readline())
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                export = channel.unary_unary(EXPORT, None, None)
                before = rejected_count(await export(BODY))
                bomb = export(bytes(256 * MIB), compression=grpc.Compression.Gzip)
                assert await bomb.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                assert rejected_count(await export(BODY)) - before < 64 * 1024
                many = [export(bytes(15 * MIB), compression=grpc.Compression.Gzip) for _ in range(20)]
                assert {await one.code() for one in many} == {grpc.StatusCode.OK}
                assert rejected_count(await export(BODY)) - before < 64 * 1024
        finally:
            process.terminate()
            await process.wait()

    within(30, scenario)


def test_a_sender_that_gives_up_cancels_its_own_request_only() -> None:
    async def scenario() -> None:
        entered, cancelled = asyncio.Event(), asyncio.Event()

        class Stuck(Intake):
            async def accept(self, signal: Signal, body: bytes) -> Accepted:
                if body == b"stuck":
                    entered.set()
                    try:
                        await asyncio.Event().wait()
                    finally:
                        cancelled.set()
                return await super().accept(signal, body)

        intake = Stuck(Accepted())
        async with grpc_receiver(intake) as channel:
            export = channel.unary_unary(EXPORT, None, None)
            stuck = export(b"stuck")
            sending = asyncio.ensure_future(stuck.code())
            await entered.wait()
            assert await export(BODY) == b""
            stuck.cancel()
            await cancelled.wait()
            assert await sending is grpc.StatusCode.CANCELLED
        assert intake.taken == [(Signal.TRACES, BODY)]

    within(10, scenario)


def test_stopping_lets_requests_in_work_finish_and_takes_no_new_ones() -> None:
    async def scenario() -> None:
        entered, go = asyncio.Event(), asyncio.Event()

        class Slow(Intake):
            async def accept(self, signal: Signal, body: bytes) -> Accepted:
                if body == b"late":
                    return Accepted()
                entered.set()
                await go.wait()
                return await super().accept(signal, body)

        intake = Slow(Accepted())
        receiver = GrpcReceiver(intake.accept)
        port = await receiver.start("127.0.0.1:0")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            export = channel.unary_unary(EXPORT, None, None)
            sending = asyncio.ensure_future(export(BODY))
            await entered.wait()
            stopping = asyncio.create_task(receiver.stop(5))
            while await export(b"late", timeout=5).code() is not grpc.StatusCode.UNAVAILABLE:
                pass  # the sender has not been told yet
            go.set()
            await stopping
            assert await sending == b""
        assert intake.taken == [(Signal.TRACES, BODY)]

    within(10, scenario)


def test_a_port_that_is_taken_is_an_error_and_not_shared() -> None:
    async def scenario() -> None:
        first, second = GrpcReceiver(Intake(Accepted()).accept), GrpcReceiver(Intake(Accepted()).accept)
        port = await first.start("127.0.0.1:0")
        with pytest.raises(OSError, match="Address already in use"):
            await second.start(f"127.0.0.1:{port}")
        await first.stop(0)
        await second.stop(0)

    within(10, scenario)


@pytest.mark.parametrize("level", range(1, 10))
def test_what_is_no_compression_passes_as_it_is_and_deflate_of_any_level_is_seen(level: int) -> None:
    looks_so = b"\x78\x9c\x01 and no deflate"
    for body in (BODY, b"", looks_so, bytes(100)):
        assert _inflated(body, 1000) == body
        assert _inflated(zlib.compress(body, level), 1000) == body
        assert _inflated(gzip.compress(body, level), 1000) == body
    for bomb in (zlib.compress(bytes(1001), level), gzip.compress(bytes(1001), level)):
        with pytest.raises(TooLarge):
            _inflated(bomb, 1000)


# The largest frame that a server must take (RFC 9113 §4.2).
FRAME_BYTES = 16 * 1024


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Of HTTP/2 (RFC 9113 §4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def request_in(coding: str, body: bytes) -> bytes:
    """A call with one compressed message, as no client of this library can make it: all of it at once, so 64 KiB at
    most, which is what may be sent before the server has said anything."""
    headers = {
        ":method": "POST", ":scheme": "http", ":path": EXPORT, ":authority": "localhost",
        "content-type": "application/grpc", "te": "trailers", "grpc-encoding": coding,
    }  # fmt: skip
    texts = [text.encode() for pair in headers.items() for text in pair]
    literal = [bytes([len(text)]) + text for text in texts]
    block = b"".join(b"\0" + name + value for name, value in zip(literal[::2], literal[1::2], strict=True))
    message = b"\1" + len(body).to_bytes(4, "big") + body
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    parts = [message[at : at + FRAME_BYTES] for at in range(0, len(message), FRAME_BYTES)]
    data = [frame(0, 1 if part is parts[-1] else 0, 1, part) for part in parts]
    return preface + frame(1, 4, 1, block) + b"".join(data)


@pytest.mark.parametrize(
    ("coding", "body", "status"),
    [
        ("deflate", zlib.compress(BODY), b"0"),
        ("gzip", gzip.compress(BODY), b"0"),
        ("gzip", gzip.compress(BODY)[:-3], b"3"),
        ("gzip", gzip.compress(BODY) + b"more", b"3"),
        ("zstd", b"\x28\xb5\x2f\xfd", b"13"),
        ("snappy", b"\2\4" + BODY, b"13"),
    ],
    ids=["deflate", "gzip", "cut short", "with more behind", "zstd", "snappy"],
)
def test_gzip_and_deflate_are_taken_and_the_library_refuses_other_compression(
    coding: str, body: bytes, status: bytes
) -> None:
    """As docs/reliability.md says; should it take more one day, the page may."""

    async def scenario() -> None:
        intake = Intake(Accepted())
        receiver = GrpcReceiver(intake.accept)
        reader, writer = await asyncio.open_connection("127.0.0.1", await receiver.start("127.0.0.1:0"))
        writer.write(request_in(coding, body))
        answer = await reader.readuntil(b"grpc-status") + await reader.readexactly(1 + len(status))
        assert answer.endswith(b"grpc-status" + bytes([len(status)]) + status)
        assert intake.taken == ([(Signal.TRACES, BODY)] if status == b"0" else [])
        writer.close()
        await receiver.stop(0)

    within(10, scenario)


@pytest.mark.parametrize("coding", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_what_inflates_to_a_large_request_waits_for_its_turn_as_it_came(coding: grpc.Compression) -> None:
    """Small ones pass it, those that are not compressed too; each arrives as it was."""

    async def scenario() -> None:
        begun: list[bytes] = []
        arrived, gate = asyncio.Event(), asyncio.Event()

        async def accept(_signal: Signal, body: bytes) -> Accepted:
            begun.append(body[:1])
            arrived.set()
            if len(body) == 3 * MIB and body[:1] != b"p":
                await gate.wait()
            return Accepted()

        receiver = GrpcReceiver(accept)
        port = await receiver.start("127.0.0.1:0")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            export = channel.unary_unary(EXPORT, None, None)
            first = asyncio.ensure_future(_sent(export, b"1" * 3 * MIB, coding))
            await arrived.wait()
            others = [asyncio.ensure_future(_sent(export, body * 3 * MIB, coding)) for body in (b"2", b"3")]
            await _sent(export, b"small", coding)
            await _sent(export, b"p" * 3 * MIB, grpc.Compression.NoCompression)
            assert begun == [b"1", b"s", b"p"]
            gate.set()
            await asyncio.gather(first, *others)
            assert begun == [b"1", b"s", b"p", b"2", b"3"]
        await receiver.stop(0)

    within(20, scenario)


async def _sent(export: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes], body: bytes, coding: grpc.Compression) -> bytes:
    return await export(body, compression=coding)
