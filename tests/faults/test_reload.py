"""SIGHUP under load: new specs are taken over whole or not at all, and nothing in flight is lost."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import pytest

from tests.faults.figures import note
from tests.faults.load import Sender, annotated, arrived
from tests.faults.processor import Processor, assert_balanced, assert_line_balanced
from tests.next_hop import grpc_next_hop, within

pytestmark = pytest.mark.slow


def test_specs_are_reloaded_whole_or_not_at_all(tmp_path: Path) -> None:
    async def scenario() -> None:
        spec = tmp_path / "spec.yaml"
        spec.write_text("name: before\n", encoding="utf-8")
        async with grpc_next_hop() as hop:
            subject = Processor(tmp_path, hop.endpoint)
            with subject.config.open("a", encoding="utf-8") as file:
                file.write("specs: [spec.yaml]\n")
            await subject.start()
            sender = Sender(subject.grpc, random.Random(9))
            playing = asyncio.create_task(sender.play())
            try:
                spec.write_text("name: broken\nbefore: [[only_one]]\n", encoding="utf-8")
                subject.tell(signal.SIGHUP)
                while "reload refused" not in subject.log:
                    await asyncio.sleep(0.02)
                assert [s["name"] for s in (await subject.status())["specs"]] == ["before"]
                spec.write_text("name: after\nforbidden: [tool_1]\n", encoding="utf-8")
                config = subject.config.read_text(encoding="utf-8")
                config = config.replace("settle: 300ms", "settle: 200ms").replace("timeout: 2s", "timeout: 3s")
                subject.config.write_text(config, encoding="utf-8")
                subject.tell(signal.SIGHUP)
                await subject.until(lambda told: told["specs"][0]["name"] == "after")
                whole = len(sender.whole)
                while len(sender.whole) < whole + 20:
                    await asyncio.sleep(0.02)
                sender.stopping.set()
                await playing
                assert_balanced(await subject.until(lambda told: told["held"]["spans"] == 0))
                assert await subject.stop() == 0
            finally:
                if subject.running:
                    await subject.kill()
            assert_line_balanced(subject.last_ledger)
            assert "these wait for a restart: destinations.backend.timeout" in subject.log
            lost = sender.acknowledged - set(arrived([hop]).spans)
            assert lost == set()
            assert {made.trace_id for made in sender.whole} == set(annotated(hop))
            last = [r.body for r in hop.requests if b"luckrate.verdict" in r.body][-1]
            assert b"after" in last
            note("SIGHUP under load", spans_acknowledged=len(sender.acknowledged), lost=len(lost))

    within(60, scenario)
