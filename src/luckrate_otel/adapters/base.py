"""What every adapter says about a span in the same way: conversation, case, name of the agent, root attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters.failure import Failure
from luckrate_otel.content.arguments import Arguments
from luckrate_otel.content.results import Returned
from luckrate_otel.content.structured import text_of
from luckrate_otel.facts import Facts, Role
from luckrate_otel.record import replace
from luckrate_otel.telemetry import Head, Span, Value

# In order of trust. The first is the convention's; the others are what frameworks use for the same thing.
CONVERSATION_KEYS = (
    "gen_ai.conversation.id",
    "session.id",
    "gen_ai.session.id",
    "gcp.vertex.agent.session_id",
    "thread_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "langsmith.metadata.session_id",
    "langsmith.metadata.thread_id",
    "langfuse.session.id",
    "ai.telemetry.metadata.thread_id",
    "ai.telemetry.metadata.sessionId",
)
_CONVERSATION_KEYS = frozenset(CONVERSATION_KEYS)
CASE_KEY = "luckrate.case"
# What frameworks write for an agent without a name: LangGraph's default, and class names of LangChain and smolagents.
NO_NAMES = frozenset(
    {
        "LangGraph",
        "CompiledStateGraph",
        "RunnableSequence",
        "AgentExecutor",
        "ToolCallingAgent",
        "CodeAgent",
        "MultiStepAgent",
    }
)
_MAX_ATTRIBUTE_CHARS = 256  # what specs match on is short; content is not


def conversation(attributes: Mapping[str, Value]) -> str | None:
    if _CONVERSATION_KEYS.isdisjoint(attributes):  # one look instead of twelve, for every span
        return None
    for key in CONVERSATION_KEYS:
        found = attributes.get(key)
        if found is not None and isinstance(found, str) and found:
            return found
    return None


def name_of(value: Value) -> str | None:
    """An agent's name, None for a placeholder."""
    if not isinstance(value, str) or not value or value in NO_NAMES:
        return None
    return value


def facts(role: Role, adapter: str, span: Span, **fields: Any) -> Facts:
    """Facts of a span with everything that does not depend on the convention."""
    return completed(begun(role, adapter, span), fields)


# Filled in field by field, while nobody else has it: half the price of passing a dozen keywords through two functions.
Begun = Any
_BLANK = Facts(role=Role.WRAPPER, adapter="", head=Head("", ""))


def begun(role: Role, adapter: str, span: Span) -> Begun:
    """New facts with everything that does not depend on the convention, to be filled in by who asks for them."""
    made: Begun = replace(_BLANK)
    made.role, made.adapter, made.head = role, adapter, span.head
    attributes = span.attributes
    case = attributes.get(CASE_KEY) or span.resource.get(CASE_KEY)
    if case is not None:
        made.case = text_of(case)
    made.conversation_id = conversation(attributes)
    if role is Role.AGENT or (role is Role.WRAPPER and not span.head.parent_id):  # what may become a run's root
        made.attributes = matchable(span)
    return made


def completed(made: Begun, fields: Mapping[str, Any]) -> Facts:
    """With these fields as well. AttributeError: facts have none of that name."""
    for name, value in fields.items():
        setattr(made, name, value)
    found: Facts = made
    return found


def call_facts(
    adapter: str, span: Span, tool: str, args: Arguments, back: Returned, outcome: Failure, **fields: Any
) -> Facts:
    """Facts of the span of a tool call. Of a call that never returned, what stands as its result is none."""
    made = begun(Role.TOOL, adapter, span)
    made.tool = tool
    made.args, made.args_gap = args
    made.ok, made.error = outcome
    made.result, made.result_gap = back.text if made.ok is not None else None, back.gap
    return completed(made, fields)


def matchable(span: Span) -> Mapping[str, Value]:
    """Short scalar attributes of the span and its resource: what a spec's `match:` may look at."""
    return {
        k: v
        for source in (span.resource, span.attributes)
        for k, v in source.items()
        if isinstance(v, (bool, int, float)) or (isinstance(v, str) and len(v) <= _MAX_ATTRIBUTE_CHARS)
    }


def tokens(attributes: Mapping[str, Value], *pairs: tuple[str, str]) -> int | None:
    """Input + output tokens under the first pair of keys that has any."""
    for one, other in pairs:
        if one not in attributes and other not in attributes:
            continue
        found = [
            v for v in (attributes.get(one), attributes.get(other)) if isinstance(v, int) and not isinstance(v, bool)
        ]
        if found:
            return sum(found)
    return None
