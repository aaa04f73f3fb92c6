"""One run, told in the forms of every version of the GenAI conventions, by a library that nobody has met.

The run: the user asks, the model calls `lookup` and `price` in one turn, then `pay`, which fails, then answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status

TRACE = "0af7651916cd43dd8448eb211c80319c"
SCOPE = "acme.agents"
TASK, FINAL, SYSTEM = "Refund order A-17.", "It could not be paid.", "You are the desk."
CALLS: tuple[tuple[str, dict[str, Any], str, str, int], ...] = (
    ("lookup", {"order": "A-17"}, "call_1", "found", 0),
    ("price", {"order": "A-17", "round": True}, "call_2", "40", 0),
    ("pay", {"amount": 40}, "call_3", "card declined", 1),
)
MS = 1_000_000


def head(span_id: int, parent: int, name: str, start: int, end: int, *, kind: int = 1, ok: bool = True) -> Head:
    return Head(
        TRACE,
        f"{span_id:016x}",
        f"{parent:016x}" if parent else "",
        name,
        kind,
        start * MS,
        end * MS,
        Status.UNSET if ok else Status.ERROR,
        SCOPE,
        "desk",
    )


def agent(attributes: Mapping[str, Any], *, name: str = "invoke_agent desk") -> Span:
    return Span(head(1, 0, name, 0, 100), attributes)


def tools(
    *, arguments: bool, results: bool, structured: bool = False, ids: bool = True, operation: bool = True
) -> list[Span]:
    found = []
    for n, (tool, args, call_id, result, turn) in enumerate(CALLS):
        attributes: dict[str, Any] = {"gen_ai.tool.name": tool}
        if operation:
            attributes["gen_ai.operation.name"] = "execute_tool"
        if ids:
            attributes["gen_ai.tool.call.id"] = call_id
        if arguments:
            attributes["gen_ai.tool.call.arguments"] = args if structured else json.dumps(args)
        failed = tool == "pay"
        if results and not failed:
            attributes["gen_ai.tool.call.result"] = result
        if failed:
            attributes["error.type"] = "Declined"
        # The second call starts first: only the model's words tell the order.
        start = (30 - n if turn == 0 else 60) + turn
        span_head = head(20 + n, 1, f"execute_tool {tool}", start, start + 5, ok=not failed)
        found.append(Span(span_head, attributes, status_message="card declined" if failed else ""))
    return found


def turn_calls(turn: int) -> list[dict[str, Any]]:
    return [{"type": "tool_call", "id": c[2], "name": c[0], "arguments": c[1]} for c in CALLS if c[4] == turn]


def turn_answers(turn: int) -> list[dict[str, Any]]:
    return [{"type": "tool_call_response", "id": c[2], "response": c[3]} for c in CALLS if c[4] == turn]


def conversations() -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Per model call its input messages and its output message, in the form of 1.37."""
    history: list[dict[str, Any]] = [{"role": "user", "parts": [{"type": "text", "content": TASK}]}]
    found = []
    for turn in (0, 1):
        answer = {"role": "assistant", "parts": turn_calls(turn), "finish_reason": "tool_call"}
        found.append((list(history), answer))
        history += [answer, {"role": "tool", "parts": turn_answers(turn)}]
    text = {"type": "text", "content": FINAL}
    found.append((history, {"role": "assistant", "parts": [text], "finish_reason": "stop"}))
    return found


TIMES = ((5, 20), (40, 55), (70, 90))


def models(form: Any, *, attributes: Mapping[str, Any] | None = None) -> list[Span]:
    """Three model spans; form(inputs, output) → (attributes, events)."""
    found = []
    for n, (inputs, output) in enumerate(conversations()):
        more, events = form(inputs, output)
        own = {"gen_ai.request.model": "m-1"} | dict(attributes or {"gen_ai.operation.name": "chat"}) | more
        found.append(Span(head(10 + n, 1, "chat m-1", *TIMES[n], kind=3), own, events))
    return found


def as_json(inputs: Any, output: Any) -> tuple[dict[str, Any], tuple[SpanEvent, ...]]:
    return {
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps([output]),
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": SYSTEM}]),
    }, ()


def as_values(inputs: Any, output: Any) -> tuple[dict[str, Any], tuple[SpanEvent, ...]]:
    return {
        "gen_ai.input.messages": tuple(inputs),
        "gen_ai.output.messages": (output,),
        "gen_ai.system_instructions": ({"type": "text", "content": SYSTEM},),
    }, ()


def without(inputs: Any, output: Any) -> tuple[dict[str, Any], tuple[SpanEvent, ...]]:
    return {}, ()


def old_bodies(inputs: Any, output: Any) -> list[tuple[str, dict[str, Any]]]:
    """The events of 1.28 to 1.36: one per message, OpenAI's form."""
    found: list[tuple[str, dict[str, Any]]] = [("gen_ai.system.message", {"content": SYSTEM})]
    for message in inputs:
        if message["role"] == "user":
            found.append(("gen_ai.user.message", {"content": message["parts"][0]["content"]}))
        elif message["role"] == "assistant":
            found.append(("gen_ai.assistant.message", {"tool_calls": _openai_calls(message)}))
        else:
            found += [("gen_ai.tool.message", {"content": p["response"], "id": p["id"]}) for p in message["parts"]]
    calls = _openai_calls(output)
    told = {"tool_calls": calls} if calls else {"content": output["parts"][0]["content"]}
    found.append(("gen_ai.choice", {"index": 0, "finish_reason": "x", "message": {"role": "assistant", **told}}))
    return found


def _openai_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"id": p["id"], "type": "function", "function": {"name": p["name"], "arguments": json.dumps(p["arguments"])}}
        for p in message["parts"]
        if p["type"] == "tool_call"
    ]


def as_old_events(inputs: Any, output: Any) -> tuple[dict[str, Any], tuple[SpanEvent, ...]]:
    return {}, tuple(
        SpanEvent(name, 0, {k: v if isinstance(v, (str, int)) else json.dumps(v) for k, v in body.items()})
        for name, body in old_bodies(inputs, output)
    )


def as_details_event(inputs: Any, output: Any) -> tuple[dict[str, Any], tuple[SpanEvent, ...]]:
    attributes, _ = as_json(inputs, output)
    return {}, (SpanEvent("gen_ai.client.inference.operation.details", 0, attributes),)


def old_logs() -> list[LogRecord]:
    return [
        LogRecord(TRACE, f"{10 + n:016x}", name, (TIMES[n][0] + i) * MS, body=body, scope=SCOPE)
        for n, (inputs, output) in enumerate(conversations())
        for i, (name, body) in enumerate(old_bodies(inputs, output))
    ]


def details_logs() -> list[LogRecord]:
    return [
        LogRecord(
            TRACE,
            f"{10 + n:016x}",
            "gen_ai.client.inference.operation.details",
            TIMES[n][1] * MS,
            as_values(inputs, output)[0],
            scope=SCOPE,
        )
        for n, (inputs, output) in enumerate(conversations())
    ]
