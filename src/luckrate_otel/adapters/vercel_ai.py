"""Vercel AI SDK: `LegacyOpenTelemetry` and ai ≤ 6 (scope `ai`, `ai.operationId`), and n8n's Agents feature (scope
`@n8n/agents`), which is built on it.

The newer `OpenTelemetry` integration (scope `gen_ai`) follows the GenAI conventions and is read by genai.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import facts, name_of, tokens
from luckrate_otel.content.arguments import arguments
from luckrate_otel.content.definitions import definitions
from luckrate_otel.content.messages import message, messages, text_in, texts, without_system
from luckrate_otel.content.results import Returned, returned
from luckrate_otel.content.structured import dumps, mapping, sequence, structured, text_of
from luckrate_otel.facts import Facts, Message, Role
from luckrate_otel.telemetry import Span, Status, Value

NAME = "vercel_ai"

OPERATION = "ai.operationId"
FUNCTION = "ai.telemetry.functionId"
_CALLS = (".doGenerate", ".doStream")
_TOKENS = (
    ("ai.usage.promptTokens", "ai.usage.completionTokens"),
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
)


def read(span: Span) -> Facts | None:
    """Facts of a Vercel AI SDK span; None for embeddings and what has no operation."""
    attributes = span.attributes
    operation = text_of(attributes.get(OPERATION)) or ""
    if operation == "ai.toolCall" or "ai.toolCall.name" in attributes:
        return _tool(span)
    if operation.endswith(_CALLS):
        return _model(span)
    if operation.startswith(("ai.generate", "ai.stream")):
        return _loop(span)
    found = genai.role_of(span)
    if found is Role.AGENT:
        # Without its messages: what it has under gen_ai.prompt is a catalogue.
        return genai.read_conversation(span, found, adapter=NAME, inputs=(), outputs=())
    return facts(Role.WRAPPER, NAME, span) if found is not None else None


def _tool(span: Span) -> Facts | None:
    attributes = span.attributes
    args = attributes.get(
        "ai.toolCall.args", attributes.get("ai.toolCall.input", attributes.get("gen_ai.tool.call.arguments"))
    )
    value = attributes.get(
        "ai.toolCall.result", attributes.get("ai.toolCall.output", attributes.get("gen_ai.tool.call.result"))
    )
    return genai.read_tool(
        span,
        adapter=NAME,
        agent=name_of(attributes.get(genai.AGENT_NAME)) or name_of(attributes.get(FUNCTION)),
        tool=text_of(attributes.get("ai.toolCall.name")),
        call_id=text_of(attributes.get("ai.toolCall.id")),
        args=arguments(args),
        back=_result(value),
    )


def _result(value: Value) -> Returned:
    """n8n tools answer `{"status", "data": [{"json": …, "pairedItem": …}]}`: the json is what the tool gave."""
    found = mapping(value)
    rows = found.get("data")
    if (
        "status" in found
        and isinstance(rows, list)
        and rows
        and all(isinstance(r, Mapping) and "json" in r for r in rows)
    ):
        bodies = [r["json"] for r in rows]
        return Returned(dumps(bodies[0] if len(bodies) == 1 else bodies), found["status"] != "error")
    return returned(value)


def _model(span: Span) -> Facts:
    attributes = span.attributes
    inputs, system = without_system(messages(attributes.get("ai.prompt.messages")))
    return facts(
        Role.MODEL,
        NAME,
        span,
        agent=name_of(attributes.get(FUNCTION)),
        inputs=inputs,
        outputs=_answer(attributes),
        system=system,
        definitions=definitions(attributes.get("ai.prompt.tools")),
        finish_reasons=genai.finish_reasons(attributes.get("ai.response.finishReason")),
        tokens=tokens(attributes, *_TOKENS),
    )


def _answer(attributes: Mapping[str, Value]) -> tuple[Message, ...]:
    text = attributes.get("ai.response.text")
    calls = sequence(attributes.get("ai.response.toolCalls"))
    found = message({"role": "assistant", "content": text, "tool_calls": calls}, "assistant")
    return (found,) if found and found.parts else ()


def _loop(span: Span) -> Facts:
    """`ai.generateText` and the like: the whole loop over model and tools. Its toolCalls repeat those of the
    model calls.
    """
    attributes = span.attributes
    prompt, _ = structured(attributes.get("ai.prompt"))
    told = prompt if isinstance(prompt, Mapping) else {}
    asked = texts(messages(told.get("messages", attributes.get("ai.prompt.messages"))), "user")
    question = (
        text_of(told.get("prompt")) or (asked[-1] if asked else None) or (prompt if isinstance(prompt, str) else None)
    )
    answer = text_of(attributes.get("ai.response.text")) or text_of(attributes.get("ai.response.object"))
    stopped = attributes.get("ai.response.finishReason") != "tool-calls" and span.head.status is not Status.ERROR
    inside = span.head.scope == "@n8n/agents"  # one loop per turn, inside an agent span
    return facts(
        Role.WRAPPER if inside else Role.AGENT,
        NAME,
        span,
        agent=name_of(attributes.get(FUNCTION)),
        task_input=question,
        final_output=answer if stopped else None,
        system=_system(told.get("system")),
    )


def _system(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    found = message(value, "system") if isinstance(value, Mapping) else None
    return (text_in(found),) if found and text_in(found) else ()
