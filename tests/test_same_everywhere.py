"""One answer everywhere, as users get it: what the processor and the application write on the wire, and what `exec` and
`check` print, say the same of the same capture. Real sockets and whole programs; tests/sdk holds the cores together."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from sys import executable
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from luckrate_otel.cli import main
from luckrate_otel.config import Config, parse
from luckrate_otel.model import Severity
from luckrate_otel.sdk import LuckrateSpanProcessor
from luckrate_otel.service.signals import Signal
from luckrate_otel.spec import Spec
from luckrate_otel.specfile import load_spec
from luckrate_otel.telemetry import Span, Value
from tests.captured import Case, telemetry
from tests.next_hop import NextHop, grpc_next_hop, within
from tests.sdk.spans import sdk_span
from tests.service.test_server import capture, export, running, spans

pytestmark = pytest.mark.slow

SPEC = """
name: everywhere
forbidden: [issue_refund]
required: [ask_human]
before: [[ask_human, lookup_order]]
leads_to: [[lookup_order, send_receipt]]
not_after: [[fetch_page, send_email]]
ends_with: send_receipt
max_steps: 1
max_retries: 0
max_tokens: 100
no_repeat: true
args: {lookup_order: {properties: {order_id: {type: integer}}, from: {order_id: [user]}}}
untrusted: [fetch_page]
privileged: [issue_refund, send_email]
"""

CASES = [
    Case("langgraph-openinference", "s3"),
    Case("langgraph-traceloop", "s7_killed"),
    Case("crewai-openinference", "s4"),
    Case("n8n-native", "s5"),
    Case("openai-agents-openinference", "s6"),
    Case("pydantic-ai-native", "s2"),
    Case("strands-native", "s3"),
    Case("mcp-openai-agents", "s1"),
    Case("vercel-ai-otel", "s4"),
]
WITH_LOGS = Case("openai-agents-otel-genai-events", "s6")
REPLAY = Path(__file__).parent / "execute/replay.py"

# Of a violation on the wire, all that a report tells too.
_TOLD = ("rule", "clause", "severity", "message", "step.index", "argument", "sources", "evidence.span_ids")
_OF_RUN = ("verdict", "output", "output.source", "path", "lucky", "spec.name", "spec.version", "steps", "not_evaluated")


def listed(value: Value) -> Value:
    return list(value) if isinstance(value, tuple) else value


def text(runs: Iterable[Mapping[str, Value]], violations: Iterable[Mapping[str, Value]]) -> str:
    told = [sorted(json.dumps(item, sort_keys=True) for item in items) for items in (runs, violations)]
    return json.dumps(told, indent=1)


def on_the_wire(written: list[Span]) -> str:
    """What stands on spans of one capture."""
    roots = [span.attributes for span in written if "luckrate.verdict" in span.attributes]
    events = [e.attributes for span in written for e in span.events if e.name == "luckrate.violation"]
    counts = [f"violation_count.{severity}" for severity in Severity]
    return text(
        [{key: listed(root.get(f"luckrate.{key}")) for key in (*_OF_RUN, *counts)} for root in roots],
        [
            {**{key: listed(e.get(f"luckrate.{key}")) for key in _TOLD}, "tool": e.get("gen_ai.tool.name")}
            for e in events
        ],
    )


def as_the_wire_has_it(report: str) -> str:
    """What a JSON report says, under the names of the wire."""
    runs = json.loads(report)["runs"]
    assert runs
    return text(map(_run, runs), [_violation(found) for run in runs for found in run["violations"]])


def _run(run: Mapping[str, Any]) -> dict[str, Value]:
    severities = [found["severity"] for found in run["violations"]]
    return {
        "verdict": run["verdict"],
        "output": run["output"],
        "output.source": run["output_source"],
        "path": run["path"],
        "lucky": run["verdict"] == "lucky",
        "spec.name": run["spec"],
        "spec.version": run["spec_version"],
        "steps": len(run["steps"]),
        "not_evaluated": [item["rule"] for item in run["not_evaluated"]] or None,
        **{f"violation_count.{severity}": severities.count(severity) for severity in Severity},
    }


def _violation(found: Mapping[str, Any]) -> dict[str, Value]:
    told = {key: found[key] for key in ("rule", "clause", "severity", "message", "argument", "tool")}
    evidence = [item["span"] for item in found["evidence"] if item["span"]]
    return {
        **told,
        "step.index": found["step"],
        "sources": found["sources"] or None,
        "evidence.span_ids": evidence or None,
    }


# ---- the four ways -------------------------------------------------------------------------------


def config(endpoint: str) -> Config:
    """Clocks long enough that all has come, however slow the machine: what is asked is what is said, not when."""
    return parse(
        f"""
receivers: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: "127.0.0.1:0"}}}}
destinations: {{backend: {{endpoint: "{endpoint}", protocol: grpc}}}}
clocks: {{settle: 500ms, verdict_after: 1s}}
journal: none
metrics: {{prometheus: "127.0.0.1:0"}}
admin: {{endpoint: "127.0.0.1:0"}}""",
        "test.yaml",
        {},
    )


async def by_service(case: Case, spec: Spec) -> str:
    """OTLP over gRPC in and out."""
    bodies = {Signal.TRACES: capture(case.path("traces.jsonl"))}
    if case.path("logs.jsonl").exists():
        bodies[Signal.LOGS] = capture(case.path("logs.jsonl"), "logs")
    count = len(telemetry(case)[0])
    async with grpc_next_hop() as hop, running(config(hop.endpoint), spec) as server:
        for signal, requests in reversed(bodies.items()):
            await export(server, requests, signal)
        await hop.until(lambda h: len(spans(h)) == count)
        return on_the_wire(spans(hop))


async def in_process(case: Case, spec: Spec) -> str:
    """Spans that end in a Python process, graded there and exported by the SDK's own exporter."""

    def send(hop: NextHop) -> None:
        exporter = OTLPSpanExporter(hop.endpoint, insecure=True)
        processor = LuckrateSpanProcessor(SimpleSpanProcessor(exporter), spec)
        for span in sorted(telemetry(case)[0], key=lambda span: (span.head.end_ns, -span.head.start_ns)):
            processor.on_end(sdk_span(span))
        processor.shutdown()

    async with grpc_next_hop() as hop:
        await asyncio.to_thread(send, hop)
        return on_the_wire(spans(hop))


def files(case: Case) -> list[str]:
    return [str(path) for path in (case.path("traces.jsonl"), case.path("logs.jsonl")) if path.exists()]


@pytest.mark.parametrize("case", [*CASES, WITH_LOGS], ids=str)
def test_the_same_findings_everywhere(case: Case, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "spec.yaml"
    written.write_text(SPEC, encoding="utf-8")
    spec = load_spec(written)

    words = ["--spec", str(written), "--format", "json", "--show-values"]
    checked = main(["check", *files(case), *words])
    report = capfd.readouterr().out
    assert json.loads(report)["runs"][0]["violations"]

    executed = main(["exec", *words, "--settle", "0.1", "--wait", "0.3", "--", executable, str(REPLAY), *files(case)])
    assert (executed, capfd.readouterr().out) == (checked, report)

    expected = as_the_wire_has_it(report)

    async def scenario() -> None:
        assert await by_service(case, spec) == expected
        # A span processor of the SDK sees no log records.
        if case is not WITH_LOGS:
            assert await in_process(case, spec) == expected

    within(20, scenario)
