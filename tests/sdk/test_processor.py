"""The processor in a real TracerProvider: what is exported, and when."""

from __future__ import annotations

import gc
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags, Tracer

from luckrate_otel import Spec
from luckrate_otel.errors import SpecError
from luckrate_otel.facts import CloseReason
from luckrate_otel.model import Trajectory, Verdict
from luckrate_otel.sdk import LuckrateSpanProcessor
from luckrate_otel.sdk import processor as module
from luckrate_otel.sdk.grader import SETTLE_NS, Grader
from luckrate_otel.sdk.rebuild import AnnotatedSpan

SPEC = {"name": "refunds", "forbidden": ["pay"], "required": ["look"]}

Verdicts = list[tuple[Trajectory, Verdict]]


class Bench:
    """A provider with the processor in it, what it exported, and the verdicts it gave."""

    def __init__(self, specs: Any = SPEC, inner: SpanProcessor | None = None, **settings: Any) -> None:
        self.memory = InMemorySpanExporter()
        self.verdicts: Verdicts = []
        self.judged = threading.Event()
        self.processor = LuckrateSpanProcessor(
            inner or SimpleSpanProcessor(self.memory), specs, on_verdict=self._note, **settings
        )
        self.provider = TracerProvider(resource=Resource({"service.name": "shop"}))
        self.provider.add_span_processor(self.processor)
        self.tracer: Tracer = self.provider.get_tracer("shop.agent", "1.0")

    def _note(self, trajectory: Trajectory, verdict: Verdict) -> None:
        self.verdicts.append((trajectory, verdict))
        self.judged.set()

    def agent(self, name: str = "support", **options: Any) -> Any:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        return self.tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes, **options)

    def call(self, tool: str) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": json.dumps({"id": 1}),
        }
        with self.tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
            pass

    def run(self, *tools: str) -> None:
        with self.agent():
            for tool in tools:
                self.call(tool)

    def flush(self) -> dict[str, ReadableSpan]:
        assert self.provider.force_flush()
        return {span.name: span for span in self.memory.get_finished_spans()}

    def labels(self) -> list[str]:
        return [str(verdict.verdict) for _, verdict in self.verdicts]


@pytest.fixture
def make() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(*args: Any, **settings: Any) -> Bench:
        made.append(Bench(*args, **settings))
        return made[-1]

    yield make
    for bench in made:
        bench.provider.shutdown()


Make = Callable[..., Bench]


def told(span: ReadableSpan) -> dict[str, Any]:
    return {key: value for key, value in (span.attributes or {}).items() if key.startswith("luckrate.")}


# ---- annotating ----------------------------------------------------------------------------------


def test_a_run_is_graded_and_exported_with_its_findings(make: Make) -> None:
    bench = make()
    bench.run("look", "pay")
    spans = bench.flush()
    assert bench.labels() == ["lucky"]
    assert told(spans["execute_tool pay"]) == {"luckrate.rules": ("forbidden",), "luckrate.max_severity": "hard"}
    (event,) = spans["execute_tool pay"].events
    assert event.name == "luckrate.violation"
    assert (event.attributes or {})["luckrate.message"] == "forbidden[0]: pay (step 1) must not be called"
    root = told(spans["invoke_agent support"])
    assert (root["luckrate.verdict"], root["luckrate.path"], root["luckrate.close_reason"]) == ("lucky", "bad", "root")
    assert told(spans["execute_tool look"]) == {}
    assert not isinstance(spans["execute_tool look"], AnnotatedSpan)


def test_an_annotated_span_is_the_span_with_more_on_it(make: Make) -> None:
    bench = make()
    link = trace.Link(SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1)))
    with bench.tracer.start_as_current_span(
        "invoke_agent support",
        kind=SpanKind.CLIENT,
        links=[link],
        attributes={"gen_ai.operation.name": "invoke_agent", "luckrate.verdict": "pass", "luckrate.case": "mine"},
    ) as span:
        span.add_event("mine", {"a": 1})
        span.add_event("luckrate.violation")
        span.set_status(trace.StatusCode.ERROR, "no")
        bench.call("look")
    (root,) = [s for s in bench.flush().values() if s.name == "invoke_agent support"]
    assert root.context == span.get_span_context()
    assert (root.kind, root.links, root.parent) == (SpanKind.CLIENT, (link,), None)
    assert (root.status.status_code, root.status.description) == (trace.StatusCode.ERROR, "no")
    assert [event.name for event in root.events] == ["mine"]
    assert (root.dropped_attributes, root.dropped_events, root.dropped_links) == (0, 0, 0)
    assert told(root)["luckrate.verdict"] == "fail"
    assert told(root)["luckrate.case"] == "mine"
    assert root.resource.attributes["service.name"] == "shop"
    assert root.instrumentation_scope is not None
    assert root.instrumentation_scope.name == "shop.agent"
    assert root.start_time
    assert root.end_time


def test_dropped_counts_stay(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "3")
    bench = make()
    with bench.agent() as span:
        for index in range(4):
            span.set_attribute(f"gen_ai.request.{index}", index)
        span.set_attribute("gen_ai.operation.name", "invoke_agent")
        bench.call("look")
    root = bench.flush()["invoke_agent support"]
    assert isinstance(root, AnnotatedSpan)
    assert root.dropped_attributes > 0


def test_the_thread_judges_by_itself(make: Make) -> None:
    bench = make()
    bench.run("look")
    assert bench.judged.wait(10)
    assert bench.labels() == ["pass"]


def test_what_is_no_agents_passes_as_it_was(make: Make) -> None:
    bench = make()
    with bench.tracer.start_as_current_span("GET /"):
        pass
    assert told(bench.flush()["GET /"]) == {}
    assert bench.verdicts == []


def test_without_a_spec_the_rules_that_are_on_by_default_are_graded(make: Make) -> None:
    bench = make(())
    bench.run("pay")
    bench.flush()
    assert bench.verdicts[0][1].spec == "default"


def test_specs_come_as_mappings_specs_and_files(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("name: from-file\n", encoding="utf-8")
    inner = SimpleSpanProcessor(InMemorySpanExporter())
    given: Any
    for given in ([SPEC, file], (Spec.from_mapping(SPEC), str(file)), file, str(file), Spec.from_mapping(SPEC)):
        LuckrateSpanProcessor(inner, given)
    with pytest.raises(SpecError):
        LuckrateSpanProcessor(inner, {"forbiden": []})


# ---- runs ----------------------------------------------------------------------------------------


def test_an_agent_behind_a_remote_caller_is_a_whole_run(make: Make) -> None:
    bench = make()
    caller = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))
    context = trace.set_span_in_context(NonRecordingSpan(caller))
    with bench.tracer.start_as_current_span("POST /chat", context=context, kind=SpanKind.SERVER):
        bench.run("pay")
    bench.flush()
    ((trajectory, verdict),) = bench.verdicts
    assert (trajectory.complete, trajectory.close_reason) == (True, CloseReason.ROOT)
    assert [violation.rule for violation in verdict.violations] == ["required", "forbidden"]


def test_the_case_comes_from_baggage(make: Make) -> None:
    bench = make()
    with bench.agent(context=baggage.set_baggage("luckrate.case", "refund")):
        bench.call("look")
    bench.flush()
    assert bench.verdicts[0][1].case == "refund"


def test_a_flush_hands_on_what_is_held_and_leaves_the_run_open(make: Make) -> None:
    bench = make()
    with bench.agent("outer"):
        bench.run("pay")
        spans = bench.flush()
        assert told(spans["execute_tool pay"])["luckrate.rules"] == ("forbidden",)
        assert bench.verdicts == []
        bench.call("look")
    spans = bench.flush()
    assert sorted(span.name for span in bench.memory.get_finished_spans()) == [
        "execute_tool look",
        "execute_tool pay",
        "invoke_agent outer",
        "invoke_agent support",
    ]
    assert [step.tool for step in bench.verdicts[0][0].steps] == ["pay", "look"]
    assert told(spans["invoke_agent outer"])["luckrate.verdict"] == "lucky"


def test_what_ends_after_the_verdict_is_late_and_the_run_is_judged_again(make: Make) -> None:
    bench = make()
    with bench.agent() as root:
        bench.call("look")
        context = trace.set_span_in_context(root)
    bench.flush()
    late = bench.tracer.start_span(
        "late", context, attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"}
    )
    late.end()
    spans = bench.flush()
    assert told(spans["late"])["luckrate.late"] is True
    assert bench.labels() == ["pass", "lucky"]
    assert len(bench.memory.get_finished_spans()) == 3


def test_earlier_turns_of_a_conversation_ground_later_arguments(make: Make) -> None:
    bench = make({"ground": True})
    for text, argument in (("Order 88213, please.", "88213"), ("Refund it.", "88213")):
        message = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
        with bench.agent() as span:
            span.set_attributes({"gen_ai.conversation.id": "c", "gen_ai.input.messages": json.dumps(message)})
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "look",
                "gen_ai.tool.call.arguments": json.dumps({"id": argument}),
            }
            bench.tracer.start_span("execute_tool look", attributes=attributes).end()
        bench.flush()
    assert [verdict.violations for _, verdict in bench.verdicts] == [(), ()]


# ---- ends ----------------------------------------------------------------------------------------


def test_shutdown_judges_what_is_open_and_hands_on_everything(make: Make) -> None:
    bench = make()
    with bench.agent():
        bench.call("pay")
        bench.provider.shutdown()
    assert [span.name for span in bench.memory.get_finished_spans()] == ["execute_tool pay"]
    ((trajectory, verdict),) = bench.verdicts
    assert trajectory.close_reason is CloseReason.SHUTDOWN
    assert (verdict.verdict, verdict.reason) == ("not_graded", "no_agent")  # its span has not ended


def test_a_finished_run_is_whole_at_shutdown(make: Make) -> None:
    bench = make()
    bench.run("pay")
    bench.provider.shutdown()
    bench.processor.shutdown()
    assert [violation.rule for violation in bench.verdicts[0][1].violations] == ["required", "forbidden"]
    assert len(bench.memory.get_finished_spans()) == 2


def test_it_goes_before_the_batch_processor(make: Make) -> None:
    memory = InMemorySpanExporter()
    bench = make(SPEC, BatchSpanProcessor(memory))
    bench.run("look", "pay")
    assert bench.provider.force_flush()
    assert len(memory.get_finished_spans()) == 3


# ---- grading never harms -------------------------------------------------------------------------


class Refusing(SpanProcessor):
    """Raises at the first span, keeps the others."""

    def __init__(self) -> None:
        self.seen: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.seen.append(span)
        if len(self.seen) == 1:
            raise OSError


def test_a_next_processor_that_raises_costs_one_span(make: Make) -> None:
    inner = Refusing()
    bench = make(SPEC, inner)
    bench.run("look", "pay")
    bench.provider.force_flush()
    assert len(inner.seen) == 3
    assert bench.processor.failed == {"next": 1}


@pytest.mark.parametrize("stage", ["grade", "read", "annotate"])
def test_a_failing_stage_costs_annotations_and_no_span(
    make: Make, stage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError(stage)

    names = {"grade": "pipeline.grade", "read": "to_span", "annotate": "rebuild"}
    monkeypatch.setattr(f"luckrate_otel.sdk.grader.{names[stage]}", fail)
    bench = make()
    bench.run("look", "pay")
    spans = bench.flush()
    assert set(spans) == {"execute_tool look", "execute_tool pay", "invoke_agent support"}
    assert all(told(span) == {} for span in spans.values())
    assert bench.processor.failed[stage] >= 1
    assert f"{stage} failed; spans are handed on as they came" in caplog.text


def test_a_callback_that_raises_costs_nothing(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    bench = make()
    bench.verdicts = None  # type: ignore[assignment]  # so that the callback raises
    bench.run("look")
    assert told(bench.flush()["invoke_agent support"])["luckrate.verdict"] == "pass"
    assert bench.processor.failed == {"on_verdict": 1}


def test_a_full_queue_lets_spans_pass(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_WAITING", 0)
    bench = make()
    bench.run("pay")
    assert len(bench.memory.get_finished_spans()) == 2
    assert bench.processor.failed == {"full": 2}


def test_a_flush_that_cannot_begin_in_time_says_so(make: Make) -> None:
    bench = make()
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with bench.processor._lock:
            held.set()
            leave.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    assert not bench.processor.force_flush(1)
    leave.set()
    thread.join()
    assert bench.processor.force_flush()


def test_a_span_that_has_been_held_long_enough_leaves_before_the_verdict(make: Make) -> None:
    memory = InMemorySpanExporter()
    bench = make()
    bench.provider.add_span_processor(SimpleSpanProcessor(memory))
    with bench.agent("outer"):
        bench.run("pay")
    pay, inner, outer = memory.get_finished_spans()
    grader = Grader([Spec.from_mapping(SPEC)], held_bytes=10**6, release_after_ns=10, verdict_after_ns=10**9)
    assert [grader.add(span, 0) for span in (pay, inner)] == [None, None]
    assert grader.take(9) == []
    assert grader.next_deadline() == 10
    left = grader.take(10)
    assert [told(span).get("luckrate.rules") for span in left] == [("forbidden",), None]
    assert grader.graded == 0
    assert grader.add(outer, 11) is None
    assert [span.name for span in grader.take(11 + SETTLE_NS)] == ["invoke_agent outer"]
    assert grader.graded == 1


def test_memory_is_bounded(make: Make) -> None:
    bench = make(held_bytes=1)
    with bench.agent():
        bench.call("pay")
        bench.provider.force_flush()
    bench.flush()
    assert len(bench.memory.get_finished_spans()) == 2


def test_many_threads(make: Make) -> None:
    bench = make()
    threads = [threading.Thread(target=bench.run, args=("look", "pay")) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.flush()
    assert bench.labels() == ["lucky"] * 20
    assert len(bench.memory.get_finished_spans()) == 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_begins_anew(make: Make) -> None:
    bench = make()
    reader, writer = os.pipe()
    with bench.agent():
        bench.call("pay")
        child = os.fork()
        if child == 0:
            bench.memory.clear()
            bench.verdicts.clear()
            bench.run("look")
            bench.processor.force_flush()
            names = sorted(span.name for span in bench.memory.get_finished_spans())
            os.write(writer, json.dumps([names, [len(t.steps) for t, _ in bench.verdicts]]).encode())
            os._exit(0)
        os.waitpid(child, 0)
    assert json.loads(os.read(reader, 10_000))[0] == ["execute_tool look", "invoke_agent support"]
    bench.flush()
    assert [step.tool for step in bench.verdicts[0][0].steps] == ["pay"]


def test_its_thread_does_not_keep_it_alive() -> None:
    bench = Bench()
    bench.run("look")
    bench.flush()
    thread = bench.processor._thread
    assert thread is not None
    gone = weakref.ref(bench.processor)
    wake = bench.processor._wake
    bench.provider.shutdown()
    del bench
    gc.collect()
    wake.set()
    thread.join(10)
    assert not thread.is_alive()
    assert gone() is None


def test_what_a_spec_says_in_vain_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    Bench([SPEC, {"name": "half", "privileged": ["pay"]}]).provider.shutdown()
    assert [record.getMessage() for record in caplog.records] == [
        "spec half: privileged: the rule taint is off without untrusted (tools whose results strangers may write)"
    ]
