"""Requests to send at a processor: plain spans, and the spans of agent runs, of chosen size and number per request."""

from __future__ import annotations

import json
from collections.abc import Iterator

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

# A run as the GenAI conventions show it: agent > (model call, tool call) × 7 and a last model call: 16 spans.
TOOL_CALLS = 7
RUN_SPANS = 2 * TOOL_CALLS + 2

_TOOLS = ("lookup_order", "check_policy", "fetch_page", "escalate_to_human")
_SECOND = 10**9

# Ten rules: what a real spec of an order desk would ask of every run.
SPEC = {
    "name": "bench",
    "tools": ["lookup_order", "check_policy", "fetch_page", "escalate_to_human", "issue_refund", "send_email"],
    "required": ["lookup_order"],
    "forbidden": ["issue_refund"],
    "before": [["lookup_order", "check_policy"], ["check_policy", "escalate_to_human"]],
    "max_steps": 20,
    "no_repeat": True,
    "ground": True,
    "untrusted": ["fetch_page"],
    "privileged": ["issue_refund", "send_email"],
    "secrets": True,
}


class Ids:
    """Ids that never come twice in one process."""

    def __init__(self, seed: int) -> None:
        self._next = seed << 40

    def trace(self) -> bytes:
        self._next += 1
        return self._next.to_bytes(16, "big")

    def span(self) -> bytes:
        self._next += 1
        return self._next.to_bytes(8, "big")


def requests(kind: str, spans: int, size: int, seed: int, count: int) -> list[bytes]:
    """`count` different encoded requests of `spans` spans each, every span of about `size` bytes."""
    ids = Ids(seed)
    stream = _plain(ids, size) if kind == "plain" else _genai(ids, size)
    return [_request([next(stream) for _ in range(spans)], kind) for _ in range(count)]


def _request(spans: list[Span], kind: str) -> bytes:
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "bench"
    scope: ScopeSpans = resource.scope_spans.add()
    scope.scope.name = "bench.http" if kind == "plain" else "bench.agent"
    scope.spans.extend(spans)
    return made.SerializeToString()


def _text(span: Span, key: str, value: str) -> None:
    span.attributes.add(key=key).value.string_value = value


def _pad(span: Span, key: str, size: int, template: str = "{}") -> None:
    """Fill one attribute so that the span takes about `size` bytes."""
    room = size - span.ByteSize() - len(key) - len(template) - 14
    words = "the order was packed and will be sent on the next working day "
    _text(span, key, template.format((words * (max(room, 0) // len(words) + 1))[: max(room, 1)]))


def _plain(ids: Ids, size: int) -> Iterator[Span]:
    """HTTP server spans, sixteen to a trace."""
    while True:
        trace_id, parent = ids.trace(), b""
        for _ in range(RUN_SPANS):
            span = Span(trace_id=trace_id, span_id=ids.span(), parent_span_id=parent, name="GET /item", kind=2)
            span.start_time_unix_nano, span.end_time_unix_nano = _SECOND, 2 * _SECOND
            _text(span, "http.request.method", "GET")
            _text(span, "url.path", "/item/8821")
            _pad(span, "user_agent.original", size)
            parent = parent or span.span_id
            yield span


def _genai(ids: Ids, size: int) -> Iterator[Span]:
    """Agent runs, children before parents as SDKs export them."""
    while True:
        yield from _run(ids, size)


def _run(ids: Ids, size: int) -> Iterator[Span]:
    trace_id, agent = ids.trace(), ids.span()
    clock = iter(range(_SECOND, 10**18, _SECOND))

    def child(name: str, operation: str, kind: int) -> Span:
        span = Span(trace_id=trace_id, span_id=ids.span(), parent_span_id=agent, name=name, kind=kind)
        span.start_time_unix_nano = next(clock)
        span.end_time_unix_nano = span.start_time_unix_nano + _SECOND // 2
        _text(span, "gen_ai.operation.name", operation)
        return span

    for number in range(TOOL_CALLS + 1):
        model = child("chat m", "chat", 3)
        if number < TOOL_CALLS:
            tool = _TOOLS[number % len(_TOOLS)]
            arguments = json.dumps({"order_id": f"{88213 + number}"})
            call = f"call_{number}"
            parts = f'{{"type":"tool_call","id":"{call}","name":"{tool}","arguments":{arguments}}}'
            _text(model, "gen_ai.output.messages", f'[{{"role":"assistant","parts":[{parts}]}}]')
        _pad(model, "gen_ai.input.messages", size, '[{{"role":"user","parts":[{{"type":"text","content":"{}"}}]}}]')
        yield model
        if number < TOOL_CALLS:
            span = child(f"execute_tool {tool}", "execute_tool", 1)
            _text(span, "gen_ai.tool.name", tool)
            _text(span, "gen_ai.tool.call.id", call)
            _text(span, "gen_ai.tool.call.arguments", arguments)
            _pad(span, "gen_ai.tool.call.result", size)
            yield span
    root = Span(trace_id=trace_id, span_id=agent, name="invoke_agent desk", kind=1)
    root.start_time_unix_nano, root.end_time_unix_nano = 1, next(clock)
    _text(root, "gen_ai.operation.name", "invoke_agent")
    _text(root, "gen_ai.agent.name", "desk")
    orders = " ".join(str(88213 + number) for number in range(TOOL_CALLS))
    task = f'[{{{{"role":"user","parts":[{{{{"type":"text","content":"orders {orders} {{}}"}}}}]}}}}]'
    _pad(root, "gen_ai.input.messages", size, task)
    yield root
