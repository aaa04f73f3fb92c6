"""A disk that fills up, and a journal that has grown large."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.figures import note
from tests.faults.load import Sender, arrived, run, spans_in
from tests.faults.processor import Processor, assert_balanced, assert_line_balanced, processor
from tests.next_hop import NextHop, Say, grpc_next_hop, within

pytestmark = pytest.mark.slow
SEED = 11
MIB = 2**20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """48 MiB of its own, of which 24 are the journal's reserve."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk; test_journal.py has the same with a file that refuses")
    yield place
    subprocess.run(["umount", str(place)], check=True)


async def fill_up_and_recover(subject: Processor, hop: NextHop, release: asyncio.Event, fault: str) -> None:
    """The next hop is silent until the disk is full; then it takes everything, and senders are served again."""
    sender = Sender(subject.grpc, random.Random(SEED), filler=100_000, timeout=60)
    playing = asyncio.create_task(sender.play())
    while sender.refused["UNAVAILABLE"] < 10:
        await asyncio.sleep(0.05)
    assert_balanced(told := await subject.status())
    assert told["journal"]["trouble"]
    before = len(sender.whole)
    release.set()
    while len(sender.whole) < before + 10:  # taken again without a restart
        await asyncio.sleep(0.05)
    sender.stopping.set()
    await playing
    told = await subject.until(
        lambda told: told["held"]["spans"] == 0 and told["destinations"]["backend"]["queue_bytes"] == 0
    )
    assert_balanced(told)
    await subject.kill()  # what was delivered while the disk was full must not come back in bulk
    await subject.start()
    told = await subject.status()
    replayed = told["destinations"]["backend"]["signals"]["traces"]["replayed"]
    assert await subject.stop() == 0
    assert_line_balanced(subject.last_ledger)
    lost = sender.acknowledged - set(arrived([hop]).spans)
    assert lost == set()
    assert set(sender.refused) <= {"UNAVAILABLE"}
    note(fault, spans_acknowledged=len(sender.acknowledged), lost=len(lost), replayed_after_it=replayed)


def test_a_full_disk(tmp_path: Path, small_disk: Path) -> None:
    async def scenario() -> None:
        release = asyncio.Event()
        async with grpc_next_hop(lambda _s, _b: Say(wait_for=release)) as hop:
            destinations = f'{{backend: {{endpoint: "{hop.endpoint}", timeout: 60s}}}}'
            journal = f"{{path: {small_disk / 'journal'}}}"
            async with processor(tmp_path, "", destinations=destinations, journal=journal) as subject:
                await fill_up_and_recover(subject, hop, release, "disk full")

    within(240, scenario)


def test_full_service_within_seconds_of_a_restart_with_100_mb(tmp_path: Path) -> None:
    """Half of it waits for the next hop, half is held for verdicts."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with grpc_next_hop(lambda _s, _b: Say(wait_for=asyncio.Event())) as silent:
            destinations = f'{{backend: {{endpoint: "{silent.endpoint}", timeout: 60s}}}}'
            options = {"release_after": "1h", "verdict_after": "1h"}
            async with processor(tmp_path, "", destinations=destinations, **options) as subject:
                sender = Sender(subject.grpc, random.Random(SEED), timeout=60)
                while (await subject.status())["journal"]["bytes"] < 100 * MIB:
                    # Requests of one signal concatenate: a hundred runs in one, as a collector batches them.
                    held = [run(sender.chance, filler=2000, rootless=True) for _ in range(300)]
                    await sender.until_taken(b"".join(body for one in held for body in one.requests))
                    await sender.send(run(sender.chance, filler=500_000))
                size = (await subject.status())["journal"]["bytes"]
                held_spans = (await subject.status())["held"]["spans"]
                await subject.kill()
                async with grpc_next_hop() as hop:
                    config = subject.config.read_text(encoding="utf-8").replace(silent.endpoint, hop.endpoint)
                    subject.config.write_text(config, encoding="utf-8")
                    began = loop.time()
                    await subject.start()
                    ready, cpu = loop.time() - began, subject.cpu_s
                    assert_balanced(await subject.status())
                    assert await subject.stop() == 0
                    assert_line_balanced(subject.last_ledger)
                    lost = sender.acknowledged - set(spans_in(r.body for r in hop.requests if r.signal == "traces"))
                    assert lost == set()
                note(
                    "restart with a large journal",
                    journal_mib=round(size / MIB),
                    held_spans=held_spans,
                    ready_s=round(ready, 2),
                    ready_cpu_s=round(cpu, 2),
                )
                assert cpu < 5  # on a machine that does nothing else it is ready then

    within(240, scenario)
