"""OTLP/gRPC beyond the contract table: bombs, senders that go away, and stopping."""

from __future__ import annotations

import asyncio
import sys

import grpc
import grpc.aio
import pytest

from luckrate_otel.service.answers import Accepted
from luckrate_otel.service.receiver_grpc import GrpcReceiver
from luckrate_otel.service.replies import rejected_count
from luckrate_otel.service.signals import ROUTES, Signal
from tests.next_hop import within
from tests.service.test_contract import BODY, Intake, grpc_receiver

EXPORT = ROUTES[Signal.TRACES].method
MIB = 2**20

# Tells its own largest resident size, in KiB, to whoever sends it something.
MEASURED = """
import asyncio, re, sys
from luckrate_otel.service.answers import Accepted
from luckrate_otel.service.receiver_grpc import GrpcReceiver

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
def test_a_gzip_bomb_is_refused_without_being_inflated() -> None:
    """gRPC before 1.84 inflates the whole of it and refuses only then."""

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
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            await second.start(f"127.0.0.1:{port}")
        await first.stop(0)
        await second.stop(0)

    within(10, scenario)
