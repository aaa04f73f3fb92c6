"""Nothing that an agent said or was told leaves through what is ours: events, metrics, logs, status.

And nobody can blow up our metrics with names of their own invention.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from prometheus_client import CollectorRegistry, generate_latest

from luckrate_otel.annotate import Point
from luckrate_otel.batch import read_files
from luckrate_otel.config import parse
from luckrate_otel.otlp.decode import decode_log, decode_span
from luckrate_otel.otlp.encode import strip_luckrate
from luckrate_otel.otlp.json import to_protobuf
from luckrate_otel.otlp.shallow import shallow
from luckrate_otel.service.logs import JsonFormatter
from luckrate_otel.service.server import Server
from luckrate_otel.service.show.meter import MAX_LABEL_VALUES, OVERFLOW, Meter
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.spec import Spec
from tests.next_hop import grpc_next_hop, within

TRACES = Path(__file__).parents[1] / "traces"
FILES = sorted(TRACES.glob("*/*.traces.jsonl"))
# Finds as much as can be found, so that as much as can be said is said.
SPEC = Spec.from_mapping(
    {
        "name": "strict", "required": ["never_called"], "max_steps": 1, "no_repeat": True,
        "untrusted": ["fetch_page", "lookup_order"], "privileged": ["send_email", "issue_refund", "escalate_to_human"],
        "severity": {"ground": "hard"},
    }
)  # fmt: skip
# Shorter values (a 7, "ok") turn up anywhere by chance.
SHORTEST = 8


def leaves(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def said(paths: Iterable[Path]) -> set[str]:
    """Every argument value, result, task and answer of the runs in these files; long ones by their beginning."""
    found: set[str] = set()
    names: set[str] = set()
    for run in read_files([str(path) for path in paths]).trajectories:
        names |= {step.tool for step in run.steps} | {step.agent for step in run.steps} | {run.agent or ""}
        for step in run.steps:
            found |= {*leaves(step.args), *leaves(step.result)}
        found |= {text for text in (*leaves(run.task_input), run.final_output) if isinstance(text, str)}
    return {value[:60] for value in found if len(value) >= SHORTEST} - names


@pytest.mark.slow
def test_no_value_of_any_capture_leaves_through_what_is_ours(caplog: pytest.LogCaptureFixture) -> None:
    ours: list[str] = []

    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            config = parse(
                f"""
                receivers: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: none}}}}
                destinations: {{backend: {{endpoint: "{hop.endpoint}"}}}}
                journal: none
                metrics: {{prometheus: "127.0.0.1:0"}}
                admin: {{endpoint: "127.0.0.1:0"}}
                """,
                "test.yaml",
                {},
            )
            server = Server(config, [SPEC])
            await server.start()
            async with grpc.aio.insecure_channel(server.addresses["grpc"]) as channel:
                for path in FILES:
                    for line in filter(None, path.read_bytes().splitlines()):
                        await channel.unary_unary(ROUTES[Signal.TRACES].method, None, None)(to_protobuf("traces", line))
            async with aiohttp.ClientSession() as session:
                for address, path_ in ((server.addresses["admin"], "status"),):
                    async with session.get(f"http://{address}/{path_}") as answer:
                        ours.append(await answer.text())
                await server._intake.finish()
                async with session.get(f"http://{server.addresses['prometheus']}/metrics") as answer:
                    ours.append(await answer.text())
            await server.stop(10)
            for request in hop.requests:
                for group in shallow(request.body):
                    for wire in group.items:
                        ours.append(said_by_us(request.signal, wire, group.envelope))

    with caplog.at_level(logging.DEBUG, logger="luckrate_otel"):
        within(120, scenario)
    ours += [JsonFormatter().format(record) for record in caplog.records]
    everything = "\n".join(ours)
    assert "luckrate.violation" in everything
    assert "ground" in everything
    assert "taint" in everything
    assert {value for value in said(FILES) if value in everything} == set()


def said_by_us(signal: Signal, wire: bytes, envelope: Any) -> str:
    if signal is Signal.LOGS:
        return json.dumps(decode_log(wire, envelope).attributes, default=str)
    if signal is not Signal.TRACES or strip_luckrate(wire) is wire:
        return ""
    span = decode_span(wire, envelope)
    events = [(event.name, dict(event.attributes)) for event in span.events if event.name.startswith("luckrate.")]
    return json.dumps([{k: v for k, v in span.attributes.items() if k.startswith("luckrate.")}, events], default=str)


def test_a_hundred_thousand_invented_tools_are_a_hundred_labels() -> None:
    registry = CollectorRegistry()
    meter = Meter([PrometheusMetricReader(registry=registry)], "0")
    for number in range(100_000):
        attributes = {
            "luckrate.spec.name": "s", "luckrate.rule": "unknown_tool", "luckrate.severity": "hard",
            "gen_ai.tool.name": f'tool\n"{number}\\',
        }  # fmt: skip
        meter.record(Point("luckrate.violations", 1, attributes))
    lines = [
        line for line in generate_latest(registry).decode().splitlines() if line.startswith("luckrate_violations_")
    ]
    counted = [line for line in lines if "_total{" in line]
    assert len(counted) == MAX_LABEL_VALUES + 1
    overflow = [line for line in counted if OVERFLOW in line]
    assert [float(line.rpartition(" ")[2]) for line in overflow] == [100_000 - MAX_LABEL_VALUES]
    meter.shutdown()
