"""A next hop that dies, dawdles, resets or answers every error of OTLP: the queue absorbs it and the ledger adds up."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import grpc
import pytest

from luckrate_otel.service.signals import Signal
from tests.faults.figures import note
from tests.faults.load import Sender, annotated, arrived, run, spans_in
from tests.faults.processor import Processor, assert_balanced, assert_line_balanced, processor
from tests.next_hop import NextHop, Say, grpc_next_hop, http_next_hop, resetting_next_hop, within

pytestmark = pytest.mark.slow
SEED = 7
C = grpc.StatusCode


async def delivered_in_the_end(subject: Processor, sender: Sender, hops: list[NextHop], fault: str) -> None:
    """Everything that was acknowledged arrives, and the books balance before and after."""
    told = await subject.until(
        lambda told: told["held"]["spans"] == 0 and told["destinations"]["backend"]["queue_bytes"] == 0
    )
    assert_balanced(told)
    assert await subject.stop() == 0
    assert_line_balanced(subject.last_ledger)
    came = arrived(hops)
    lost = sender.acknowledged - set(came.spans)
    assert lost == set()
    note(fault, spans_acknowledged=len(sender.acknowledged), lost=len(lost), delivered_twice=came.doubled)


async def load_for(sender: Sender, seconds: float) -> None:
    playing = asyncio.create_task(sender.play())
    await asyncio.sleep(seconds)  # how long the load lasts
    sender.stopping.set()
    await playing


def test_a_next_hop_that_dies_and_comes_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop, processor(tmp_path, hop.endpoint) as subject:
            sender = Sender(subject.grpc, random.Random(SEED))
            await load_for(sender, 0.5)
            hop.script = lambda _signal, _body: Say(code=C.UNAVAILABLE)
            sender.stopping.clear()
            await load_for(sender, 0.5)
            hop.script = lambda _signal, _body: Say()
            await delivered_in_the_end(subject, sender, [hop], "next hop down for a while")
            assert {made.trace_id for made in sender.whole} <= set(annotated(hop))

    within(60, scenario)


def test_a_next_hop_that_is_away_at_start_and_over_a_restart(tmp_path: Path) -> None:
    """Nothing listens at first; what was acknowledged meanwhile outlives two kills and is then delivered by age."""

    async def scenario() -> None:
        async with grpc_next_hop() as gone:
            port = int(gone.endpoint.rpartition(":")[2])
        async with processor(tmp_path, f"http://127.0.0.1:{port}") as subject:
            sender = Sender(subject.grpc, random.Random(SEED))
            for _ in range(2):
                sender.stopping.clear()
                await load_for(sender, 0.4)
                await subject.kill()
                await subject.start()
            assert_balanced(await subject.status())
            async with grpc_next_hop(port=port) as hop:
                await delivered_in_the_end(subject, sender, [hop], "next hop away over two kills")

    within(60, scenario)


def test_a_slow_next_hop_fills_the_queue_and_senders_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        release = asyncio.Event()
        async with grpc_next_hop(lambda _signal, _body: Say(wait_for=release)) as hop:
            destinations = f'{{backend: {{endpoint: "{hop.endpoint}", timeout: 20s, queue_bytes: 64KiB}}}}'
            async with processor(tmp_path, hop.endpoint, destinations=destinations) as subject:
                sender = Sender(subject.grpc, random.Random(SEED), filler=3000)
                playing = asyncio.create_task(sender.play())
                while sender.refused["UNAVAILABLE"] < 10:
                    await asyncio.sleep(0.05)
                assert_balanced(await subject.status())
                release.set()
                sender.stopping.set()
                await playing
                await delivered_in_the_end(subject, sender, [hop], "slow next hop, queue full")
                assert set(sender.refused) == {"UNAVAILABLE"}  # retryable, and nothing else

    within(60, scenario)


def test_a_next_hop_that_resets_connections(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with resetting_next_hop() as address, http_next_hop() as hop:
            destinations = f'{{backend: {{endpoint: "{address}", protocol: http/protobuf}}}}'
            async with processor(tmp_path, "", destinations=destinations) as subject:
                sender = Sender(subject.grpc, random.Random(SEED))
                await load_for(sender, 0.5)
                assert_balanced(told := await subject.status())
                assert told["destinations"]["backend"]["failures_in_a_row"] > 0
                await subject.kill()
                config = subject.config.read_text(encoding="utf-8").replace(address, hop.endpoint)
                subject.config.write_text(config, encoding="utf-8")
                await subject.start()
                await delivered_in_the_end(subject, sender, [hop], "next hop resets connections")

    within(60, scenario)


# Every error of gRPC, by what becomes of the items: kept and sent again; dropped when they are found to be the one at
# fault; or dropped whole, because the refusal names no item and OTLP forbids to try again.
KEPT = [
    Say(code=C.UNAVAILABLE, retry_after=0.1),
    Say(code=C.RESOURCE_EXHAUSTED, retry_after=0.1),
    *(Say(code=c) for c in (C.UNAVAILABLE, C.CANCELLED, C.DEADLINE_EXCEEDED, C.ABORTED, C.OUT_OF_RANGE, C.DATA_LOSS)),
]
POISON = [Say(code=C.INVALID_ARGUMENT), Say(code=C.RESOURCE_EXHAUSTED)]
REFUSED = [
    Say(code=code)
    for code in (
        C.UNKNOWN, C.NOT_FOUND, C.ALREADY_EXISTS, C.PERMISSION_DENIED, C.UNAUTHENTICATED, C.FAILED_PRECONDITION,
        C.INTERNAL, C.UNIMPLEMENTED,
    )
]  # fmt: skip


def test_every_error_from_the_next_hop(tmp_path: Path) -> None:
    """Each is answered once, poison as often as it comes; what is dropped is counted, and nothing else is gone."""
    chance = random.Random(SEED)
    poisoned = [run(chance) for _ in POISON]
    poison = {bytes.fromhex(made.trace_id): say for made, say in zip(poisoned, POISON, strict=True)}
    once = [*KEPT, *REFUSED]

    def script(signal: Signal, body: bytes) -> Say:
        if signal is not Signal.TRACES:
            return Say()
        found = [say for trace_id, say in poison.items() if trace_id in body]
        return found[0] if found else once.pop() if once else Say()

    async def scenario() -> None:
        async with grpc_next_hop(script) as hop, processor(tmp_path, hop.endpoint) as subject:
            sender = Sender(subject.grpc, chance)
            playing = asyncio.create_task(sender.play())
            for made in poisoned:
                await sender.send(made)
            while once:
                await asyncio.sleep(0.05)
            sender.stopping.set()
            await playing
            told = await subject.until(
                lambda told: told["held"]["spans"] == 0 and told["destinations"]["backend"]["queue_bytes"] == 0
            )
            assert_balanced(told)
            dropped = told["destinations"]["backend"]["signals"]["traces"]["dropped"]
            bad = {span for made in poisoned for span in made.spans}
            refused = {span for r in hop.requests if r.said in REFUSED for span in spans_in([r.body])}
            lost = sender.acknowledged - set(arrived([hop]).spans)
            assert lost == bad | refused
            assert set(dropped) == {"invalid", "too_large", "refused", "unsupported"}
            assert sum(dropped.values()) == len(lost)
            assert f"{poisoned[0].trace_id}/" in subject.log  # the ids of what was dropped
            note(
                "every error of the next hop",
                spans_acknowledged=len(sender.acknowledged),
                poisoned_and_dropped=len(bad),
                refused_for_good=len(refused),
                lost_beside_them=len(lost - bad - refused),
            )

    within(60, scenario)


def test_partial_success_of_the_next_hop_is_counted(tmp_path: Path) -> None:
    async def scenario() -> None:
        said = [Say(rejected=2)]
        async with (
            grpc_next_hop(lambda s, _: said.pop() if said and s is Signal.TRACES else Say()) as hop,
            processor(tmp_path, hop.endpoint) as subject,
        ):
            sender = Sender(subject.grpc, random.Random(SEED), at_once=1)
            await sender.send(run(sender.chance))
            told = await subject.until(lambda told: told["held"]["spans"] == 0 and told["runs"]["graded"] == 1)
            told = await subject.until(lambda told: told["destinations"]["backend"]["queue_bytes"] == 0)
            assert_balanced(told)
            account = told["destinations"]["backend"]["signals"]["traces"]
            assert (account["sent"], account["rejected"]) == (4, 2)

    within(30, scenario)
