"""Langfuse SDK (scope `langfuse-sdk`, 3 to 5): `langfuse.observation.*`; spans are named as the tool or agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters.base import call_facts, facts, name_of, tokens
from luckrate_otel.adapters.failure import failure
from luckrate_otel.content.arguments import Arguments, arguments, from_signature, is_signature
from luckrate_otel.content.messages import messages, texts, without_system
from luckrate_otel.content.results import returned
from luckrate_otel.content.structured import as_text, structured, text_of
from luckrate_otel.facts import Facts, Role
from luckrate_otel.telemetry import Span, Status, Value

NAME = "langfuse"

TYPE = "langfuse.observation.type"
INPUT, OUTPUT = "langfuse.observation.input", "langfuse.observation.output"
LEVEL, STATUS = "langfuse.observation.level", "langfuse.observation.status_message"
_ROLES = {"agent": Role.AGENT, "tool": Role.TOOL, "generation": Role.MODEL, "chain": Role.WRAPPER, "span": Role.WRAPPER}


def read(span: Span) -> Facts | None:
    """Facts of a Langfuse observation; None for events, retrievers, evaluators, guardrails."""
    kind = span.attributes.get(TYPE)
    role = _ROLES.get(kind.lower()) if isinstance(kind, str) else None
    if role is Role.TOOL:
        return _tool(span)
    if role is Role.MODEL:
        return _model(span)
    return _container(span, role) if role else None


def _tool(span: Span) -> Facts:
    attributes = span.attributes
    ok, error = failure(span, told=text_of(attributes.get(STATUS)))
    if ok and attributes.get(LEVEL) == "ERROR":
        ok, error = False, text_of(attributes.get(STATUS)) or "error"
    args, back = _arguments(attributes.get(INPUT)), returned(attributes.get(OUTPUT))
    return call_facts(NAME, span, span.head.name, args, back, (ok, error))


def _arguments(value: Value) -> Arguments:
    found, gap = arguments(value)
    return from_signature(found) if found is not None and is_signature(found) else (found, gap)


def _model(span: Span) -> Facts:
    inputs, system = without_system(messages(_given(span.attributes.get(INPUT))))
    return facts(
        Role.MODEL,
        NAME,
        span,
        inputs=inputs,
        outputs=messages(span.attributes.get(OUTPUT), "assistant"),
        system=system,
        tokens=tokens(span.attributes, ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")),
    )


def _container(span: Span, role: Role) -> Facts:
    answer, _ = structured(span.attributes.get(OUTPUT))
    return facts(
        role,
        NAME,
        span,
        agent=name_of(span.head.name) if role is Role.AGENT else None,
        task_input=_question(_given(span.attributes.get(INPUT))),
        final_output=None if span.head.status is Status.ERROR else as_text(answer),
    )


def _given(value: Value) -> Any:
    """What the decorated function was called with: its first argument, or the value set by hand."""
    found, _ = structured(value)
    if not is_signature(found):
        return found
    positional = found.get("args") or ()
    if positional:
        return positional[0]
    keywords = found["kwargs"]
    if not isinstance(keywords, Mapping) or not keywords:
        return None
    return keywords.get("messages", next(iter(keywords.values())))


def _question(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    asked = texts(messages(value), "user") if isinstance(value, (list, tuple, Mapping)) else ()
    if asked:
        return asked[-1]
    only = [v for v in value.values() if isinstance(v, str)] if isinstance(value, Mapping) else []
    return only[0] if len(only) == 1 else None
