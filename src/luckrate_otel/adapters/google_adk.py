"""Google ADK (scope `gcp.vertex.agent`): format 2 (GenAI conventions) and the legacy format of ADK 1.x."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import facts
from luckrate_otel.adapters.genai_events import INPUT, OUTPUT
from luckrate_otel.content.arguments import arguments
from luckrate_otel.content.definitions import definitions
from luckrate_otel.content.messages import message, messages, text_in
from luckrate_otel.content.results import Returned, returned
from luckrate_otel.content.structured import dumps, mapping, structured
from luckrate_otel.facts import Facts, Message, Role
from luckrate_otel.telemetry import Span, Value

NAME = "google_adk"

LEGACY_ARGUMENTS, LEGACY_RESPONSE = "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"
REQUEST, RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"
# After parallel calls ADK emits one more tool span that stands for all of them.
MERGED = "(merged tools)"


def read(span: Span) -> Facts | None:
    """Facts of an ADK span."""
    if span.head.name == "call_llm":
        return _legacy_model(span)
    if span.head.name == "invocation" and not span.attributes:
        return facts(Role.WRAPPER, NAME, span)
    role = genai.role_of(span)
    if role is Role.TOOL:
        return _tool(span)
    if role is Role.MODEL and not (INPUT in span.attributes or OUTPUT in span.attributes):
        # Legacy: the inner span of the same model call, without content of its own.
        return genai.read_conversation(span, Role.MODEL, adapter=NAME, inputs=(), outputs=())
    return genai.read_conversation(span, role, adapter=NAME) if role else None


def _tool(span: Span) -> Facts | None:
    attributes = span.attributes
    if attributes.get(genai.TOOL_NAME) == MERGED:
        return facts(Role.WRAPPER, NAME, span)
    legacy = arguments(attributes[LEGACY_ARGUMENTS]) if LEGACY_ARGUMENTS in attributes else None
    value = attributes.get(LEGACY_RESPONSE, attributes.get("gen_ai.tool.call.result"))
    back = _unwrapped(value) if value is not None else None
    return genai.read_tool(span, adapter=NAME, args=legacy, back=back)


def _unwrapped(value: Value) -> Returned:
    """ADK puts `{"result": …}` around what is no dict."""
    found, _ = structured(value)
    if isinstance(found, Mapping) and set(found) == {"result"}:
        inner = found["result"]
        return Returned(dumps(inner)) if not isinstance(inner, (str, Mapping, list)) else returned(inner)
    return returned(value)


def _legacy_model(span: Span) -> Facts:
    request, response = mapping(span.attributes.get(REQUEST)), mapping(span.attributes.get(RESPONSE))
    config = mapping(request.get("config"))
    content = response.get("content")
    answer = message(content, "assistant") if isinstance(content, Mapping) else None
    return facts(
        Role.MODEL,
        NAME,
        span,
        inputs=messages(request.get("contents")),
        outputs=(answer,) if answer and answer.parts else (),
        system=_system(config.get("system_instruction")),
        definitions=definitions(config.get("tools")),
        finish_reasons=genai.finish_reasons(span.attributes.get(genai.FINISH)),
    )


def _system(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    found: Message | None = message(value, "system") if isinstance(value, Mapping) else None
    return (text_in(found),) if found and text_in(found) else ()
