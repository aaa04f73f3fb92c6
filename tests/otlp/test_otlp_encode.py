from __future__ import annotations

from contextlib import suppress

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from luckrate_otel.errors import Rejected
from luckrate_otel.otlp import schema
from luckrate_otel.otlp.encode import (
    LogEvent,
    append,
    encode_span,
    logs_request,
    our_envelope,
    request,
    strip_luckrate,
    traces_request,
)
from luckrate_otel.otlp.shallow import Group, shallow
from luckrate_otel.otlp.wire import delimited
from luckrate_otel.telemetry import Head, Span, SpanEvent
from tests.otlp.otlp_strategies import ATTRIBUTES, EVENTS, TEXTS, TIMES, VALUES, WIRE_SPANS

TRACE, SPAN = bytes(range(1, 17)), bytes(range(1, 9))
_OUR_NAMES = TEXTS.map("luckrate.{}".format).filter(lambda name: name != "luckrate.case")
OUR_ATTRIBUTES = st.dictionaries(_OUR_NAMES, VALUES, max_size=3)
OUR_EVENTS = st.lists(st.builds(SpanEvent, _OUR_NAMES, TIMES, ATTRIBUTES), max_size=3)


def test_an_annotated_span_is_its_bytes_and_the_official_encoding_of_the_rest() -> None:
    span = WireSpan(trace_id=TRACE, span_id=SPAN, name="x", attributes=[KeyValue(key="a")])
    wire = span.SerializeToString() + b"\xc2\x3e\x01u"
    annotated = append(wire, [SpanEvent("luckrate.violation", 7, {"luckrate.rule": "before"})], {"luckrate.steps": 3})
    assert annotated.startswith(wire)
    span.MergeFromString(b"\xc2\x3e\x01u")
    span.attributes.add(key="luckrate.steps", value=AnyValue(int_value=3))
    event = span.events.add(name="luckrate.violation", time_unix_nano=7)
    event.attributes.add(key="luckrate.rule", value=AnyValue(string_value="before"))
    assert WireSpan.FromString(annotated) == span


@given(WIRE_SPANS, OUR_EVENTS, OUR_ATTRIBUTES)
def test_append_then_strip_gives_the_span_back(
    wire: bytes, events: list[SpanEvent], attributes: dict[str, object]
) -> None:
    assert strip_luckrate(append(wire, events, attributes)) == wire


@pytest.mark.parametrize("size", [0, 10, 16_300, 16_400, 100_000])
def test_findings_are_taken_off_a_span_of_any_length(size: int) -> None:
    wire = delimited(0x2A, b"n" * size)
    assert strip_luckrate(append(wire, [SpanEvent("luckrate.violation", 1)], {"luckrate.rules": ("a",)})) == wire
    assert strip_luckrate(wire) is wire


@given(WIRE_SPANS, EVENTS, ATTRIBUTES)
def test_strip_takes_nothing_else(wire: bytes, events: tuple[SpanEvent, ...], attributes: dict[str, object]) -> None:
    annotated = append(wire, events, attributes)
    assert strip_luckrate(annotated) is annotated


def test_strip_keeps_order_groups_unknown_fields_and_the_case() -> None:
    mine = append(b"", [SpanEvent("luckrate.violation", 1)], {"luckrate.rules": ("a",)})
    group = b"\xdb\x06\x08\x01\xdc\x06"  # field 107 as a group that holds field 1
    case = append(b"", [], {"luckrate.case": "s1", "note": "luckrate.rules"})
    parts = (b"\x0a\x10" + TRACE, group, case, b"\x80\x7d\x05", b"\x85\x01\x01\0\0\0", b"\x39" + bytes(8))
    assert strip_luckrate(mine.join((b"", *parts, b""))) == b"".join(parts)


def test_attributes_that_cannot_be_read_stay() -> None:
    wire = b"\x4a\x0c\x0a\x20luckrate.x"
    assert strip_luckrate(wire) is wire


@pytest.mark.parametrize(
    "damage",
    [
        b"\x4a\x20abc",
        b"\x4a",
        b"\x80",
        b"\x08" + b"\xff" * 10,
        b"\x0e\x01",
        b"\x0f\x01",
        b"\x0c",
        b"\x39abc",
        b"\x85\x01a",
        b"\x0b\x08\x01",
        b"\x0b\x14",
    ],
)
def test_strip_rejects_what_is_no_message(damage: bytes) -> None:
    with pytest.raises(Rejected, match="malformed protobuf"):
        strip_luckrate(append(b"", [], {"luckrate.path": "ok"}) + damage)


@given(st.binary(max_size=40))
@settings(max_examples=500)
def test_strip_takes_all_that_protobuf_takes_and_rejects_or_cuts_the_rest(noise: bytes) -> None:
    wire = append(b"", [], {"luckrate.path": "ok"}) + noise
    try:
        schema.Span.FromString(wire)
    except DecodeError:
        with suppress(Rejected):
            assert len(strip_luckrate(wire)) <= len(noise)
    else:
        assert len(strip_luckrate(wire)) <= len(noise)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.binary(max_size=5)), max_size=12))
def test_a_request_groups_equal_envelopes_and_keeps_their_order(parts: list[tuple[str, str, bytes]]) -> None:
    body = traces_request((our_envelope({"service.name": service}, scope), item) for service, scope, item in parts)
    found = [(g.envelope.service, g.envelope.scope, item) for g in shallow(body) for item in g.items]
    services = list(dict.fromkeys(service for service, _, _ in parts))
    scopes = list(dict.fromkeys((service, scope) for service, scope, _ in parts))
    scopes.sort(key=lambda pair: services.index(pair[0]))
    assert found == [part for scope in scopes for part in parts if part[:2] == scope]


def test_unknown_fields_of_a_request_are_sent_once() -> None:
    unknown = b"\xc2\x3e\x01u"
    around = our_envelope({"service.name": "shop"}, "lib")
    groups = shallow(request([Group(around, [b"a"]), Group(our_envelope({}, ""), [b"b"])]) + unknown)
    again = request(groups)
    assert again.endswith(unknown)
    assert again.count(unknown) == 1


def test_nothing_makes_an_empty_request() -> None:
    assert traces_request([]) == b""


def test_a_log_event_is_the_official_message() -> None:
    body = logs_request(
        our_envelope({"service.name": "luckrate-otel"}, "luckrate", "0.1"),
        [
            LogEvent(TRACE.hex(), SPAN.hex(), "gen_ai.evaluation.result", 5, 13, {"gen_ai.evaluation.name": "x"}),
            LogEvent("", "", "e", 6, 0),
        ],
    )
    assert ExportLogsServiceRequest.FromString(body) == ExportLogsServiceRequest(
        resource_logs=[
            ResourceLogs(
                resource=Resource(
                    attributes=[KeyValue(key="service.name", value=AnyValue(string_value="luckrate-otel"))]
                ),
                scope_logs=[
                    ScopeLogs(
                        scope=InstrumentationScope(name="luckrate", version="0.1"),
                        log_records=[
                            LogRecord(
                                trace_id=TRACE,
                                span_id=SPAN,
                                event_name="gen_ai.evaluation.result",
                                time_unix_nano=5,
                                observed_time_unix_nano=5,
                                severity_number=13,  # type: ignore[arg-type]  # numbers, as OTLP tells them
                                severity_text="WARN",
                                attributes=[KeyValue(key="gen_ai.evaluation.name", value=AnyValue(string_value="x"))],
                            ),
                            LogRecord(event_name="e", time_unix_nano=6, observed_time_unix_nano=6),
                        ],
                    )
                ],
            )
        ]
    )


@pytest.mark.parametrize(("severity", "text"), [(8, ""), (9, "INFO"), (13, "WARN"), (17, "ERROR"), (21, "ERROR")])
def test_severity_texts(severity: int, text: str) -> None:
    (group,) = shallow(logs_request(our_envelope({}, ""), [LogEvent("", "", "e", 1, severity)]))
    assert LogRecord.FromString(group.items[0]).severity_text == text


def test_text_that_is_not_unicode_is_written() -> None:
    wire = encode_span(Span(Head("", "", name="a\ud800")))
    assert WireSpan.FromString(wire) == WireSpan(name="a�")
