from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import json as otlp_json
from luckrate_otel.otlp.encode import encode_span, traces_request
from luckrate_otel.otlp.json import MAX_CONTAINERS, load, to_json, to_protobuf
from tests.otlp.otlp_strategies import ENVELOPE, SPANS

DATA = Path(__file__).parent.parent / "data" / "otlp"


def _spans(*spans: Any) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def _request(**fields: Any) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[Span(**fields)])])])


def _value(**fields: Any) -> ExportTraceServiceRequest:
    return _request(attributes=[KeyValue(key="k", value=AnyValue(**fields))])


def _attribute(value: Any) -> dict[str, Any]:
    return {"attributes": [{"key": "k", "value": value}]}


TAKEN = [
    ({"traceId": "0A0b" * 8, "spanId": "ff" * 8}, _request(trace_id=b"\n\x0b" * 8, span_id=b"\xff" * 8)),
    ({"traceId": "", "parentSpanId": ""}, _request()),
    ({"traceId": "ab"}, _request(trace_id=b"\xab")),  # of a wrong length: refused alone, later
    ({"startTimeUnixNano": "18446744073709551615"}, _request(start_time_unix_nano=2**64 - 1)),
    ({"startTimeUnixNano": 18446744073709551615}, _request(start_time_unix_nano=2**64 - 1)),
    ({"startTimeUnixNano": 1e3}, _request(start_time_unix_nano=1000)),
    ({"flags": 257, "droppedAttributesCount": "3"}, _request(flags=257, dropped_attributes_count=3)),
    ({"kind": 3, "status": {"code": 2}}, _request(kind=3, status={"code": 2})),
    ({"kind": 77}, _request(kind=77)),
    ({"name": None, "attributes": None, "status": None}, _request()),
    ({"name": "a\ud800"}, _request(name="a�")),
    ({"status": {}}, _request(status={})),
    ({"start_time_unix_nano": 1, "newField": {"a": [1]}, "Name": "x"}, _request()),
    (_attribute({}), _value()),
    (_attribute(None), _request(attributes=[KeyValue(key="k")])),
    (_attribute({"stringValue": ""}), _value(string_value="")),
    (_attribute({"boolValue": False}), _value(bool_value=False)),
    (_attribute({"intValue": "-9223372036854775808"}), _value(int_value=-(2**63))),
    (_attribute({"intValue": 5}), _value(int_value=5)),
    (_attribute({"doubleValue": 5}), _value(double_value=5)),
    (_attribute({"doubleValue": "1.5"}), _value(double_value=1.5)),
    (_attribute({"doubleValue": "-Infinity"}), _value(double_value=float("-inf"))),
    (_attribute({"bytesValue": "_-8="}), _value(bytes_value=b"\xff\xef")),
    (_attribute({"bytesValue": "/+8"}), _value(bytes_value=b"\xff\xef")),
    (_attribute({"arrayValue": {}}), _value(array_value=ArrayValue())),
    (
        _attribute({"kvlistValue": {"values": [{"key": "a", "value": {"arrayValue": {"values": [{}]}}}]}}),
        _value(
            kvlist_value=KeyValueList(
                values=[KeyValue(key="a", value=AnyValue(array_value=ArrayValue(values=[AnyValue()])))]
            )
        ),
    ),
]


@pytest.mark.parametrize(("span", "request_"), TAKEN, ids=lambda value: str(value)[:60])
def test_json_is_taken_as_otlp_says(span: dict[str, Any], request_: ExportTraceServiceRequest) -> None:
    assert ExportTraceServiceRequest.FromString(to_protobuf("traces", json.dumps(_spans(span)).encode())) == request_


AT = "resourceSpans[0].scopeSpans[0].spans[0]."
VALUE = AT + "attributes[0].value."
REFUSED = [
    ({"traceId": "W47/95gDgQPSabYzgT/GDA=="}, AT + "traceId: expected a hex id (OTLP/JSON ids are hex, not base64)"),
    ({"spanId": "abc"}, AT + "spanId: expected a hex id (OTLP/JSON ids are hex, not base64)"),
    ({"spanId": "é0"}, AT + "spanId: expected a hex id (OTLP/JSON ids are hex, not base64)"),
    ({"spanId": 5}, AT + "spanId: expected a hex id, found a number"),
    ({"kind": "SPAN_KIND_CLIENT"}, AT + "kind: expected an integer, found text: OTLP/JSON has no enum names"),
    ({"kind": 2**31}, AT + "kind: integer out of range -2147483648 to 2147483647"),
    ({"status": {"code": True}}, AT + "status.code: expected an integer, found a boolean"),
    ({"status": []}, AT + "status: expected an object, found an array"),
    ({"name": 5}, AT + "name: expected text, found a number"),
    ({"startTimeUnixNano": "1_0"}, AT + "startTimeUnixNano: expected an integer, found text"),
    ({"startTimeUnixNano": "٣"}, AT + "startTimeUnixNano: expected an integer, found text"),
    ({"startTimeUnixNano": 1.5}, AT + "startTimeUnixNano: expected an integer, found a number"),
    ({"startTimeUnixNano": -1}, AT + "startTimeUnixNano: integer out of range 0 to 18446744073709551615"),
    ({"attributes": {}}, AT + "attributes: expected an array, found an object"),
    ({"attributes": [None]}, AT + "attributes[0]: expected an object, found null"),
    (_attribute("text"), AT + "attributes[0].value: expected an object, found text"),
    (_attribute({"boolValue": "true"}), VALUE + "boolValue: expected true or false, found text"),
    (
        _attribute({"intValue": 2**63}),
        VALUE + "intValue: integer out of range -9223372036854775808 to 9223372036854775807",
    ),
    (_attribute({"doubleValue": "x"}), VALUE + "doubleValue: expected a number, found text"),
    (_attribute({"doubleValue": True}), VALUE + "doubleValue: expected a number, found a boolean"),
    (_attribute({"doubleValue": 10**400}), VALUE + "doubleValue: number out of range"),
    (_attribute({"bytesValue": "*"}), VALUE + "bytesValue: expected base64 text"),
    (_attribute({"bytesValue": 1}), VALUE + "bytesValue: expected base64 text, found a number"),
]


@pytest.mark.parametrize(("span", "message"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_otlp_forbids_is_rejected_with_its_place(span: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected) as raised:
        to_protobuf("traces", json.dumps(_spans(span)).encode())
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not JSON: Expecting value at column 1"),
        (b'{"a":\n nope}', "not JSON: Expecting value at line 2 column 2"),
        (b'{"a": NaN}', "not JSON that can be read: NaN is no JSON number; OTLP writes it as text"),
        (b'{"a": [{"b": 1, "c": 2, "b": 3}]}', "not JSON that can be read: key 'b' occurs twice in one object"),
        (b'{"a": "\xff"}', "not JSON: byte 7 is not UTF-8"),
        (b"[" * 1_000_000, "not JSON that can be read: nested too deep"),
        (b"[]", "request: expected an object, found an array"),
        (b"null", "request: expected an object, found null"),
        (b'{"resourceSpans": {}}', "resourceSpans: expected an array, found an object"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_request_is_rejected(text: bytes, message: str) -> None:
    with pytest.raises(Rejected) as raised:
        to_protobuf("traces", text)
    assert str(raised.value) == message


def test_a_huge_integer_is_rejected() -> None:
    with pytest.raises(Rejected, match="not JSON that can be read: a number of too many digits"):
        load(b"9" * 10_000)


def test_more_objects_than_a_request_can_need_are_rejected() -> None:
    flood = b"[" + b"{}," * MAX_CONTAINERS + b"1]"
    with pytest.raises(TooLarge):
        load(flood)


def test_literals_of_python_are_taken_from_files() -> None:
    assert str(load(b'{"a": [NaN, Infinity]}', local=True)) == "{'a': [nan, inf]}"


def _nested(depth: int) -> bytes:
    text = (
        '{"resourceSpans": [{"resource": {"attributes": [{"key": "k", "value": '
        + '{"arrayValue": {"values": [' * depth
        + '{"intValue": 1}'
        + "]}}" * depth
        + "}]}}]}"
    )
    return text.encode()


def test_nesting_is_taken_as_deep_as_protobuf_takes_it() -> None:
    body = to_protobuf("traces", _nested(45))
    assert to_json("traces", body)["resourceSpans"][0]["resource"]["attributes"][0]["key"] == "k"
    with pytest.raises(Rejected, match="nested too deep"):
        to_protobuf("traces", _nested(46))


def test_an_empty_request_is_taken() -> None:
    assert to_protobuf("traces", b"{}") == b""
    assert to_protobuf("logs", b'{"resourceLogs": []}') == b""


def test_json_is_written_as_otlp_says() -> None:
    body = _request(
        trace_id=b"\xab" * 16,
        start_time_unix_nano=5,
        kind=3,
        flags=1,
        attributes=[
            KeyValue(key="a", value=AnyValue(int_value=0)),
            KeyValue(key="b", value=AnyValue(bytes_value=b"\xff\xef")),
            KeyValue(key="c", value=AnyValue(double_value=float("nan"))),
            KeyValue(key="d", value=AnyValue(double_value=float("inf"))),
            KeyValue(key="e", value=AnyValue(double_value=float("-inf"))),
            KeyValue(key="f", value=AnyValue(double_value=0.5)),
            KeyValue(key="g", value=AnyValue(bool_value=False)),
            KeyValue(key="h", value=AnyValue()),
        ],
    ).SerializeToString()
    assert to_json("traces", body) == _spans(
        {
            "traceId": "ab" * 16,
            "startTimeUnixNano": "5",
            "kind": 3,
            "flags": 1,
            "attributes": [
                {"key": "a", "value": {"intValue": "0"}},
                {"key": "b", "value": {"bytesValue": "/+8="}},
                {"key": "c", "value": {"doubleValue": "NaN"}},
                {"key": "d", "value": {"doubleValue": "Infinity"}},
                {"key": "e", "value": {"doubleValue": "-Infinity"}},
                {"key": "f", "value": {"doubleValue": 0.5}},
                {"key": "g", "value": {"boolValue": False}},
                {"key": "h", "value": {}},
            ],
        }
    )


def test_protobuf_that_is_no_request_is_rejected() -> None:
    with pytest.raises(Rejected, match="not an OTLP logs request"):
        to_json("logs", b"\xff")


@given(st.lists(SPANS, max_size=3))
def test_protobuf_to_json_and_back_is_the_same(spans: list[Any]) -> None:
    body = traces_request((ENVELOPE, encode_span(span)) for span in spans)
    again = to_protobuf("traces", json.dumps(to_json("traces", body)).encode())
    assert ExportTraceServiceRequest.FromString(again) == ExportTraceServiceRequest.FromString(body)


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl")), ids=lambda path: path.name)
def test_captures_come_through_protobuf_unchanged(path: Path) -> None:
    signal = "logs" if path.name.endswith(".logs.jsonl") else "traces"
    for line in path.read_bytes().splitlines():
        assert to_json(signal, to_protobuf(signal, line)) == json.loads(line)


METRICS = {
    "resourceMetrics": [
        {
            "scopeMetrics": [
                {
                    "metrics": [
                        {
                            "name": "duration",
                            "histogram": {
                                "dataPoints": [
                                    {
                                        "startTimeUnixNano": "1",
                                        "count": "3",
                                        "sum": 1.5,
                                        "bucketCounts": ["1", "2"],
                                        "explicitBounds": [0.5],
                                        "exemplars": [{"asInt": "4", "spanId": "ab" * 8}],
                                    }
                                ],
                                "aggregationTemporality": 2,
                            },
                        }
                    ]
                }
            ]
        }
    ]
}


def test_metrics_come_through_unchanged() -> None:
    assert to_json("metrics", to_protobuf("metrics", METRICS)) == METRICS


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                sorted(
                    {
                        key
                        for message in (Span, Span.Event, ResourceSpans, ScopeSpans, KeyValue, AnyValue, ArrayValue)
                        for key in otlp_json._table(message.DESCRIPTOR)
                    }
                    | {"resourceSpans"}
                )
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@given(JSON_VALUES, st.sampled_from(["traces", "metrics", "logs"]))
def test_arbitrary_json_is_taken_or_rejected(value: Any, signal: str) -> None:
    for document in (value, {"resourceSpans": [{"scopeSpans": [{"spans": [value]}]}]}):
        with suppress(Rejected):
            to_json(signal, to_protobuf(signal, json.dumps(document).encode()))
