"""Two replicas behind a router by trace id, as the Collector's load-balancing exporter does it."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.figures import note
from tests.faults.load import Run, Sender, annotated, arrived, run
from tests.faults.processor import assert_balanced, processor
from tests.next_hop import grpc_next_hop, within

pytestmark = pytest.mark.slow


@dataclass
class Router:
    """All spans of a trace go to one replica, always the same."""

    senders: tuple[Sender, ...]

    async def send(self, made: Run) -> None:
        await self.senders[int(made.trace_id, 16) % len(self.senders)].send(made)


def test_each_run_is_judged_once_though_a_replica_dies(tmp_path: Path) -> None:
    async def scenario() -> None:
        chance = random.Random(5)
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
        async with (
            grpc_next_hop() as hop,
            processor(tmp_path / "one", hop.endpoint) as one,
            processor(tmp_path / "two", hop.endpoint) as two,
        ):
            router = Router((Sender(one.grpc, chance), Sender(two.grpc, chance)))
            runs = [run(chance) for _ in range(120)]
            sending = asyncio.gather(*(router.send(made) for made in runs))
            while len(router.senders[0].whole) < 10:
                await asyncio.sleep(0.02)
            await one.kill()
            await one.start()
            await sending
            for replica in (one, two):
                assert_balanced(await replica.until(lambda told: told["held"]["spans"] == 0))
                assert await replica.stop() == 0
            came = arrived([hop])
            lost = set().union(*(made.spans for made in runs)) - set(came.spans)
            assert lost == set()
            assert set(annotated(hop)) == {made.trace_id for made in runs}
            assert len(came.verdicts) == len(runs)
            note("two replicas, one killed", runs=len(runs), lost=len(lost), runs_judged=len(came.verdicts))

    within(90, scenario)
