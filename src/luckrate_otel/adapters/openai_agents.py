"""OpenAI Agents SDK through opentelemetry-instrumentation-openai-agents-v2 (scope
`opentelemetry.instrumentation.openai_agents`).

Superseded by the genai instrumentation, still in use. Its agent name on tool and model spans is a constant; the
workflow looks like an agent; in responses mode calls and their results are Python reprs inside text parts.
"""

from __future__ import annotations

from dataclasses import replace

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import facts, name_of
from luckrate_otel.content import python_repr
from luckrate_otel.content.message_parts import call
from luckrate_otel.content.messages import message as message_of
from luckrate_otel.content.results import returned
from luckrate_otel.content.structured import text_of
from luckrate_otel.facts import Facts, Message, Part, Response, Role, Text
from luckrate_otel.telemetry import Span

NAME = "openai_agents"
KIND = "traceloop.span.kind"  # OpenLLMetry's instrumentation has the same scope; its workflow span says nothing else
HANDOFF_TO = "gen_ai.handoff.to_agent"
CONSTANT_NAME = "OpenAI Agent"
_CALL = "ResponseFunctionToolCall"


def read(span: Span) -> Facts | None:
    """Facts of a span of the v2 instrumentation."""
    role = genai.role_of(span)
    if role is None and span.attributes.get(KIND) in ("workflow", "handoff"):
        role = Role.WRAPPER
    if HANDOFF_TO in span.attributes:
        return facts(Role.WRAPPER, NAME, span, handoff=text_of(span.attributes[HANDOFF_TO]))
    if role is Role.TOOL:
        found = genai.read_tool(span, adapter=NAME)
        return replace(found, agent=None) if found else None
    if role is None:
        return None
    agent = name_of(span.attributes.get(genai.AGENT_NAME))
    if agent == CONSTANT_NAME:
        agent = None
    if role is Role.AGENT and agent is None:
        role = Role.WRAPPER
    if role is Role.WRAPPER:
        return facts(role, NAME, span)
    found = genai.read_conversation(span, role, adapter=NAME, agent=agent if role is Role.AGENT else None)
    return replace(found, inputs=_opened(found.inputs), outputs=_opened(found.outputs))


def _opened(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(_message(m) for m in messages)


def _message(message: Message) -> Message:
    """Reprs of response items become the calls and responses that they are."""
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Text) and _CALL + "(" in part.content:
            items = python_repr.find_constructors(part.content, _CALL)
            parts += [c for i in items if (c := call(i.get("name"), i.get("arguments"), i.get("call_id")))]
        elif isinstance(part, Text) and part.content.startswith("{") and "'function_call" in part.content:
            parts += _item(part)
        else:
            parts.append(part)
    if parts and all(isinstance(p, Response) for p in parts):
        return Message("tool", tuple(parts))
    return replace(message, parts=tuple(parts))


def _item(part: Text) -> list[Part]:
    try:
        found = python_repr.read(part.content)
    except ValueError:
        return [part]
    if not isinstance(found, dict):
        return [part]
    if found.get("type") == "function_call_output":
        return [Response(text_of(found.get("call_id")), returned(found.get("output")).text)]
    if "tool_calls" in found or "content" in found:  # chat mode: the whole message
        whole = message_of(found, "assistant")
        return list(whole.parts) if whole else []
    one = call(found.get("name"), found.get("arguments"), found.get("call_id"))
    return [one] if found.get("type") == "function_call" and one else [part]
