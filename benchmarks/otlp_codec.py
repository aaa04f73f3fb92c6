"""CPU microseconds per span of the OTLP codec, one core: `python benchmarks/otlp_codec.py [capture.traces.jsonl …]`.

Requests of 512 spans of about 300 bytes and 2 KiB; with captures, also the decode of their spans. Each figure is the
least of five runs, as other work on the machine only ever adds.
"""

# a script, whose output is what it prints
from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from timeit import repeat

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from luckrate_otel.otlp.decode import decode_span
from luckrate_otel.otlp.encode import append, encode_span, our_envelope, request, strip_luckrate, traces_request
from luckrate_otel.otlp.json import to_json, to_protobuf
from luckrate_otel.otlp.shallow import Group, heads, link_of, shallow
from luckrate_otel.otlp.split import count, split
from luckrate_otel.telemetry import Head, Span, SpanEvent

SPANS = 512
_RESOURCE = {"service.name": "shop", "telemetry.sdk.name": "opentelemetry", "host.name": "node-1"}
_VIOLATION = {
    "luckrate.rule": "before",
    "luckrate.clause": "before[0]",
    "luckrate.severity": "hard",
    "luckrate.message": "refund was called before lookup_order",
    "luckrate.step.index": 3,
}


def _span(number: int, padding: int) -> bytes:
    """Ten attributes: seven that recur, three of this span alone, one of those padded to the wanted size."""
    head = Head(
        f"{number // 8 + 1:032x}", f"{number + 1:016x}", f"{number // 8 + 1:016x}", "execute_tool refund", 1, 1, 2
    )
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "refund",
        "gen_ai.tool.type": "function",
        "thread.id": 7,
        "ok": True,
        "ratio": 0.5,
        "tags": ("a",),
        "gen_ai.tool.call.id": f"call_{number:08}",
        "order": number,
        "text": f"{number}".ljust(padding, "x"),
    }
    return encode_span(Span(head, attributes))


def _measure(name: str, run: Callable[[], object], spans: int) -> None:
    times = max(1, 4096 // spans)
    best = min(repeat(run, timer=process_time, number=times, repeat=5)) / times
    print(f"{name:<44}{best / spans * 1e6:8.3f} µs/span")


def _requests(padding: int) -> None:
    envelope = our_envelope(_RESOURCE, "langgraph", "1.0")
    spans = [_span(number, padding) for number in range(SPANS)]
    body = traces_request((envelope, span) for span in spans)
    text = json.dumps(to_json("traces", body)).encode()
    annotated = append(spans[0], [SpanEvent("luckrate.violation", 1, _VIOLATION)], {"luckrate.rules": ("before",)})
    print(f"\n{SPANS} spans of {len(spans[0])} bytes, {len(body)} bytes a request")
    _measure("shallow decode", lambda: shallow(body), SPANS)
    _measure("full parse (official schema), for comparison", lambda: ExportTraceServiceRequest.FromString(body), SPANS)
    _measure("heads", lambda: heads(spans), SPANS)
    _measure("link_of", lambda: [link_of(span) for span in spans], SPANS)
    _measure("count", lambda: count("traces", body), SPANS)
    _measure("decode_span, ten attributes", lambda: [decode_span(span, envelope) for span in spans], SPANS)
    _measure("request from groups", lambda: request(shallow(body)), SPANS)
    _measure("traces_request from pairs", lambda: traces_request((envelope, span) for span in spans), SPANS)
    _measure("split in about four", lambda: split(body, len(body) // 4), SPANS)
    _measure(
        "append one violation", lambda: append(spans[0], [SpanEvent("v", 1, _VIOLATION)], {"luckrate.rules": ("a",)}), 1
    )
    _measure("strip_luckrate, nothing to take off", lambda: strip_luckrate(spans[0]), 1)
    _measure("strip_luckrate, one violation", lambda: strip_luckrate(annotated), 1)
    _measure("JSON request to protobuf", lambda: to_protobuf("traces", text), SPANS)


def _captures(paths: list[str]) -> None:
    groups: list[Group] = []
    for path in paths:
        for line in Path(path).read_bytes().splitlines():
            groups += shallow(to_protobuf("traces", line))
    spans = [(span, group.envelope) for group in groups for span in group.items]
    size = sum(len(span) for span, _ in spans) // len(spans)
    print(f"\n{len(spans)} captured spans, {size} bytes on average")
    _measure("decode_span", lambda: [decode_span(span, envelope) for span, envelope in spans], len(spans))


def main() -> None:
    """Print the figures."""
    for padding in (1, 1_750):
        _requests(padding)
    if sys.argv[1:]:
        _captures(sys.argv[1:])


if __name__ == "__main__":
    main()
