"""A span read in the process is the span that a receiver reads."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from luckrate_otel.sdk import to_span
from luckrate_otel.telemetry import Head, Span
from tests.captured import CASES, Case, telemetry
from tests.sdk.spans import exported, sdk_span

TEXT = st.text(max_size=8)
SCALAR = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False), TEXT, st.binary(max_size=4), st.just("\ud800")
)
VALUE = st.recursive(
    SCALAR,
    lambda child: st.one_of(st.lists(child, max_size=3), st.dictionaries(TEXT, child, max_size=3), st.none()),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(st.text(min_size=1, max_size=8, alphabet="abc."), VALUE, max_size=4)
TIME = st.integers(0, 2**63 - 1)


@st.composite
def spans(draw: st.DrawFn) -> ReadableSpan:
    def context() -> SpanContext:
        return SpanContext(
            draw(st.integers(1, 2**128 - 1)),
            draw(st.integers(1, 2**64 - 1)),
            False,
            TraceFlags(1),
        )

    plain = st.text(max_size=8).filter(lambda text: text.isprintable())
    return ReadableSpan(
        name=draw(plain),
        context=context(),
        parent=context() if draw(st.booleans()) else None,
        resource=Resource(draw(st.dictionaries(plain, plain | st.integers(-9, 9), max_size=2))),
        attributes=draw(ATTRIBUTES),
        events=[Event(draw(plain), draw(ATTRIBUTES), draw(TIME)) for _ in range(draw(st.integers(0, 2)))],
        kind=draw(st.sampled_from(SpanKind)),
        status=Status(StatusCode.ERROR, draw(plain)) if draw(st.booleans()) else Status(StatusCode.OK),
        start_time=draw(TIME),
        end_time=draw(TIME),
        instrumentation_scope=InstrumentationScope(draw(plain), draw(plain)) if draw(st.booleans()) else None,
    )


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """The exporter logs every attribute that it leaves out."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@given(spans())
def test_it_is_what_the_exporter_would_send(span: ReadableSpan) -> None:
    assert [to_span(span)] == exported([span])


@pytest.mark.parametrize("case", CASES[::5], ids=str)
def test_captured_spans_come_through(case: Case) -> None:
    captured, _ = telemetry(case)
    made = [sdk_span(span) for span in captured]
    assert [to_span(span) for span in made] == [exported([span])[0] for span in made]


def test_a_bare_span() -> None:
    assert to_span(ReadableSpan("x", resource=Resource({}))) == Span(Head("", "", name="x", kind=1))


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, 2**63, -(2**63) - 1, "\ud800", ("a", object()), {"a": {"b": 2**64}}]
)
def test_what_otlp_cannot_carry_is_left_out(value: Any) -> None:
    span = ReadableSpan("x", resource=Resource({}), attributes={"bad": value, "good": 2**63 - 1})
    assert to_span(span).attributes == {"good": 2**63 - 1}


def test_names_that_otlp_cannot_carry_are_mended() -> None:
    """The exporter would lose the whole request; what is said of the run must be something that can be written."""
    half = "look \ud800"
    span = ReadableSpan(half, resource=Resource({}), events=[Event(half, {}, 1)], status=Status(StatusCode.ERROR, half))
    read = to_span(span)
    assert [read.head.name, read.events[0].name, read.status_message] == ["look \N{REPLACEMENT CHARACTER}"] * 3
