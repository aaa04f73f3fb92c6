"""One answer everywhere: service, in-process processor and files say the same of the same capture, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from luckrate_otel import pipeline
from luckrate_otel import telemetry as telemetry_module
from luckrate_otel.assemble import AgentClocks, Assembler, Clocks, Closed, Final
from luckrate_otel.batch import grade, trajectories
from luckrate_otel.conversation import Conversations
from luckrate_otel.facts import CloseReason
from luckrate_otel.model import Trajectory, Verdict
from luckrate_otel.otlp.decode import decode_span
from luckrate_otel.otlp.json import load, to_protobuf
from luckrate_otel.otlp.shallow import shallow
from luckrate_otel.reports.verdicts import run_json
from luckrate_otel.sdk import LuckrateSpanProcessor, to_span
from luckrate_otel.service.judge import Judge
from luckrate_otel.service.reading import Reader
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.spec import Spec
from tests.captured import CASES, Case, telemetry
from tests.sdk.spans import exported, sdk_span

SPEC = Spec.from_mapping(
    {
        "forbidden": ["issue_refund"],
        "required": ["ask_human"],
        "before": [["ask_human", "issue_refund"]],
        "max_steps": 3,
        "no_repeat": True,
        "untrusted": ["fetch_page"],
        "privileged": ["issue_refund", "send_email"],
    }
)

# CrewAI's own telemetry makes a trace of every span. Only who has them all, as files have, can join those of one crew.
IN_ONE_TRACE = [case for case in CASES if case.variant != "crewai-native"]

# A span processor of the SDK sees no log records.
IN_PROCESS = [case for case in IN_ONE_TRACE if not case.path("logs.jsonl").exists()]


class Nothing(SpanProcessor):
    pass


def told(runs: list[tuple[Trajectory, Verdict]]) -> str:
    """All that a report says of these runs, but why each was closed."""
    found = [run_json(trajectory, verdict, values=True) for trajectory, verdict in runs]
    return json.dumps(sorted(({**run, "close_reason": ""} for run in found), key=lambda run: run["run_id"]), indent=1)


def by_files(case: Case) -> str:
    return told(list(grade(trajectories(*telemetry(case)), [SPEC])))


def in_process(case: Case) -> str:
    verdicts: dict[str, tuple[Trajectory, Verdict]] = {}

    def note(trajectory: Trajectory, verdict: Verdict) -> None:
        verdicts[trajectory.run_id] = (trajectory, verdict)

    processor = LuckrateSpanProcessor(Nothing(), SPEC, on_verdict=note)
    for span in ended(case):
        processor.on_end(span)
    processor.shutdown()
    return told(list(verdicts.values()))


def ended(case: Case) -> list[ReadableSpan]:
    """In the order in which they ended, as a process would end them: a child before its parent."""
    spans, _ = telemetry(case)
    return [sdk_span(span) for span in sorted(spans, key=lambda span: (span.head.end_ns, -span.head.start_ns))]


def by_service(case: Case) -> str:
    reader = Reader(())
    assembler = Assembler(Clocks(AgentClocks(1, 10**9, 10**9)), restore=reader.restore)
    conversations = Conversations()
    verdicts: dict[str, tuple[Trajectory, Verdict]] = {}

    now_ns = 0
    for signal, body in requests(case):
        read = reader.traces if signal == "traces" else reader.logs
        reading = read(body, assembler.open_traces)
        for arrival in reading.arrivals:
            payload = arrival.payload
            assembler.add(arrival.facts, now_ns, payload=payload, size=len(payload.wire) if payload else 0)
        for trace_id, span_id, parent_id in reading.links:
            assembler.link(trace_id.hex(), span_id.hex(), parent_id.hex(), now_ns)
    effects = [*assembler.take(1), *assembler.drain(CloseReason.END_OF_INPUT, 1)]
    for effect in effects:
        if isinstance(effect, Closed):
            graded = pipeline.grade(effect.run, [SPEC], conversations.place)
            conversations.remember(graded.trajectory, graded.trajectory.start_ns)
            verdicts[effect.run.run_id] = (graded.trajectory, graded.verdict)
        else:
            assert isinstance(effect, Final) or not effect.held or effect.reason != "error"
    return told(list(verdicts.values()))


def requests(case: Case) -> Iterator[tuple[str, bytes]]:
    for signal in ("traces", "logs"):
        path = case.path(f"{signal}.jsonl")
        for line in path.read_bytes().splitlines() if path.exists() else ():
            yield signal, to_protobuf(signal, load(line))


@pytest.mark.parametrize("case", IN_PROCESS, ids=str)
def test_in_the_process_and_from_files(case: Case) -> None:
    assert in_process(case) == by_files(case)


@pytest.mark.parametrize("case", IN_ONE_TRACE[::2], ids=str)
def test_in_the_service_and_from_files(case: Case) -> None:
    assert by_service(case) == by_files(case)


@pytest.mark.parametrize("case", IN_PROCESS[::8], ids=str)
def test_what_the_exporter_sends_is_what_the_process_reads(case: Case) -> None:
    assert [to_span(span) for span in ended(case)] == [exported([span])[0] for span in ended(case)]


# ---- what is written on spans ------------------------------------------------------------------


class Keeping(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def written_in_process(case: Case) -> dict[str, telemetry_module.Span]:
    keeping = Keeping()
    processor = LuckrateSpanProcessor(keeping, SPEC)
    for span in ended(case):
        processor.on_end(span)
    processor.shutdown()
    return {span.head.span_id: span for span in map(to_span, keeping.spans)}


def written_by_service(case: Case) -> dict[str, telemetry_module.Span]:
    """Of the same spans, as the SDK's exporter sends them."""
    body = encode_spans(ended(case)).SerializeToString()
    reader = Reader(())
    assembler = Assembler(Clocks(AgentClocks(1, 10**9, 10**9)), restore=reader.restore)
    judge = Judge((SPEC,), Conversations(), Repeats(lambda: 0))
    reading = reader.traces(body, assembler.open_traces)
    for arrival in reading.arrivals:
        payload = arrival.payload
        assembler.add(arrival.facts, 0, payload=payload, size=len(payload.wire) if payload else 0)
    for trace_id, span_id, parent_id in reading.links:
        assembler.link(trace_id.hex(), span_id.hex(), parent_id.hex(), 0)
    out = judge.settle([*assembler.take(1), *assembler.drain(CloseReason.SHUTDOWN, 1)], 0)
    passed = [(group.envelope, wire) for group in shallow(reading.passed) for wire in group.items]
    spans = [decode_span(wire, envelope) for envelope, wire in [*passed, *out.spans]]
    return {span.head.span_id: span for span in spans}


@pytest.mark.parametrize("case", IN_PROCESS[::3], ids=str)
def test_the_same_is_written_on_the_same_spans(case: Case) -> None:
    assert written_in_process(case) == written_by_service(case)
