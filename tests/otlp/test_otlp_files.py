from __future__ import annotations

import gzip
import io
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.errors import InputError
from luckrate_otel.otlp import compression
from luckrate_otel.otlp.files import FileContent, FileProblem, read, read_bytes
from luckrate_otel.otlp.json import to_protobuf
from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TRACE, OTHER_TRACE = "01" * 16, "02" * 16
FORMS = "; give OTLP JSON, JSONL or protobuf, Jaeger JSON, or a stored run of a form in docs/adapters.md"


def _wire_span(span_id: str) -> dict[str, Any]:
    return {"traceId": TRACE, "spanId": span_id, "startTimeUnixNano": "5"}


def _traces(*span_ids: str) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [_wire_span(span_id) for span_id in span_ids]}]}]}


def _logs(event: str) -> dict[str, Any]:
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"timeUnixNano": "6", "eventName": event}]}]}]}


METRICS: dict[str, Any] = {
    "resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", "gauge": {"dataPoints": [{"asInt": "1"}]}}]}]}]
}
A, B = "0a" * 8, "0b" * 8


def _span(span_id: str) -> Span:
    return Span(Head(TRACE, span_id, start_ns=5))


def _lines(*documents: Any) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def _framed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def _proto(signal: str, document: dict[str, Any]) -> bytes:
    return to_protobuf(signal, document)


BOTH = FileContent(spans=(_span(A), _span(B)), logs=(LogRecord("", "", "e", 6),))
JSONL = _lines(_traces(A), _logs("e"), METRICS, _traces(B))

GOOD: dict[str, tuple[bytes, FileContent]] = {
    "object": (_lines(_traces(A)), FileContent(spans=(_span(A),))),
    "pretty": (json.dumps(_traces(A, B), indent=2).encode(), FileContent(spans=(_span(A), _span(B)))),
    "jsonl, signals mixed": (JSONL, BOTH),
    "array of requests": (json.dumps([_traces(A), _logs("e"), _traces(B)]).encode(), BOTH),
    "two signals in one object": (_lines({**_traces(A, B), **_logs("e")}), BOTH),
    "byte order mark": (b"\xef\xbb\xbf" + JSONL, BOTH),
    "newlines of Windows, empty lines": (b"\r\n" + JSONL.replace(b"\n", b"\r\n\r\n"), BOTH),
    "gzip": (gzip.compress(JSONL), BOTH),
    "gzip of two members, padded": (gzip.compress(JSONL[:50]) + gzip.compress(JSONL[50:]) + b"\0\0", BOTH),
    "zstd": (zstd.compress(JSONL), BOTH),
    "zstd of two frames": (zstd.compress(JSONL[:50]) + zstd.compress(JSONL[50:]), BOTH),
    "no spans": (_lines({"resourceSpans": []}), FileContent()),
    "metrics only": (_lines(METRICS), FileContent()),
    "protobuf traces": (_proto("traces", _traces(A)), FileContent(spans=(_span(A),))),
    "protobuf logs": (_proto("logs", _logs("e")), FileContent(logs=(LogRecord("", "", "e", 6),))),
    "protobuf metrics": (_proto("metrics", METRICS), FileContent()),
    "protobuf under zstd": (zstd.compress(_proto("traces", _traces(A))), FileContent(spans=(_span(A),))),
    "length-prefixed protobuf": (
        _framed(_proto("traces", _traces(A)), _proto("logs", _logs("e")), _proto("traces", _traces(B))),
        BOTH,
    ),
    "length-prefixed, each compressed": (
        _framed(zstd.compress(_proto("traces", _traces(A, B))), zstd.compress(_lines(_logs("e")))),
        BOTH,
    ),
    "another payload": (b'{"a": [NaN]}', FileContent(other={"a": [pytest.approx(float("nan"), nan_ok=True)]})),
    "another payload, pretty": (b'[\n {"role": "user"}\n]', FileContent(other=[{"role": "user"}])),
    "other payloads, one a line": (b'{"a": 1}\n[2]\n', FileContent(other=({"a": 1}, [2]))),
}


@pytest.mark.parametrize("form", GOOD)
def test_each_form_is_told_by_its_content(form: str) -> None:
    data, content = GOOD[form]
    assert read_bytes(data, "f") == content


def test_traces_of_three_times_a_text_are_not_taken_for_other_signals() -> None:
    """A metric with a name of 16 bytes and a description of 8 starts exactly as a span does."""
    metric = {"name": "m" * 16, "description": "d" * 8, "gauge": {"dataPoints": [{"asInt": "1"}]}}
    data = _proto("metrics", {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]})
    assert read_bytes(data, "f") == FileContent()


def _problem(line: int | None, cause: str) -> FileProblem:
    return FileProblem("f", line, cause)


GIANT = {**_wire_span("0c" * 8), "name": "x" * 16 * 1024 * 1024}
DAMAGED: dict[str, tuple[bytes, tuple[Span, ...], tuple[FileProblem, ...]]] = {
    "last line cut": (
        _lines(_traces(A)) + _lines(_traces(B))[:40],
        (_span(A),),
        (_problem(2, "not JSON: Unterminated string starting at column 37"),),
    ),
    "first line cut": (
        _lines(_traces(B))[40:] + _lines(_traces(A)),
        (_span(A),),
        (_problem(1, "not JSON: Expecting value at column 1"),),
    ),
    "first of three is bad": (
        b"{nope}\n" + _lines(_traces(A)) + b"7\n",
        (_span(A),),
        (
            _problem(1, "not JSON: Expecting property name enclosed in double quotes at column 2"),
            _problem(3, "JSON, but neither an object nor an array"),
        ),
    ),
    "another payload among OTLP": (
        _lines(_traces(A), {"a": 1}),
        (_span(A),),
        (_problem(2, "JSON, but not OTLP"),),
    ),
    "keys in snake case": (
        _lines(_traces(A), {"resource_spans": []}),
        (_span(A),),
        (_problem(2, "resource_spans: OTLP/JSON keys are lowerCamelCase (resourceSpans)"),),
    ),
    "bad id": (
        _lines(_traces(A, "0b0b")),
        (_span(A),),
        (_problem(1, "a span with an id that is not 16 or 8 bytes, or zero"),),
    ),
    "a span without times, in protobuf": (
        _proto("traces", {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "abc"}, _wire_span(A)]}]}]}),
        (_span(A),),
        (_problem(None, "neither a span nor a log record nor a metric"),),
    ),
    "a giant span": (
        _lines(_traces(A), {"resourceSpans": [{"scopeSpans": [{"spans": [GIANT]}]}]}),
        (_span(A),),
        (_problem(2, "a span of more than 16777216 bytes is not read"),),
    ),
    "a giant span in protobuf, another after it": (
        _proto("traces", {"resourceSpans": [{"scopeSpans": [{"spans": [GIANT, _wire_span(A)]}]}]}),
        (_span(A),),
        (_problem(None, "a span of more than 16777216 bytes is not read"),),
    ),
    "a field of a wrong type": (
        _lines(_traces(A), {"resourceSpans": [{"schemaUrl": 5}]}),
        (_span(A),),
        (_problem(2, "resourceSpans[0].schemaUrl: expected text, found a number"),),
    ),
    "gzip cut": (
        gzip.compress(_lines(_traces(A), _traces(B)))[:-9],
        (_span(A), _span(B)),
        (_problem(None, "the gzip data breaks off"),),
    ),
    "zstd cut": (
        zstd.compress(_lines(_traces(A))) + zstd.compress(_lines(_traces(B)))[:-3],
        (_span(A),),
        (_problem(None, "the zstd data breaks off"),),
    ),
    "second gzip member is none": (
        gzip.compress(_lines(_traces(A))) + b"junk",
        (_span(A),),
        (_problem(None, "bad gzip data: Error -3 while decompressing data: incorrect header check"),),
    ),
    "last record cut": (
        _framed(_proto("traces", _traces(A)), b"abc")[:-1],
        (_span(A),),
        (_problem(None, "record 2 breaks off"),),
    ),
    "a record that is none": (
        _framed(_proto("traces", _traces(A)), b"\xff"),
        (_span(A),),
        (_problem(None, "record 2: not an OTLP request: malformed protobuf"),),
    ),
    "an item that is none": (
        _framed(_proto("traces", _traces(A)), _proto("traces", {"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]})),
        (_span(A),),
        (_problem(None, "record 2: neither a span nor a log record nor a metric"),),
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_good_in_a_damaged_file_is_kept(damage: str) -> None:
    data, spans, problems = DAMAGED[damage]
    content = read_bytes(data, "f")
    assert content.spans == spans
    assert [str(problem)[:70] for problem in content.problems] == [str(problem)[:70] for problem in problems]
    assert [problem.line for problem in content.problems] == [problem.line for problem in problems]


UNUSABLE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "f: the file is empty"),
    "blank": (b" \n\t\n", "f: the file is empty"),
    "text": (b"hello world", "f: neither JSON nor OTLP protobuf"),
    "a cut object": (b'{"resourceSpans": [', "f:1: not JSON: Expecting value at column 20"),
    "a cut object, pretty": (
        json.dumps(_traces(A), indent=1)[:-3].encode(),
        "f: not JSON: Expecting ',' delimiter at",
    ),
    "two bad lines": (b"{a}\n{b}\n", "f:1: not JSON: Expecting property name enclosed in double quotes"),
    "a cut gzip": (gzip.compress(b"")[:8], "f: the gzip data breaks off"),
    "noise": (b"\x00\x00\x00\x02\xff\xff", "f: record 1: not an OTLP request"),
    "protobuf without groups": (b"\x0a\x00", "f: of no known form"),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(100), "f: neither JSON nor OTLP protobuf"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_a_file_without_anything_usable_is_one_clear_line(kind: str) -> None:
    data, message = UNUSABLE[kind]
    with pytest.raises(InputError) as raised:
        read_bytes(data, "f")
    assert str(raised.value)[: len(message)] == message
    assert str(raised.value).endswith(FORMS)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("compress", [gzip.compress, zstd.compress, bytes])
def test_decompression_stops_at_its_bound(compress: Any) -> None:
    data = compress(b" " * 3_000_000)
    with pytest.raises(InputError, match="f: larger than 2999999 bytes"):
        read_bytes(data, "f", max_bytes=2_999_999)
    assert compression.inflate(data, 3_000_000) == (b" " * 3_000_000, "")


def test_paths_streams_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "spans.bin"
    path.write_bytes(JSONL)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(JSONL)))
    assert read(path) == read(str(path)) == read(io.BytesIO(JSONL)) == read("-") == BOTH


def test_unreadable_paths_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing\.jsonl: cannot be read: no such file or directory"):
        read(tmp_path / "missing.jsonl")
    with pytest.raises(InputError, match="cannot be read: is a directory"):
        read(tmp_path)


def test_problems_carry_their_place() -> None:
    assert str(FileProblem("a.jsonl", 3, "bad")) == "a.jsonl:3: bad"
    assert str(FileProblem("a.bin", None, "bad")) == "a.bin: bad"


def _tag(key: str, value: Any, kind: str = "string") -> dict[str, Any]:
    return {"key": key, "type": kind, "value": value}


JAEGER: dict[str, Any] = {
    "data": [
        {
            "traceID": "1" + "0" * 30,
            "processes": {"p1": {"serviceName": "shop", "tags": [_tag("host", "h")]}},
            "spans": [
                {
                    "traceID": "1" + "0" * 30,
                    "spanID": "a1",
                    "operationName": "execute_tool",
                    "references": [
                        {"refType": "FOLLOWS_FROM", "traceID": "1" + "0" * 30, "spanID": "c1"},
                        {"refType": "CHILD_OF", "traceID": "1" + "0" * 30, "spanID": "B1"},
                    ],
                    "startTime": 1000,
                    "duration": 20,
                    "processID": "p1",
                    "tags": [
                        _tag("span.kind", "client"),
                        _tag("otel.status_code", "ERROR"),
                        _tag("otel.status_description", "no"),
                        _tag("error", value=True, kind="bool"),
                        _tag("otel.scope.name", "lib"),
                        _tag("otel.library.version", "2"),
                        _tag("i", 5, "int64"),
                        _tag("j", "5", "int64"),
                        _tag("f", 5, "float64"),
                        _tag("b", "true", "bool"),
                        _tag("y", "/+8=", "binary"),
                        _tag("z", "*", "binary"),
                        _tag("l", [1]),
                    ],
                    "logs": [
                        {"timestamp": 1010, "fields": [_tag("event", "exception"), _tag("a", "1")]},
                        {"timestamp": 7},
                    ],
                },
                {
                    "traceID": "1" + "0" * 30,
                    "spanID": "b1",
                    "startTime": 5,
                    "parentSpanID": "0",
                    "tags": [_tag("error", value=True)],
                },
                {
                    "traceID": "1" + "0" * 30,
                    "spanID": "c1",
                    "startTime": 5,
                    "parentSpanID": "b1",
                    "tags": [_tag("otel.status_code", "OK")],
                },
                {"traceID": "x", "spanID": "c1", "startTime": 5},
                {"traceID": "1", "spanID": "c1"},
                7,
            ],
        },
        {"traceID": "1", "spans": None},
    ]
}
JAEGER_TRACE = "01" + "0" * 30


def test_jaeger_json_is_read() -> None:
    content = read_bytes(json.dumps(JAEGER).encode(), "f")
    assert content.spans == (
        Span(
            Head(
                JAEGER_TRACE,
                "00000000000000a1",
                "00000000000000b1",
                "execute_tool",
                3,
                1_000_000,
                1_020_000,
                Status.ERROR,
                "lib",
                "shop",
            ),
            {"i": 5, "j": 5, "f": 5.0, "b": True, "y": b"\xff\xef", "z": "*", "l": "[1]"},
            (SpanEvent("exception", 1_010_000, {"a": "1"}), SpanEvent("", 7_000)),
            "no",
            "2",
            {"service.name": "shop", "host": "h"},
        ),
        Span(
            Head(JAEGER_TRACE, "00000000000000b1", start_ns=5_000, end_ns=5_000, status=Status.ERROR),
            resource={"service.name": ""},
        ),
        Span(
            Head(JAEGER_TRACE, "00000000000000c1", "00000000000000b1", start_ns=5_000, end_ns=5_000, status=Status.OK),
            resource={"service.name": ""},
        ),
    )
    assert [str(problem)[:40] for problem in content.problems] == [
        "f:1: data[0].spans[3]: not a Jaeger span",
        "f:1: data[0].spans[4]: not a Jaeger span",
        "f:1: data[0].spans[5]: not a Jaeger span",
    ]


_JAEGER_KEYS = (
    *("traceID", "spanID", "startTime", "duration", "tags", "logs"),
    *("references", "refType", "key", "type", "value", "process"),
)
_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(("1", "CHILD_OF", "x"))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(_JAEGER_KEYS),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=15,
)


@given(_JSON, _JSON)
def test_arbitrary_jaeger_spans_are_read_or_named(span: Any, processes: Any) -> None:
    document = {"data": [{"traceID": "1", "spans": [span, JAEGER["data"][0]["spans"][1]], "processes": processes}]}
    content = read_bytes(json.dumps(document).encode(), "f")
    assert len(content.spans) + len(content.problems) == 2


@given(st.one_of(st.binary(max_size=60), st.binary(max_size=40).map(lambda data: _framed(data, data))))
def test_arbitrary_bytes_give_content_or_an_input_error(data: bytes) -> None:
    with suppress(InputError):
        read_bytes(data, "f")


@given(st.integers(0, len(JSONL)), st.sampled_from([gzip.compress, zstd.compress, bytes]))
def test_a_file_cut_anywhere_keeps_its_whole_lines(at: int, compress: Any) -> None:
    whole = JSONL[:at].count(b"\n")
    try:
        content = read_bytes(compress(JSONL[:at]), "f")
    except InputError:
        assert whole == 0
        return
    assert len(content.spans) + len(content.logs) >= min(whole, 2)
