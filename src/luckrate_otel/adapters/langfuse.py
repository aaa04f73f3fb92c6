"""Langfuse SDK (scope `langfuse-sdk`, 3 to 5): `langfuse.observation.*`; spans are named as the tool or agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters.arguments import Arguments, arguments, from_signature, is_signature
from luckrate_otel.adapters.base import facts, name_of, tokens
from luckrate_otel.adapters.failure import failure
from luckrate_otel.adapters.messages import messages, texts
from luckrate_otel.adapters.results import returned
from luckrate_otel.adapters.structured import dumps, structured, text_of
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
    args, args_gap = _arguments(attributes.get(INPUT))
    back = returned(attributes.get(OUTPUT))
    ok, error = failure(span, told=text_of(attributes.get(STATUS)))
    if ok and attributes.get(LEVEL) == "ERROR":
        ok, error = False, text_of(attributes.get(STATUS)) or "error"
    return facts(
        Role.TOOL,
        NAME,
        span,
        tool=span.head.name,
        args=args,
        args_gap=args_gap,
        result=back.text if ok is not None else None,
        result_gap=back.gap,
        ok=ok,
        error=error,
    )


def _arguments(value: Value) -> Arguments:
    found, gap = arguments(value)
    return from_signature(found) if found is not None and is_signature(found) else (found, gap)


def _model(span: Span) -> Facts:
    given = _given(span.attributes.get(INPUT))
    inputs = messages(given)
    return facts(
        Role.MODEL,
        NAME,
        span,
        inputs=tuple(m for m in inputs if m.role != "system"),
        outputs=messages(span.attributes.get(OUTPUT), "assistant"),
        system=texts(inputs, "system"),
        tokens=tokens(span.attributes, ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")),
    )


def _container(span: Span, role: Role) -> Facts:
    answer, _ = structured(span.attributes.get(OUTPUT))
    failed = span.head.status is Status.ERROR
    return facts(
        role,
        NAME,
        span,
        agent=name_of(span.head.name) if role is Role.AGENT else None,
        task_input=_question(_given(span.attributes.get(INPUT))),
        final_output=None
        if failed
        else answer
        if isinstance(answer, str)
        else dumps(answer)
        if answer is not None
        else None,
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
