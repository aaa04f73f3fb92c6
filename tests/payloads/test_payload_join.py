"""Native spans know ids and times, the payload knows arguments and results; together they know both."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.model import Coverage, Step, Trajectory, Turn
from luckrate_otel.payloads import from_n8n, merge_with_spans, same_run
from tests.payloads.payload_making import CAPTURED, captured

TRACE = "4db132829c6e05866f75a17d87dcd2e9"
WORKFLOW = "1e7ce15212e546e3"
TOOLS = ("lookup_order", "check_policy", "escalate_to_human")


def native_spans() -> Trajectory:
    """What n8n's own spans of the captured run tell: names, times, outcome."""
    lines = (CAPTURED / "native-s1.traces.jsonl").read_text().splitlines()
    spans = [
        span
        for line in lines
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    start = next(int(s["startTimeUnixNano"]) for s in spans if s["spanId"] == WORKFLOW)

    def step(span: Any) -> Step | None:
        names = {a["key"]: a["value"].get("stringValue") for a in span["attributes"]}
        begun, ended = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        if (tool := names.get("n8n.node.name")) not in TOOLS:
            return None
        t, lasted = (begun - start) / 1e6, (ended - begun) / 1e6
        return Step(str(tool), None, True, None, t, duration=lasted, span=span["spanId"])

    steps = sorted((s for s in map(step, spans) if s), key=lambda s: s.t)
    return Trajectory(
        steps=tuple(steps),
        run_id=f"{TRACE}:{WORKFLOW}",
        trace_ids=(TRACE,),
        adapters=("n8n",),
        coverage=Coverage(args=False, results=False, task_input=False, final_output=False),
        gaps={(i, name): Gap.NOT_CAPTURED for i in range(3) for name in ("args", "result")},
        root=WORKFLOW,
        start_ns=start,
    )


def stored() -> Trajectory:
    (trajectory,) = from_n8n(captured("s1.execution.json"))
    return trajectory


def test_a_captured_run_seen_both_ways_is_whole() -> None:
    spans, payload = native_spans(), stored()
    assert merge_with_spans(spans, payload) == replace(
        payload,
        steps=tuple(
            replace(told, t=seen.t, duration=seen.duration, span=seen.span)
            for told, seen in zip(payload.steps, spans.steps, strict=True)
        ),
        run_id=f"{TRACE}:{WORKFLOW}",
        adapters=("n8n", "n8n-execution"),
        root=WORKFLOW,
        root_status=spans.root_status,
        start_ns=spans.start_ns,
        duration=spans.duration,
    )
    assert [step.span for step in merge_with_spans(spans, payload).steps] == [
        "a42054181511a9d2",
        "e966f0ae24f27fee",
        "e726e675db570c37",
    ]


def test_spans_that_one_side_lacks_are_kept_from_the_other() -> None:
    spans, payload = native_spans(), stored()
    first, second, third = spans.steps
    few = replace(spans, steps=(first, third), gaps={})
    merged = merge_with_spans(few, payload)
    assert [(s.tool, s.span) for s in merged.steps] == [
        ("lookup_order", first.span),
        ("check_policy", None),
        ("escalate_to_human", third.span),
    ]
    assert merged.steps[1].args == {"amount": 200}
    less = replace(payload, steps=payload.steps[:1], call_ids=payload.call_ids[:1])
    merged = merge_with_spans(spans, less)
    assert [(s.tool, s.span, s.args is None) for s in merged.steps] == [
        ("lookup_order", first.span, False),
        ("check_policy", second.span, True),
        ("escalate_to_human", third.span, True),
    ]
    assert merged.gaps == {(i, name): Gap.NOT_CAPTURED for i in (1, 2) for name in ("args", "result")}
    assert merged.call_ids == ("call_0_e3051ec182", None, None)


def test_of_a_repeated_call_the_nearest_span_is_its_own() -> None:
    def steps(*times: float, span: str | None = None) -> tuple[Step, ...]:
        return tuple(Step("a", {"t": t}, t=t, span=span and f"{span}{t:g}") for t in times)

    spans = Trajectory(steps=steps(101.0, 301.0, span="s"), trace_ids=("t",))
    payload = Trajectory(steps=steps(100.0, 200.0, 300.0), trace_ids=("t",))
    assert [(s.t, s.span) for s in merge_with_spans(spans, payload).steps] == [
        (101.0, "s101"),
        (200.0, None),
        (301.0, "s301"),
    ]


def test_a_tool_of_a_toolkit_is_found_by_its_start() -> None:
    spans = Trajectory(steps=(Step("Shop MCP", None, t=10.0, span="s1"),), trace_ids=("t",))
    payload = Trajectory(steps=(Step("lookup", {"x": 1}, t=11.0),), trace_ids=("t",))
    assert merge_with_spans(spans, payload).steps == (Step("lookup", {"x": 1}, t=10.0, span="s1"),)


def test_a_name_that_n8n_rewrote_for_the_model_is_the_same_tool() -> None:
    spans = Trajectory(steps=(Step("Lookup Order", None, t=10.0, span="s1"),), trace_ids=("t",))
    payload = Trajectory(steps=(Step("Lookup_Order", {"x": 1}, t=900.0),), trace_ids=("t",))
    assert merge_with_spans(spans, payload).steps == (Step("Lookup_Order", {"x": 1}, t=10.0, span="s1"),)


def test_spans_know_of_a_failure_that_the_agents_feature_does_not_store() -> None:
    failed = Step("a", {}, False, None, 5.0, "bot", "Error", 1.0, "s1")
    spans = Trajectory(steps=(failed,), trace_ids=("t",), gaps={(0, "result"): Gap.NOT_CAPTURED})
    unknown = Trajectory(
        steps=(Step("a", {}, None, None),),
        trace_ids=("t",),
        gaps={(0, "ok"): Gap.NOT_CAPTURED, (0, "result"): Gap.NOT_CAPTURED},
        turns=(Turn("go"),),
    )
    merged = merge_with_spans(spans, unknown)
    assert (merged.steps, merged.turns) == ((failed,), (Turn("go"),))
    assert merged.gaps == {(0, "result"): Gap.NOT_CAPTURED}


@pytest.mark.parametrize(("agent", "gaps"), [("main", {(0, "agent"): Gap.INCOMPLETE}), ("desk", {})])
def test_whose_call_it_was_the_execution_may_know(agent: str, gaps: dict[tuple[int, str], Gap]) -> None:
    spans = Trajectory(steps=(Step("a", {}, span="s1"),), trace_ids=("t",), gaps={(0, "agent"): Gap.INCOMPLETE})
    payload = Trajectory(steps=(Step("a", {}, agent=agent),), trace_ids=("t",))
    assert merge_with_spans(spans, payload).gaps == gaps


PARENT = {"n8n.execution.id": "1", "n8n.traceparent": f"00-{TRACE}-{WORKFLOW}-01"}
PAIRS = {
    "workflow span": (Trajectory(trace_ids=(TRACE,), root=WORKFLOW), True),
    "execution id": (Trajectory(trace_ids=(TRACE,), attributes={"n8n.execution.id": 1}), True),
    "another execution of the trace": (Trajectory(trace_ids=(TRACE,), attributes={"n8n.execution.id": "2"}), False),
    "only the trace": (Trajectory(trace_ids=(TRACE,), root="ffff"), True),
    "another trace": (Trajectory(trace_ids=("b" * 32,), root=WORKFLOW), False),
    "no trace": (Trajectory(), False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_same_run(name: str) -> None:
    spans, same = PAIRS[name]
    payload = Trajectory(trace_ids=(TRACE,), attributes=PARENT, turns=(Turn("x"),))
    assert same_run(spans, payload) is same
    assert (merge_with_spans(spans, payload) == spans) is not same
