# ruff: noqa: E501 - a row of a table is one value as it comes over the wire; broken up it could not be compared with one
"""The traps of each convention, one span each: what its adapter says, and what it must not say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from luckrate_otel.adapters import read
from luckrate_otel.content.arguments import POSITIONAL
from luckrate_otel.facts import Call, Facts, Gap, Message, Response, Role, Text
from luckrate_otel.telemetry import Head, Span, SpanEvent, Status

OI = "openinference.span.kind"
TL = "traceloop.span.kind"
GA = "gen_ai."


def facts(
    attributes: dict[str, Any],
    *,
    scope: str = "acme",
    name: str = "span",
    status: Status = Status.UNSET,
    events: tuple[SpanEvent, ...] = (),
    kind: int = 1,
    message: str = "",
    parent: str = "p",
) -> Facts | None:
    return read(Span(Head("t" * 32, "s", parent, name, kind, 1, 2, status, scope), attributes, events, message))


def some(*args: Any, **more: Any) -> Facts:
    found = facts(*args, **more)
    assert found is not None
    return found


TOOLS: dict[str, tuple[dict[str, Any], str, Any]] = {
    "traceloop decorator": (
        {TL: "tool", "traceloop.entity.name": "x", "traceloop.entity.input": '{"args": [], "kwargs": {"a": 1}}'},
        "acme",
        {"a": 1},
    ),
    "traceloop decorator, positional": (
        {TL: "tool", "traceloop.entity.name": "x", "traceloop.entity.input": '{"args": [1], "kwargs": {}}'},
        "acme",
        {POSITIONAL: (1,)},
    ),
    "traceloop langchain": (
        {
            TL: "tool",
            GA + "tool.name": "x",
            "traceloop.entity.input": '{"input_str": "{\'a\': 1}", "metadata": {}, "inputs": {"a": 1}}',
        },
        "opentelemetry.instrumentation.langchain",
        {"a": 1},
    ),
    "traceloop mcp": (
        {
            TL: "tool",
            "traceloop.entity.name": "x",
            "traceloop.entity.input": '{"tool_name": "x", "arguments": {"a": 1}}',
        },
        "opentelemetry.instrumentation.mcp.instrumentation",
        {"a": 1},
    ),
    "openinference bare text": (
        {OI: "TOOL", "tool.name": "x", "input.value": "88213"},
        "openinference.instrumentation.langchain",
        {POSITIONAL: ("88213",)},
    ),
    "openinference json": (
        {OI: "TOOL", "tool.name": "x", "input.value": '{"a": 1}', "input.mime_type": "application/json"},
        "acme",
        {"a": 1},
    ),
    "openinference hidden": ({OI: "TOOL", "tool.name": "x", "input.value": "__REDACTED__"}, "acme", Gap.REDACTED),
    "smolagents positional": (
        {
            OI: "TOOL",
            "tool.name": "x",
            "input.value": '{"args": [7], "kwargs": {}}',
            "tool.parameters": '{"a": {"type": "integer"}}',
            "input.mime_type": "application/json",
        },
        "openinference.instrumentation.smolagents",
        {"a": 7},
    ),
    "semconv no arguments": (
        {GA + "operation.name": "execute_tool", GA + "tool.name": "x", GA + "tool.call.arguments": ""},
        "acme",
        {},
    ),
    "semconv twice encoded": (
        {
            GA + "operation.name": "execute_tool",
            GA + "tool.name": "x",
            GA + "tool.call.arguments": json.dumps('{"a": 1}'),
        },
        "acme",
        {"a": 1},
    ),
    "semconv python repr": (
        {
            GA + "operation.name": "execute_tool",
            GA + "tool.name": "x",
            GA + "tool.call.arguments": "{'a': 1, 'b': None}",
        },
        "acme",
        {"a": 1, "b": None},
    ),
    "semconv a list": (
        {GA + "operation.name": "execute_tool", GA + "tool.name": "x", GA + "tool.call.arguments": "[1]"},
        "acme",
        Gap.NOT_CAPTURED,
    ),
    "semconv absent": ({GA + "operation.name": "execute_tool", GA + "tool.name": "x"}, "acme", Gap.NOT_CAPTURED),
    "langfuse": (
        {"langfuse.observation.type": "tool", "langfuse.observation.input": '{"args": [], "kwargs": {"a": 1}}'},
        "langfuse-sdk",
        {"a": 1},
    ),
    "mlflow": ({"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"a": 1}'}, "mlflow.tracing.provider", {"a": 1}),
    "vercel": (
        {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "x", "ai.toolCall.args": '{"a": 1}'},
        "ai",
        {"a": 1},
    ),
    "pydantic old": (
        {GA + "operation.name": "execute_tool", GA + "tool.name": "x", "tool_arguments": '{"a": 1}'},
        "pydantic-ai",
        {"a": 1},
    ),
    "n8n": (
        {"n8n.node.type": "n8n-nodes-base.httpRequestTool", "n8n.node.name": "x"},
        "n8n-workflow",
        Gap.NOT_CAPTURED,
    ),
}


@pytest.mark.parametrize("name", TOOLS)
def test_arguments(name: str) -> None:
    attributes, scope, expected = TOOLS[name]
    found = some(attributes, scope=scope, name="x")
    assert (found.role, found.tool) == (Role.TOOL, "x")
    told = found.args_gap if found.args is None else dict(found.args)
    assert told == expected


MESSAGE = '{"lc": 1, "type": "constructor", "id": ["langchain", "ToolMessage"], "kwargs": {"content": "hi", "tool_call_id": "c1", "status": "error"}}'

RESULTS: dict[str, tuple[Any, str | None, bool | None, str | None]] = {
    "plain text": ("hi", "hi", True, None),
    "its own json": ('{"a": 1}', '{"a": 1}', True, None),
    "structured": ({"a": 1}, '{"a": 1}', True, None),
    "quoted": ('"hi"', "hi", True, None),
    "text blocks": ('[{"text": "hi"}]', "hi", True, None),
    "one block": ('{"type": "text", "text": "hi"}', "hi", True, None),
    "mcp result": ('{"content": [{"type": "text", "text": "hi"}], "isError": true}', "hi", False, None),
    "langchain message": (MESSAGE, "hi", False, "c1"),
    "langchain callback": ('{"output": ' + MESSAGE + ', "kwargs": {}}', "hi", False, "c1"),
    "langchain repr": ("content='h\\'i' name='x' tool_call_id='c1' status='success'", "h'i", True, "c1"),
    "handoff": (
        '{"graph": "__parent__", "update": {"messages": [{"type": "human", "content": "secret"}, ' + MESSAGE + "]}}",
        "hi",
        False,
        "c1",
    ),
    "a list of its own": ('[{"text": "a", "score": 1}]', '[{"text": "a", "score": 1}]', True, None),
    "told failure": ("Error executing tool x: no", "Error executing tool x: no", False, None),
    "redacted": ("[REDACTED]", None, True, None),
    "cut wrapping": ('{"output": {"lc": 1, "kw', None, True, None),
    "text that begins with a bracket": ("[draft] hi", "[draft] hi", True, None),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    value, text, ok, call_id = RESULTS[name]
    found = some({GA + "operation.name": "execute_tool", GA + "tool.name": "x", GA + "tool.call.result": value})
    assert (found.result, found.ok, found.call_id) == (text, ok, call_id)
    assert (found.error is None) is (ok is not False)


ERRORS: dict[str, tuple[dict[str, Any], tuple[bool | None, str | None]]] = {
    "unset is success": ({}, (True, None)),
    "ok": ({"status": Status.OK}, (True, None)),
    "message": ({"status": Status.ERROR, "message": "no such order"}, (False, "no such order")),
    "nothing but the status": ({"status": Status.ERROR}, (False, "error")),
    "event": (
        {
            "status": Status.ERROR,
            "message": "E('no')Traceback (most recent call last): x",
            "events": (SpanEvent("exception", 1, {"exception.type": "E", "exception.message": "no"}),),
        },
        (False, "no"),
    ),
    "traceback glued to the message": (
        {"status": Status.ERROR, "message": "E('no')Traceback (most recent call last):\n  x"},
        (False, "E('no')"),
    ),
    "cancelled, closed as ok": (
        {"status": Status.OK, "events": (SpanEvent("exception", 1, {"exception.message": "CancelledError()"}),)},
        (None, "no_return"),
    ),
    "interrupted": (
        {"status": Status.ERROR, "events": (SpanEvent("exception", 1, {"exception.type": "KeyboardInterrupt"}),)},
        (None, "no_return"),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    how, expected = ERRORS[name]
    found = some({GA + "operation.name": "execute_tool", GA + "tool.name": "x"}, **how)
    assert (found.ok, found.error) == expected


NO_CALLS = {
    "adk's merged span": (
        {GA + "operation.name": "execute_tool", GA + "tool.name": "(merged tools)"},
        "gcp.vertex.agent",
    ),
    "smolagents' answer": (
        {OI: "TOOL", "tool.name": "final_answer", "input.value": "{}"},
        "openinference.instrumentation.smolagents",
    ),
    "pydantic's output": ({GA + "operation.name": "execute_tool", GA + "tool.name": "final_result"}, "pydantic-ai"),
    "listing tools": ({"mcp.method.name": "tools/list"}, "mcp-python-sdk"),
    "an agent being made": ({GA + "operation.name": "create_agent", GA + "agent.name": "x"}, "acme"),
    "embeddings": ({GA + "operation.name": "embeddings"}, "acme"),
    "a database": ({"db.system": "x"}, "acme"),
    "an openinference retriever": ({OI: "RETRIEVER"}, "acme"),
}


@pytest.mark.parametrize("name", NO_CALLS)
def test_what_is_no_call(name: str) -> None:
    attributes, scope = NO_CALLS[name]
    found = facts(attributes, scope=scope)
    assert found is None or found.role is Role.WRAPPER


def test_handoff_spans_name_their_target() -> None:
    assert (
        some({OI: "TOOL"}, name="handoff to billing", scope="openinference.instrumentation.openai_agents").handoff
        == "billing"
    )
    v2 = {GA + "operation.name": "agent_handoff", GA + "handoff.to_agent": "billing"}
    assert some(v2, scope="opentelemetry.instrumentation.openai_agents").handoff == "billing"


def test_a_constant_is_no_agents_name() -> None:
    attributes = {GA + "operation.name": "execute_tool", GA + "tool.name": "x", GA + "agent.name": "OpenAI Agent"}
    assert some(attributes, scope="opentelemetry.instrumentation.openai_agents").agent is None
    assert some(attributes).agent == "OpenAI Agent"


def test_flattened_messages_of_openllmetry() -> None:
    found = some(
        {
            GA + "system": "openai",
            GA + "request.model": "m",
            GA + "prompt.0.role": "user",
            GA + "prompt.0.content": "Find A.",
            GA + "prompt.1.role": "assistant",
            GA + "prompt.1.tool_calls.0.id": "c1",
            GA + "prompt.1.tool_calls.0.name": "x",
            GA + "prompt.1.tool_calls.0.arguments": '{"a": 1}',
            GA + "prompt.2.role": "tool",
            GA + "prompt.2.content": "found",
            GA + "prompt.2.tool_call_id": "c1",
            GA + "completion.0.role": "assistant",
            GA + "completion.0.content": "Done.",
        }
    )
    assert found.inputs == (
        Message("user", (Text("Find A."),)),
        Message("assistant", (Call("x", {"a": 1}, "c1"),)),
        Message("tool", (Response("c1", "found"),)),
    )
    assert found.outputs == (Message("assistant", (Text("Done."),)),)


MESSAGES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "semconv": (
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "x", "arguments": {"a": 1}}]}],
        (Call("x", {"a": 1}, "c"),),
    ),
    "openai chat": (
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "x", "arguments": '{"a": 1}'}}],
            }
        ],
        (Call("x", {"a": 1}, "c"),),
    ),
    "openai responses": (
        [{"type": "function_call", "call_id": "c", "name": "x", "arguments": '{"a": 1}'}],
        (Call("x", {"a": 1}, "c"),),
    ),
    "responses output": ([{"type": "function_call_output", "call_id": "c", "output": "r"}], (Response("c", "r"),)),
    "anthropic": (
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "x", "input": {"a": 1}}]}],
        (Call("x", {"a": 1}, "c"),),
    ),
    "anthropic result": (
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r", "is_error": True}]}],
        (Response("c", "r", False),),
    ),
    "bedrock": (
        [{"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "x", "input": {"a": 1}}}]}],
        (Call("x", {"a": 1}, "c"),),
    ),
    "bedrock result": (
        [
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "c", "status": "success", "content": [{"text": "r"}]}}],
            }
        ],
        (Response("c", "r", True),),
    ),
    "gemini": (
        [{"role": "model", "parts": [{"function_call": {"name": "x", "args": {"a": 1}}}]}],
        (Call("x", {"a": 1}),),
    ),
    "gemini result": (
        [{"role": "user", "parts": [{"function_response": {"name": "x", "response": {"b": 2}}}]}],
        (Response(None, '{"b": 2}', None, "x"),),
    ),
    "langchain": (
        [
            {
                "lc": 1,
                "id": ["AIMessage"],
                "kwargs": {"content": "", "tool_calls": [{"name": "x", "args": {"a": 1}, "id": "c"}]},
            }
        ],
        (Call("x", {"a": 1}, "c"),),
    ),
    "langchain tuple": ([["user", "hi"]], (Text("hi"),)),
    "vercel": (
        [
            {
                "role": "assistant",
                "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "x", "input": {"a": 1}}],
            }
        ],
        (Call("x", {"a": 1}, "c"),),
    ),
    "repr": (
        ["ChatMessage(role=<MessageRole.USER: 'user'>, blocks=[TextBlock(block_type='text', text='hi')])"],
        (Text("hi"),),
    ),
    "server tool": (
        [
            {
                "role": "assistant",
                "parts": [
                    {"type": "server_tool_call", "name": "x", "id": "c", "server_tool_call": {"type": "x", "a": 1}}
                ],
            }
        ],
        (Call("x", {"type": "x", "a": 1}, "c"),),
    ),
    "older result key": (
        [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "result": "r"}]}],
        (Response("c", "r"),),
    ),
    "media and thoughts": (
        [
            {
                "role": "user",
                "parts": [
                    {"type": "blob", "content": "eA=="},
                    {"type": "reasoning", "content": "hm"},
                    {"type": "text", "content": "hi"},
                ],
            }
        ],
        (Text("hi"),),
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("as_text", [True, False], ids=["json", "structured"])
def test_messages(name: str, as_text: bool) -> None:
    value, parts = MESSAGES[name]
    found = some({GA + "operation.name": "chat", GA + "input.messages": json.dumps(value) if as_text else value})
    assert tuple(p for m in found.inputs for p in m.parts) == parts
