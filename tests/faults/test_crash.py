"""kill -9 at random moments under load: what was acknowledged arrives, and no run is judged twice."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.faults.figures import note
from tests.faults.load import Sender, annotated, arrived
from tests.faults.processor import assert_balanced, assert_line_balanced, processor
from tests.next_hop import grpc_next_hop, within

ROUNDS = int(os.environ.get("LUCKRATE_CRASH_ROUNDS", "3"))
SEED = int(os.environ.get("LUCKRATE_SEED", "0")) or random.SystemRandom().randrange(1, 2**32)


@pytest.mark.slow
def test_kill_9_under_load_loses_nothing_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(SEED)

    async def scenario() -> None:
        restarts: list[float] = []
        loop = asyncio.get_running_loop()
        async with grpc_next_hop() as hop, processor(tmp_path, hop.endpoint) as subject:
            sender = Sender(subject.grpc, chance)
            playing = asyncio.create_task(sender.play())
            for _ in range(ROUNDS):
                await asyncio.sleep(chance.uniform(0.2, 1.5))  # the moment of death is what is random here
                await subject.kill()
                began = loop.time()
                await subject.start()
                restarts.append(loop.time() - began)
                assert_balanced(await subject.status())
            sender.stopping.set()
            await playing
            await subject.until(lambda told: told["held"]["spans"] == 0)
            assert_balanced(await subject.status())
            assert await subject.stop() == 0
            assert_line_balanced(subject.last_ledger)
            came = arrived([hop])
            lost = sender.acknowledged - set(came.spans)
            assert lost == set(), f"seed {SEED}: {len(lost)} lost"
            # Each run is judged once; the same words may be delivered twice, as anything may.
            verdicts = annotated(hop)
            assert {made.trace_id for made in sender.whole} <= set(verdicts), f"seed {SEED}"
            runs = {run_id.partition(":")[0] for run_id in came.verdicts}
            assert len(came.verdicts) == len(runs), f"seed {SEED}: a trace of one run was judged as several"
            note(
                "kill -9 under load",
                rounds=ROUNDS,
                spans_acknowledged=len(sender.acknowledged),
                lost=len(lost),
                delivered_twice=came.doubled,
                runs_judged=len(runs),
                runs_judged_twice=len(came.verdicts) - len(runs),
                longest_restart_s=round(max(restarts), 2),
            )

    within(60 + 8 * ROUNDS, scenario)
