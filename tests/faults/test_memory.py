"""Memory stays within its bounds whatever comes, and goes back to nothing when it is over."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from luckrate_otel.otlp.wire import varint
from tests.faults.figures import note
from tests.faults.load import Sender, arrived, run
from tests.faults.processor import Processor, assert_balanced, processor
from tests.next_hop import grpc_next_hop, within
from tests.service.test_contract import COMPRESS
from tests.service.test_receiver_grpc import request_in

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


# Bodies in work over HTTP share this; over gRPC only one large one is inflated at a time.
IN_WORK = 256 * MIB
BOMBS = 40
BOMB_BYTES = 30 * MIB


@pytest.mark.parametrize("wire", ["grpc", "http gzip", "http zstd"])
@pytest.mark.parametrize(
    ("limit", "codes"),
    [("64MiB", {"OK", "UNAVAILABLE"}), ("4MiB", {"RESOURCE_EXHAUSTED"})],
    ids=["within the limit", "over the limit"],
)
def test_bombs_at_once_take_no_more_than_bodies_may(wire: str, limit: str, codes: set[str], tmp_path: Path) -> None:
    """Forty bodies of 30 KB of which each inflates to 30 MiB: as much as a sender may send, or more than that.

    All have come whole before the first is read, so that what is inflated before its turn is inflated forty times: the
    queue, which has room for two, cannot refuse any in time.
    """
    good = run(random.Random(3), tools=1).requests[0]
    body = good + b"\xfa\x3f" + varint(BOMB_BYTES) + bytes(BOMB_BYTES)  # in a field that nobody knows
    coding = wire.removeprefix("http ") if wire != "grpc" else "gzip"
    packed = COMPRESS[coding](body)

    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            destinations = f'{{backend: {{endpoint: "{hop.endpoint}", queue_bytes: {QUEUE_MIB}MiB}}}}'
            options = {"destinations": destinations, "limits": LIMITS, "max_message_bytes": limit}
            async with processor(tmp_path, "", **options) as subject:
                base = subject.rss_bytes
                subject.tell(signal.SIGSTOP)
                bombs = [await thrown(subject, wire, packed) for _ in range(BOMBS)]
                subject.tell(signal.SIGCONT)
                assert set(await asyncio.gather(*(answer(wire, bomb) for bomb in bombs))) <= codes
                assert_balanced(await subject.status())
                allowed = round(1.3 * BOUND) + IN_WORK + base
                highest = subject.highest_rss_bytes
                if limit == "64MiB":
                    note(
                        f"40 bombs of 30 MiB at once: {wire}",
                        highest_mib=round(highest / MIB),
                        allowed_mib=round(allowed / MIB),
                    )
                assert highest <= allowed < BOMBS * BOMB_BYTES

    within(120, scenario)


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HTTP_CODES = {b"200": "OK", b"503": "UNAVAILABLE", b"413": "RESOURCE_EXHAUSTED"}
GRPC_CODES = {str(code.value[0]).encode(): code.name for code in grpc.StatusCode}


async def thrown(subject: Processor, wire: str, packed: bytes) -> Stream:
    """A request that is whole in the system's hands, whether or not anybody reads it."""
    address = subject.grpc if wire == "grpc" else subject.http.removeprefix("http://")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = (
        f"POST /v1/traces HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-protobuf\r\n"
        f"Content-Encoding: {wire.removeprefix('http ')}\r\nContent-Length: {len(packed)}\r\n\r\n"
    )
    writer.transport.set_write_buffer_limits(high=0)  # drain then waits until it holds nothing
    writer.write(request_in("gzip", packed) if wire == "grpc" else head.encode() + packed)
    await writer.drain()
    return reader, writer


async def answer(wire: str, stream: Stream) -> str:
    """The code of the answer, in gRPC's words."""
    reader, writer = stream
    if wire == "grpc":
        await reader.readuntil(b"grpc-status")
        (size,) = await reader.readexactly(1)
        code = GRPC_CODES[await reader.readexactly(size)]
    else:
        code = HTTP_CODES[(await reader.readline()).split()[1]]
    writer.close()
    return code


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
