from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as WireLog
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status as WireStatus

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import files
from luckrate_otel.otlp.any_value import MAX_VALUES
from luckrate_otel.otlp.decode import MAX_ITEM_BYTES, decode_log, decode_span
from luckrate_otel.otlp.encode import encode_span, our_envelope
from luckrate_otel.otlp.shallow import Envelope
from luckrate_otel.otlp.wire import varint
from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status
from tests.otlp.otlp_strategies import ENVELOPE, SPANS, UNKNOWN_FIELDS

DATA = Path(__file__).parent.parent / "data" / "otlp"
TRACE, SPAN, PARENT = bytes(range(1, 17)), bytes(range(1, 9)), bytes(range(2, 10))


@given(SPANS, UNKNOWN_FIELDS)
def test_decode_of_encode_is_the_span_whatever_else_is_in_it(span: Span, unknown: bytes) -> None:
    assert decode_span(unknown + encode_span(span) + unknown, ENVELOPE) == span


def _read(wire: bytes) -> Span | None:
    try:
        return decode_span(wire, ENVELOPE)
    except Rejected:
        return None


# In front of a span, so that its fields are not in the order of their numbers and the parser must read it.
AHEAD = b"\xc2\x3e\x04kept"
# A part of a span behind it: parsers merge the two, the later value stands.
PARTS = st.one_of(
    st.just(b""),
    st.builds(
        WireSpan,
        trace_id=st.sampled_from((b"", TRACE)),
        parent_span_id=st.sampled_from((b"", PARENT)),
        name=st.sampled_from(("", "later")),
        kind=st.sampled_from((0, 3)),
        end_time_unix_nano=st.sampled_from((0, 7)),
        attributes=st.lists(st.builds(KeyValue, key=st.sampled_from("ab")), max_size=2),
        status=st.sampled_from((None, WireStatus(code=WireStatus.STATUS_CODE_ERROR))),
        flags=st.sampled_from((0, 0x300)),
    ).map(lambda part: part.SerializeToString()),
)
LONG = st.integers(100, 20_000).map(lambda size: {"long": "x" * size})


@given(SPANS, st.one_of(st.just({}), LONG), PARTS)
def test_a_span_in_the_order_of_its_fields_is_read_as_the_parser_reads_it(
    span: Span, long: dict[str, str], part: bytes
) -> None:
    filled = replace(span, attributes={**span.attributes, **long})
    wire = WireSpan.FromString(encode_span(filled)).SerializeToString()
    assert decode_span(wire, ENVELOPE) == filled
    assert decode_span(wire + part, ENVELOPE) == decode_span(AHEAD + wire + part, ENVELOPE)


@given(SPANS, PARTS, st.data())
def test_a_damaged_span_is_read_as_the_parser_reads_it(span: Span, part: bytes, data: st.DataObject) -> None:
    wire = bytearray(WireSpan.FromString(encode_span(span)).SerializeToString() + part)
    for at in data.draw(st.lists(st.integers(0, len(wire) - 1), max_size=3)):
        wire[at] = data.draw(st.integers(0, 255))
    damaged = bytes(wire[: data.draw(st.integers(len(wire) // 2, len(wire)))])
    assert _read(damaged) == _read(AHEAD + damaged)


@pytest.mark.parametrize("parent", [b"", PARENT])
def test_whatever_any_byte_of_a_span_becomes_it_is_read_as_the_parser_reads_it(parent: bytes) -> None:
    wire = WireSpan(
        trace_id=TRACE,
        span_id=SPAN,
        parent_span_id=parent,
        name="n",
        kind=WireSpan.SPAN_KIND_CLIENT,
        start_time_unix_nano=5,
        end_time_unix_nano=9,
        attributes=[KeyValue(key="a", value=AnyValue(string_value="b"))],
        flags=0x300,
    ).SerializeToString()
    assert decode_span(wire, ENVELOPE) == decode_span(AHEAD + wire, ENVELOPE)
    inside_ids = {*range(3, 18), *range(21, 28)}
    for at in sorted({*range(len(wire))} - inside_ids):
        for byte in range(256):
            damaged = wire[:at] + bytes([byte]) + wire[at + 1 :]
            assert _read(damaged) == _read(AHEAD + damaged), (at, byte)


# Each field before the attributes, written although it is empty: encoders leave that out, parsers take it.
EMPTY = [b"\x0a\x00", b"\x12\x00", b"\x22\x00", b"\x2a\x00", b"\x30\x00", b"\x39" + bytes(8), b"\x41" + bytes(8)]


@pytest.mark.parametrize("part", EMPTY)
@pytest.mark.parametrize("behind", [b"", WireSpan(flags=0x300).SerializeToString()])
def test_a_field_that_is_emptied_behind_the_attributes_is_read_as_the_parser_reads_it(
    part: bytes, behind: bytes
) -> None:
    filled = Span(Head(TRACE.hex(), SPAN.hex(), PARENT.hex(), "n", 3, 5, 9), {"a": "b"})
    wire = WireSpan.FromString(encode_span(filled)).SerializeToString()
    read = decode_span(wire + behind + part, ENVELOPE)
    assert read == decode_span(AHEAD + wire + behind + part, ENVELOPE)
    assert read != decode_span(wire + behind, ENVELOPE)


def test_a_span_is_decoded() -> None:
    wire = WireSpan(
        trace_id=TRACE,
        span_id=SPAN,
        parent_span_id=PARENT,
        name="execute_tool refund",
        kind=WireSpan.SPAN_KIND_CLIENT,
        start_time_unix_nano=5,
        end_time_unix_nano=9,
        attributes=[KeyValue(key="gen_ai.tool.name", value=AnyValue(string_value="refund"))],
        dropped_attributes_count=2,
        events=[WireSpan.Event(name="exception", time_unix_nano=7, attributes=[KeyValue(key="a")])],
        status=WireStatus(code=WireStatus.STATUS_CODE_ERROR, message="no such order"),
    ).SerializeToString()
    assert decode_span(wire, our_envelope({"service.name": "shop"}, "lib", "2")) == Span(
        head=Head(
            trace_id="0102030405060708090a0b0c0d0e0f10",
            span_id="0102030405060708",
            parent_id="0203040506070809",
            name="execute_tool refund",
            kind=3,
            start_ns=5,
            end_ns=9,
            status=Status.ERROR,
            scope="lib",
            service="shop",
        ),
        attributes={"gen_ai.tool.name": "refund"},
        events=(SpanEvent("exception", 7, {"a": None}),),
        status_message="no such order",
        scope_version="2",
        resource={"service.name": "shop"},
        dropped_attributes=2,
    )


@pytest.mark.parametrize(
    ("code", "status"), [(0, Status.UNSET), (1, Status.OK), (2, Status.ERROR), (3, Status.UNSET), (-1, Status.UNSET)]
)
def test_status_codes(code: int, status: Status) -> None:
    wire = b"\x7a" + bytes((len(inner := WireStatus(code=code).SerializeToString()),)) + inner  # type: ignore[arg-type]  # open enum
    assert decode_span(wire, Envelope()).head.status is status


@pytest.mark.parametrize("decode", [decode_span, decode_log])
def test_giants_are_not_read(decode: Any) -> None:
    """Field 200 is known to neither message."""
    just = _unknown(MAX_ITEM_BYTES)
    assert len(just) == MAX_ITEM_BYTES
    decode(just, Envelope())
    with pytest.raises(TooLarge):
        decode(just + b"\0", Envelope())


def _unknown(size: int) -> bytes:
    return b"\xc2\x0c" + varint(size - 6) + bytes(size - 6)


def test_the_events_of_a_span_share_one_bound() -> None:
    full = WireSpan.Event(attributes=[KeyValue(key="k", value=AnyValue(int_value=1))] * MAX_VALUES)
    late = WireSpan.Event(name="late", attributes=[KeyValue(key="k")])
    wire = WireSpan(events=[full, late]).SerializeToString()
    assert decode_span(wire, Envelope()).events == (SpanEvent("", 0, {"k": 1}), SpanEvent("late", 0, {}))


def test_a_parent_of_zeros_is_none() -> None:
    assert decode_span(WireSpan(parent_span_id=bytes(8)).SerializeToString(), Envelope()).head.parent_id == ""


def test_bad_utf8_does_not_make_a_span_unreadable() -> None:
    assert decode_span(b"\x2a\x03a\xffb", Envelope()).head.name == "a�b"


@pytest.mark.parametrize("wire", [b"\xff", b"\x4a\x02\x0a\x05", b"\x5a\x02\x12\x05", b"\x5a\x04\x1a\x02\x0a\x05"])
def test_malformed_spans_are_rejected(wire: bytes) -> None:
    with pytest.raises(Rejected, match="not an OTLP span"):
        decode_span(wire, Envelope())


@pytest.mark.parametrize("wire", [b"\xff", b"\x32\x02\x0a\x05", b"\x2a\x02\x0a\x05"])
def test_malformed_log_records_are_rejected(wire: bytes) -> None:
    with pytest.raises(Rejected, match="not an OTLP log record"):
        decode_log(wire, Envelope())


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_read_or_rejected(wire: bytes) -> None:
    for decode in (decode_span, decode_log):
        with suppress(Rejected):
            decode(wire, Envelope())


def _attribute(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


@pytest.mark.parametrize(
    ("wire", "record"),
    [
        (WireLog(), LogRecord("", "")),
        (
            WireLog(
                trace_id=TRACE,
                span_id=SPAN,
                event_name="gen_ai.evaluation.result",
                time_unix_nano=5,
                observed_time_unix_nano=6,
                body=AnyValue(string_value="text"),
                attributes=[_attribute("event.name", "other")],
            ),
            LogRecord(
                "0102030405060708090a0b0c0d0e0f10",
                "0102030405060708",
                "gen_ai.evaluation.result",
                5,
                {"event.name": "other"},
                "text",
            ),
        ),
        (
            WireLog(observed_time_unix_nano=6, attributes=[_attribute("event.name", "gen_ai.choice")]),
            LogRecord("", "", "gen_ai.choice", 6, {"event.name": "gen_ai.choice"}),
        ),
        (
            WireLog(attributes=[KeyValue(key="event.name", value=AnyValue(int_value=1))]),
            LogRecord("", "", "", 0, {"event.name": 1}),
        ),
    ],
)
def test_log_records_are_decoded(wire: WireLog, record: LogRecord) -> None:
    assert decode_log(wire.SerializeToString(), Envelope()) == record


def _plain(value: dict[str, Any]) -> Any:
    """OTLP/JSON value → plain, the short way: an oracle for captures that are known to be well-formed."""
    for key, inner in value.items():
        if key == "arrayValue":
            return tuple(_plain(item) for item in inner.get("values", ()))
        if key == "kvlistValue":
            return {pair["key"]: _plain(pair.get("value", {})) for pair in inner.get("values", ())}
        return int(inner) if key == "intValue" else inner
    return None


def _attributes(item: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: _plain(pair.get("value", {})) for pair in item.get("attributes", ())}


@pytest.mark.parametrize("path", sorted(DATA.glob("*.traces.jsonl")), ids=lambda path: path.name)
def test_captured_spans_are_decoded_whole(path: Path) -> None:
    expected = [
        Span(
            Head(
                span["traceId"],
                span["spanId"],
                span.get("parentSpanId", ""),
                span["name"],
                span.get("kind", 0),
                int(span["startTimeUnixNano"]),
                int(span["endTimeUnixNano"]),
                (Status.UNSET, Status.OK, Status.ERROR)[span.get("status", {}).get("code", 0)],
                scope["scope"]["name"],
                _attributes(group["resource"]).get("service.name", ""),
            ),
            _attributes(span),
            tuple(
                SpanEvent(event["name"], int(event["timeUnixNano"]), _attributes(event))
                for event in span.get("events", ())
            ),
            span.get("status", {}).get("message", ""),
            scope["scope"].get("version", ""),
            _attributes(group["resource"]),
            span.get("droppedAttributesCount", 0),
        )
        for line in path.read_text(encoding="utf-8").splitlines()
        for group in json.loads(line)["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    ]
    assert files.read(path) == files.FileContent(spans=tuple(expected))


@pytest.mark.parametrize("path", sorted(DATA.glob("*.logs.jsonl")), ids=lambda path: path.name)
def test_captured_log_records_are_decoded_whole(path: Path) -> None:
    expected = [
        LogRecord(
            record["traceId"],
            record["spanId"],
            record.get("eventName", ""),
            int(record.get("timeUnixNano", 0)) or int(record.get("observedTimeUnixNano", 0)),
            _attributes(record),
            _plain(record.get("body", {})),
            scope["scope"]["name"],
            _attributes(group["resource"]).get("service.name", ""),
            _attributes(group["resource"]),
        )
        for line in path.read_text(encoding="utf-8").splitlines()
        for group in json.loads(line)["resourceLogs"]
        for scope in group["scopeLogs"]
        for record in scope["logRecords"]
    ]
    assert files.read(path) == files.FileContent(logs=tuple(expected))
