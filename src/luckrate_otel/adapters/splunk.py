"""Splunk's GenAI utilities (scope `opentelemetry.util.genai.handler`, splunk-otel-util-genai 0.1.x).

GenAI conventions with three differences: `gen_ai.agent.name` is the outermost agent everywhere, every input message has
the role user, and the output shows that a tool was called but not which.
"""

from __future__ import annotations

from dataclasses import replace

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import name_of
from luckrate_otel.facts import NO_RETURN, Facts, Message, Role, Text
from luckrate_otel.telemetry import LogRecord, Span

NAME = "splunk"
FINISH = "gen_ai.finish_reason"


def read(span: Span) -> Facts | None:
    """Facts of a span of Splunk's handler."""
    role = genai.role_of(span)
    agent = name_of(span.attributes.get("lc_agent_name"))
    if role is Role.TOOL:
        found = genai.read_tool(span, adapter=NAME)
        if found is None:
            return None
        found = replace(found, agent=agent)
        cancelled = span.attributes.get(FINISH) == "cancelled"
        return replace(found, ok=None, error=NO_RETURN, result=None) if cancelled else found
    if role is None:
        return None
    found = genai.read_conversation(span, role, adapter=NAME)
    found = replace(found, outputs=_without_stumps(found.outputs))
    if role is Role.AGENT:
        return found
    return replace(_told(found) if role is Role.MODEL else found, agent=agent)


def read_log(log: LogRecord) -> Facts | None:
    found = genai.read_log(log, adapter=NAME)
    if found is None:
        return None
    return _told(replace(found, agent=None, outputs=_without_stumps(found.outputs)))


def _without_stumps(outputs: tuple[Message, ...]) -> tuple[Message, ...]:
    """Of a tool call only the word `ToolCall` is left: no text of the model's."""
    return tuple(replace(m, parts=tuple(p for p in m.parts if p != Text("ToolCall"))) for m in outputs)


def _told(found: Facts) -> Facts:
    """The first of several messages is the system text; whose the last one is depends on its place in the run."""
    if not found.inputs:
        return found
    first, last = found.inputs[0], found.inputs[-1]
    system = tuple(p.content for p in first.parts if isinstance(p, Text)) if len(found.inputs) > 1 else ()
    return replace(found, inputs=(Message("unknown", last.parts),), system=found.system or system)
