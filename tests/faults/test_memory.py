"""Memory stays within its bounds whatever comes, and goes back to nothing when it is over."""

from __future__ import annotations

import asyncio
import io
import os
import random
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import grpc
import grpc.aio
import pytest

from luckrate_otel.otlp.wire import varint
from luckrate_otel.service.signals import ROUTES, Signal
from tests.faults.figures import note
from tests.faults.load import Sender, arrived, run
from tests.faults.processor import Processor, assert_balanced, processor
from tests.next_hop import grpc_next_hop, within
from tests.service.test_contract import COMPRESS

pytestmark = pytest.mark.slow
MIB = 2**20
# Well past the bound. Only in `make soak`: it is minutes of work.
FLOOD_BYTES = int(os.environ.get("LUCKRATE_FLOOD_MIB", "0")) * MIB
LIMITS = "{held_bytes: 64MiB, late_bytes: 8MiB, link_bytes: 8MiB, conversation_bytes: 8MiB}"
QUEUE_MIB = 64
BOUND = (64 + 8 + 8 + 8 + QUEUE_MIB) * MIB


def never_closing(chance: random.Random) -> Iterator[bytes]:
    """Traces whose root never comes."""
    while True:
        yield b"".join(body for _ in range(50) for body in run(chance, filler=2000, rootless=True).requests)


def megabytes(chance: random.Random) -> Iterator[bytes]:
    """Spans of 1 MiB."""
    while True:
        yield from run(chance, tools=1, filler=MIB, rootless=True).requests


def one_trace(chance: random.Random) -> Iterator[bytes]:
    """One trace of 50,000 spans, then its like."""
    while True:
        parts = run(chance, tools=50_000, filler=10).requests
        yield from parts


FLOODS = {"traces that never close": never_closing, "spans of 1 MiB": megabytes, "a trace of 50,000 spans": one_trace}


@pytest.mark.skipif(not FLOOD_BYTES, reason="a flood past the bound takes minutes: make soak")
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_stays_within_the_bound(name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            destinations = f'{{backend: {{endpoint: "{hop.endpoint}", queue_bytes: {QUEUE_MIB}MiB}}}}'
            options = {"limits": LIMITS, "release_after": "1h", "verdict_after": "1h"}
            async with processor(tmp_path, "", destinations=destinations, **options) as subject:
                sender = Sender(subject.grpc, random.Random(1), timeout=300)
                await sender.send(run(sender.chance))
                await subject.until(lambda told: told["runs"]["graded"] == 1)
                base = subject.rss_bytes
                highest, sent = await flood(subject, sender, FLOODS[name](sender.chance))
                assert_balanced(await subject.status())
                assert await subject.stop() == 0
                assert sender.acknowledged - set(arrived([hop]).spans) == set()
                note(
                    f"flood: {name}",
                    sent_mib=round(sent / MIB),
                    bound_mib=BOUND // MIB,
                    base_mib=round(base / MIB),
                    highest_mib=round(highest / MIB),
                    allowed_mib=round((1.3 * BOUND + base) / MIB),
                )
                assert highest <= 1.3 * BOUND + base

    within(600, scenario)


async def flood(subject: Processor, sender: Sender, bodies: Iterator[bytes]) -> tuple[int, int]:
    """Highest resident memory meanwhile, and the bytes sent."""
    highest = sent = 0
    while sent < FLOOD_BYTES:
        some = [next(bodies) for _ in range(4)]
        await asyncio.gather(*(sender.until_taken(body) for body in some))
        sent += sum(map(len, some))
        highest = max(highest, subject.rss_bytes)
    return highest, sent


# Bodies in work over HTTP share this; over gRPC only what was really sent is held beyond the queue.
IN_WORK = 256 * MIB


@pytest.mark.parametrize("wire", ["grpc", "http gzip", "http zstd"])
def test_bombs_at_once_take_no_more_than_bodies_may(wire: str, tmp_path: Path) -> None:
    """Forty small bodies of which each inflates to 30 MiB and is no more than its sender may send."""
    good = run(random.Random(3), tools=1).requests[0]
    body = good + b"\xfa\x3f" + varint(30 * MIB) + bytes(30 * MIB)  # in a field that nobody knows

    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            destinations = f'{{backend: {{endpoint: "{hop.endpoint}", queue_bytes: {QUEUE_MIB}MiB}}}}'
            async with processor(tmp_path, "", destinations=destinations, limits=LIMITS) as subject:
                base = highest = subject.rss_bytes
                sending = asyncio.gather(*(send_bomb(subject, wire, body) for _ in range(40)))
                while not sending.done():
                    highest = max(highest, subject.rss_bytes)
                    await asyncio.sleep(0.01)
                assert set(await sending) <= {"OK", "UNAVAILABLE", "200", "503"}
                assert_balanced(await subject.status())
                allowed = round(1.3 * BOUND) + IN_WORK + base
                note(
                    f"40 bombs of 30 MiB at once: {wire}",
                    highest_mib=round(highest / MIB),
                    allowed_mib=round(allowed / MIB),
                )
                assert highest <= allowed

    within(120, scenario)


async def send_bomb(subject: Processor, wire: str, body: bytes) -> str:
    """The code of the answer."""
    if wire == "grpc":
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_send_message_length", -1)]
        async with grpc.aio.insecure_channel(subject.grpc, options) as channel:
            method = ROUTES[Signal.TRACES].method
            code = await channel.unary_unary(method, None, None)(body, compression=grpc.Compression.Gzip).code()
            return code.name
    coding = wire.removeprefix("http ")
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": coding}
    async with aiohttp.ClientSession() as session:
        data = io.BytesIO(COMPRESS[coding](body))
        async with session.post(f"{subject.http}/v1/traces", data=data, headers=headers) as answer:
            return str(answer.status)


def test_every_index_is_empty_when_all_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        options = {"release_after": "300ms", "verdict_after": "500ms", "late_window": "1s"}
        async with grpc_next_hop() as hop, processor(tmp_path, hop.endpoint, **options) as subject:
            sender = Sender(subject.grpc, random.Random(2))
            playing = asyncio.create_task(sender.play())
            while len(sender.whole) < 100:
                made = run(sender.chance, rootless=bool(len(sender.whole) % 2))
                await sender.send(made)
                await sender.until_taken(made.requests[0])  # again, as after an answer that got lost
            sender.stopping.set()
            await playing
            told = await subject.until(
                lambda told: (
                    told["runs"]["standing_verdicts"] == 0
                    and told["kept"]["open_traces"] == 0
                    and told["journal"]["open_traces"] == 0
                    and told["destinations"]["backend"]["queue_bytes"] == 0
                )
            )
            assert told["kept"] == {"late_bytes": 0, "link_bytes": 0, "links_dropped": 0, "open_traces": 0}
            assert (told["held"]["spans"], told["held"]["bytes"]) == (0, 0)
            assert_balanced(told)
            await subject.kill()
            await subject.start()  # and nothing is left in the journal either
            assert (await subject.status())["ledger"]["traces"]["replayed"] == 0
            assert (await subject.status())["destinations"]["backend"]["signals"]["traces"]["replayed"] == 0

    within(90, scenario)
