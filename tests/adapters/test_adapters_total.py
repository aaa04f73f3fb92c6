"""Adapters never raise, whatever the attributes hold, and the join never raises on what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckrate_otel.adapters import ADAPTERS, MARKERS, SCOPES, read
from luckrate_otel.batch import trajectories
from luckrate_otel.reports.trajectory import to_json
from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status
from tests.captured import CASES, telemetry

# The keys that adapters look at: those of every captured span, so that new conventions are tried as they are captured.
_SPANS = [span for case in CASES[::9] for span in telemetry(case)[0]]
KEYS = sorted({key for span in _SPANS for key in span.attributes} | {"gen_ai.input.messages", "tool_arguments"})
NAMES = sorted({span.head.name for span in _SPANS} | {"invoke_agent x", "execute_tool x"})
EVENTS = (
    "gen_ai.user.message",
    "gen_ai.choice",
    "gen_ai.tool.message",
    "exception",
    "gen_ai.evaluation.result",
    "other",
)
WORDS = (
    "role",
    "parts",
    "content",
    "tool_calls",
    "type",
    "text",
    "messages",
    "kwargs",
    "lc",
    "id",
    "name",
    "args",
    "input",
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
texts = json_values.map(json.dumps) | json_values.map(repr) | st.text(max_size=20)
cut = st.tuples(texts, st.integers(1, 30)).map(lambda pair: pair[0][: pair[1]])
values = json_values | texts | cut | st.binary(max_size=4) | st.lists(texts, max_size=2).map(tuple)
attributes = st.dictionaries(st.sampled_from(KEYS), values, max_size=8)
kinds = st.sampled_from(
    ("TOOL", "LLM", "AGENT", "CHAIN", "tool", "agent", "workflow", "task", "llm", "chain", "execute_tool")
)
marks = st.dictionaries(
    st.sampled_from(("openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind", "gen_ai.operation.name")),
    kinds,
)


@st.composite
def spans(draw: Any) -> Span:
    start = draw(st.integers(0, 50))
    head = Head(
        "t" * 32,
        draw(st.sampled_from(("a", "b", "c", "d", "e"))),
        draw(st.sampled_from(("", "a", "b", "c", "missing"))),
        draw(st.sampled_from(NAMES)),
        draw(st.integers(0, 5)),
        start,
        draw(st.integers(0, 60)),
        draw(st.sampled_from(Status)),
        draw(st.sampled_from([*SCOPES, "unknown"])),
    )
    events = st.builds(SpanEvent, st.sampled_from(EVENTS), st.integers(0, 9), attributes)
    return Span(head, draw(attributes) | draw(marks), tuple(draw(st.lists(events, max_size=2))))


logs = st.builds(
    LogRecord,
    st.just("t" * 32),
    st.sampled_from(("", "a", "z")),
    st.sampled_from(EVENTS),
    st.integers(0, 9),
    attributes,
    values,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(spans(), max_size=5), st.lists(logs, max_size=2))
def test_never_raises(told: list[Span], records: list[LogRecord]) -> None:
    for run in trajectories(told, records):
        json.dumps(to_json(run))
        assert len(run.call_ids) == len(run.steps)
        assert [s.t for s in run.steps] == sorted(s.t for s in run.steps)
        known = {span.head.span_id for span in told}
        assert all(s.span is None or s.span in known for s in run.steps)
        assert all((s.args is None) == ((n, "args") in run.gaps) for n, s in enumerate(run.steps))


@settings(max_examples=150, deadline=None)
@given(spans())
def test_every_adapter_is_total(span: Span) -> None:
    for adapter in ADAPTERS:
        found = adapter.read(span)
        assert found is None or found.head == span.head


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=5), st.text(min_size=1), min_size=1), st.data())
def test_cut_arguments_are_not_captured(args: dict[str, str], data: Any) -> None:
    """Whatever an argument object is cut to, no part of it passes for the whole."""
    whole = json.dumps(args)
    kept = data.draw(st.integers(1, len(whole) - 1))
    span = Span(
        Head("t" * 32, "a", scope="acme"),
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x", "gen_ai.tool.call.arguments": whole[:kept]},
    )
    found = read(span)
    assert found is not None
    assert (found.args, found.args_gap) == (None, "truncated")


def test_a_marker_is_on_every_claimed_span_of_an_unknown_scope() -> None:
    """The shell decides by searching the bytes: no span that an adapter claims may lack all of the markers."""
    for span in _SPANS:
        if span.head.scope not in SCOPES and read(span) is not None:
            keys = " ".join((*span.attributes, *(k for e in span.events for k in e.attributes))).encode()
            assert any(marker in keys for marker in MARKERS), span.head


@pytest.mark.parametrize("marker", [adapter.marker for adapter in ADAPTERS if adapter.marker])
def test_every_convention_is_looked_for(marker: str) -> None:
    assert any(searched in marker.encode() for searched in MARKERS)


@pytest.mark.parametrize("depth", [10, 60, 70, 400, 900, 5000])
@pytest.mark.parametrize(
    "key", ["gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.input.messages", "gen_ai.tool.definitions"]
)
@pytest.mark.parametrize("form", ['{"a":', "[", '{"parts":[', '[{"function_declarations":', '{"messages":['])
def test_deep_nesting_does_not_exhaust_the_stack(depth: int, key: str, form: str) -> None:
    closing = form[::-1].translate(str.maketrans("{[", "}]"))
    text = form * depth + "0" + "".join(c for c in closing if c in "}]") * depth
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x", key: text}
    twice = [Span(Head("t" * 32, span_id, scope=span_id), attributes) for span_id in ("a", "b")]
    for run in trajectories(twice):
        json.dumps(to_json(run))
