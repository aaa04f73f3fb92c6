"""SIGTERM: everything open is judged and sent within the deadline; what cannot be is kept for the next start."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.faults.figures import note
from tests.faults.load import Sender, annotated, arrived, run
from tests.faults.processor import assert_line_balanced, processor
from tests.next_hop import Say, grpc_next_hop, within

pytestmark = pytest.mark.slow
# server.DRAIN and the graces of the listeners, with room for a busy machine.
DEADLINE = 15 + 7 + 10


def test_a_stop_under_load_judges_and_sends_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with grpc_next_hop() as hop, processor(tmp_path, hop.endpoint) as subject:
            sender = Sender(subject.grpc, random.Random(3))
            playing = asyncio.create_task(sender.play())
            while len(sender.whole) < 50:
                await asyncio.sleep(0.02)
            began = loop.time()
            assert await subject.stop() == 0
            took = loop.time() - began
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
            assert_line_balanced(subject.last_ledger)
            assert "held" not in subject.last_ledger
            lost = sender.acknowledged - set(arrived([hop]).spans)
            assert lost == set()
            assert {made.trace_id for made in sender.whole} <= set(annotated(hop))
            note(
                "SIGTERM under load", spans_acknowledged=len(sender.acknowledged), lost=len(lost), took_s=round(took, 2)
            )

    within(60, scenario)


def test_a_stop_while_the_next_hop_is_silent_keeps_the_rest(tmp_path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        never = asyncio.Event()
        async with (
            grpc_next_hop(lambda _s, _b: Say(wait_for=never)) as hop,
            processor(tmp_path, hop.endpoint) as subject,
        ):
            sender = Sender(subject.grpc, random.Random(3))
            for _ in range(5):
                await sender.send(run(sender.chance))
            began = loop.time()
            assert await subject.stop() == 0
            took = loop.time() - began
            assert took < DEADLINE
            assert "the journal keeps that for the next start" in subject.log
            never.set()
            hop.requests.clear()
            hop.script = lambda _s, _b: Say()
            await subject.start()
            assert await subject.stop() == 0
            assert_line_balanced(subject.last_ledger)
            lost = sender.acknowledged - set(arrived([hop]).spans)
            assert lost == set()
            # Judged at the first stop; the second knows them only as bodies that wait.
            assert {made.trace_id for made in sender.whole} == set(annotated(hop))
            note(
                "SIGTERM, next hop silent",
                spans_acknowledged=len(sender.acknowledged),
                lost=len(lost),
                took_s=round(took, 2),
            )

    within(90, scenario)
