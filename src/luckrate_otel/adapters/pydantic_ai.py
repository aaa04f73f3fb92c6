"""Pydantic AI (scope `pydantic-ai`), formats 1 to 6: GenAI conventions, with its own names for some content."""

from __future__ import annotations

from dataclasses import replace

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import facts
from luckrate_otel.adapters.genai_events import event_inputs, event_outputs
from luckrate_otel.content.arguments import arguments
from luckrate_otel.content.messages import messages
from luckrate_otel.content.results import returned
from luckrate_otel.content.structured import as_text, mapping, sequence, text_of
from luckrate_otel.facts import Call, Facts, Message, Role
from luckrate_otel.telemetry import Span, Value

NAME = "pydantic_ai"

ARGUMENTS, RESULT = "tool_arguments", "tool_response"  # formats 1 and 2
ALL_MESSAGES, NEW_INDEX = "pydantic_ai.all_messages", "pydantic_ai.new_message_index"
FINAL_RESULT = "final_result"
# Structured output is asked for as a call of a tool of this name: the answer, not a step.
OUTPUT_TOOL = "final_result"


def read(span: Span) -> Facts | None:
    """Facts of a Pydantic AI span."""
    role = genai.role_of(span)
    attributes = span.attributes
    if role is Role.TOOL:
        if (genai.tool_name(span) or "").startswith(OUTPUT_TOOL):
            return facts(Role.WRAPPER, NAME, span)
        old_args = arguments(attributes[ARGUMENTS]) if ARGUMENTS in attributes else None
        old_result = returned(attributes[RESULT]) if RESULT in attributes else None
        return genai.read_tool(span, adapter=NAME, args=old_args, back=old_result)
    if role is Role.AGENT:
        return _agent(span)
    if role is None:
        return None
    found = genai.read_conversation(span, role, adapter=NAME)
    if not found.inputs and "events" in attributes:  # format 1
        found = _from_events(found, attributes["events"])
    return replace(found, outputs=tuple(_without_answer(m) for m in found.outputs))


def _agent(span: Span) -> Facts:
    attributes = span.attributes
    everything = messages(attributes.get(ALL_MESSAGES, attributes.get("all_messages_events")))
    first_new = attributes.get(NEW_INDEX, 0)
    new = everything[first_new:] if isinstance(first_new, int) and 0 <= first_new <= len(everything) else everything
    asked = next((i for i, m in enumerate(new) if m.role == "assistant"), len(new))
    answer = attributes.get(FINAL_RESULT)
    return genai.read_conversation(
        span,
        Role.AGENT,
        adapter=NAME,
        inputs=new[:asked],
        outputs=tuple(_without_answer(m) for m in new[asked:]),
        final_output=as_text(answer),
    )


def _without_answer(message: Message) -> Message:
    kept = tuple(p for p in message.parts if not (isinstance(p, Call) and p.tool.startswith(OUTPUT_TOOL)))
    return replace(message, parts=kept)


def _from_events(found: Facts, value: Value) -> Facts:
    """Format 1 keeps the log events of 1.28 as a JSON list on the span."""
    bodies = [mapping(event) for event in sequence(value)]
    named = [(text_of(body.get("event.name")) or "", body) for body in bodies]
    inputs = tuple(m for name, body in named for m in event_inputs(name, {}, body))
    outputs = tuple(m for name, body in named for m in event_outputs(name, {}, body))
    return replace(found, inputs=inputs, outputs=outputs)
