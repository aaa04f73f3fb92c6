"""The wall clock jumps: waits go by a clock that does not, so nothing is judged early, late or twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from luckrate_otel.config import parse
from luckrate_otel.service import server as serving
from luckrate_otel.service.server import Server
from luckrate_otel.spec import Spec
from tests.faults.load import Sender, arrived, run
from tests.faults.processor import assert_balanced
from tests.next_hop import grpc_next_hop, within

YEAR_NS = 365 * 86400 * 10**9


@pytest.mark.parametrize("jump_ns", [YEAR_NS, -YEAR_NS, -(1 << 62)])
def test_a_jump_between_a_span_and_its_verdict(jump_ns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wall = [time.time_ns()]

    class Clock:
        monotonic_ns = staticmethod(time.monotonic_ns)

        @staticmethod
        def time_ns() -> int:
            return max(0, wall[0])

    monkeypatch.setattr(serving, "time", Clock)

    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            config = parse(
                f"""
                receivers: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: none}}}}
                destinations: {{backend: {{endpoint: "{hop.endpoint}"}}}}
                clocks: {{settle: 200ms, verdict_after: 500ms}}
                journal: {{path: {tmp_path}}}
                metrics: {{prometheus: none}}
                admin: {{endpoint: none}}
                """,
                "test.yaml",
                {},
            )
            server = Server(config, [Spec.from_mapping({"name": "any"})])
            await server.start()
            sender = Sender(server.addresses["grpc"], random.Random(1))
            runs = [run(sender.chance) for _ in range(4)]
            for made in runs[:2]:
                await sender.send(made)
            wall[0] += jump_ns
            for made in runs[2:]:
                await sender.send(made)
            await hop.until(lambda hop: len(arrived([hop]).verdicts) == 4)
            assert_balanced(dict(server.status()))
            assert await server.stop()
            assert sender.acknowledged - set(arrived([hop]).spans) == set()

    within(30, scenario)
