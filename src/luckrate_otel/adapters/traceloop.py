"""OpenLLMetry (`traceloop.span.kind`): opentelemetry-instrumentation-langchain and the SDK's decorators.

Every payload stands twice, as `traceloop.entity.*` and under a gen_ai key. On LangChain tool spans neither is the
arguments or the result: both hold the callback's whole input and output (0.62).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import facts, name_of
from luckrate_otel.content.arguments import Arguments, arguments, from_signature, is_signature
from luckrate_otel.content.messages import messages, text_in, texts
from luckrate_otel.content.results import Returned, returned
from luckrate_otel.content.structured import dumps, structured, text_of
from luckrate_otel.facts import Facts, Gap, Role
from luckrate_otel.telemetry import Span, Status, Value

NAME = "traceloop"

KIND = "traceloop.span.kind"
ENTITY, INPUT, OUTPUT = "traceloop.entity.name", "traceloop.entity.input", "traceloop.entity.output"
LI_TOOL = "tool.name"  # opentelemetry-instrumentation-llamaindex
LC_AGENT = "traceloop.association.properties.lc_agent_name"

_KINDS = {"tool": Role.TOOL, "agent": Role.AGENT, "workflow": Role.WRAPPER, "task": Role.WRAPPER}


def read(span: Span) -> Facts | None:
    """Facts of an OpenLLMetry span; model spans without a kind follow the GenAI conventions."""
    attributes = span.attributes
    kind = attributes.get(KIND)
    if kind is None:
        found = genai.read(span)
        return _named(found, span) if found else None
    role = _KINDS.get(kind) if isinstance(kind, str) else None
    if role is Role.WRAPPER and attributes.get(genai.OPERATION) == "invoke_agent" and kind == "workflow":
        role = Role.AGENT  # LangGraph: the graph itself, inside an `invoke_agent` span of the same name
    if role is Role.TOOL:
        return _tool(span)
    if kind == "task" and (tool := text_of(attributes.get(LI_TOOL))):
        return _llama_index_tool(span, tool)
    if role is Role.WRAPPER and span.head.scope.endswith(".llamaindex"):
        return _llama_index_step(span)
    return _container(span, role) if role else None


def _named(found: Facts, span: Span) -> Facts:
    agent = name_of(span.attributes.get(LC_AGENT)) or found.agent
    return replace(found, adapter=NAME, agent=agent)


def _tool(span: Span) -> Facts | None:
    attributes = span.attributes
    value = attributes.get(INPUT, attributes.get("gen_ai.tool.call.arguments"))
    args, call_id = _arguments(value)
    return genai.read_tool(
        span,
        adapter=NAME,
        agent=name_of(attributes.get(LC_AGENT)),
        tool=text_of(attributes.get(genai.TOOL_NAME)) or text_of(attributes.get(ENTITY)),
        args=args,
        call_id=call_id,
        back=_result(attributes.get(OUTPUT, attributes.get("gen_ai.tool.call.result"))),
    )


def _llama_index_tool(span: Span, tool: str) -> Facts | None:
    """A step of a LlamaIndex workflow that ran a tool: its kind is `task`, its output a ToolCallResult."""
    found, _ = structured(span.attributes.get(OUTPUT))
    told = found.get("tool_output") if isinstance(found, Mapping) else None
    back = Returned(None, gap=Gap.NOT_CAPTURED)
    if isinstance(told, Mapping):
        flagged = told.get("is_error")
        back = replace(returned(told.get("blocks")), ok=not flagged if isinstance(flagged, bool) else None)
    return genai.read_tool(
        span,
        adapter=NAME,
        tool=tool,
        args=arguments(span.attributes.get("tool.arguments")),
        call_id=text_of(found.get("tool_id")) if isinstance(found, Mapping) else None,
        back=back,
    )


def _llama_index_step(span: Span) -> Facts:
    """Only the outputs of a workflow's steps tell anything: the agent at work, what it was asked, what it answered."""
    found, _ = structured(span.attributes.get(OUTPUT))
    told = found if isinstance(found, Mapping) else {}
    result = told.get("result")
    asked = texts(messages(told.get("input")), "user") if isinstance(told.get("input"), (list, tuple)) else ()
    answer = messages(result.get("response"), "assistant") if isinstance(result, Mapping) else ()
    return facts(
        Role.WRAPPER,
        NAME,
        span,
        agent=name_of(told.get("current_agent_name")),
        task_input=asked[-1] if asked else None,
        final_output=text_in(answer[-1]) or None if answer else None,
    )


def _arguments(value: Value) -> tuple[Arguments, str | None]:
    """Arguments and, where the callback has it, the call id."""
    found, gap = structured(value)
    if not isinstance(found, Mapping):
        return ((None, gap or Gap.NOT_CAPTURED), None) if found is None else (arguments(found), None)
    extra = found.get("kwargs")
    call_id = text_of(extra.get("tool_call_id")) if isinstance(extra, Mapping) else None
    if "input_str" in found or ("inputs" in found and "metadata" in found):  # LangChain callback
        inner = found.get("inputs")
        return arguments(inner if inner is not None else found.get("input_str")), call_id
    if set(found) == {"tool_name", "arguments"}:  # MCP instrumentation
        return arguments(found["arguments"]), None
    if is_signature(found):  # @tool decorator
        return from_signature(found), None
    return (found, None), call_id


def _result(value: Value) -> Returned:
    found, _ = structured(value)
    if isinstance(found, Mapping) and "result" in found and set(found) <= {"result", "is_error"}:
        inner = returned(found["result"])
        flagged = found.get("is_error")
        return Returned(inner.text, (not flagged) if isinstance(flagged, bool) else inner.ok, inner.call_id, inner.gap)
    if isinstance(found, Mapping) and "output" in found and isinstance(found["output"], str):
        return returned(found["output"])
    return returned(value)


def _container(span: Span, role: Role) -> Facts:
    attributes = span.attributes
    entity = name_of(attributes.get(ENTITY))
    name = name_of(attributes.get(LC_AGENT)) or name_of(attributes.get(genai.AGENT_NAME))
    whole = attributes.get(KIND) != "task"  # a task is a node; what it was given is state, not the user's words
    if whole:
        name = name or entity
    return facts(
        role,
        NAME,
        span,
        agent=name,
        task_input=_task(attributes.get(INPUT)) if whole else None,
        final_output=_final(attributes.get(OUTPUT)) if whole and span.head.status is not Status.ERROR else None,
    )


def _task(value: Value) -> str | None:
    found, _ = structured(value)
    inner = found.get("inputs", found) if isinstance(found, Mapping) else found
    if isinstance(inner, Mapping) and is_signature(inner):
        given = [*inner.get("args", ()), *inner["kwargs"].values()] if isinstance(inner["kwargs"], Mapping) else []
        inner = next((v for v in given if isinstance(v, str)), None)
    if isinstance(inner, str):
        return inner or None
    if not isinstance(inner, Mapping):
        return None
    if "messages" in inner:
        asked = texts(messages(inner["messages"]), "user")
        return asked[-1] if asked else None
    return _only_text(inner)


def _final(value: Value) -> str | None:
    found, _ = structured(value)
    inner = found.get("outputs", found) if isinstance(found, Mapping) else found
    if isinstance(inner, str):
        return inner or None
    if not isinstance(inner, Mapping):
        return dumps(inner) if isinstance(inner, (int, float, list)) else None
    if "messages" in inner:
        told = [m for m in messages(inner["messages"], "assistant") if m.role != "tool"]
        return (text_in(told[-1]) or None) if told and told[-1].role == "assistant" else None
    return _only_text(inner)


def _only_text(value: Mapping[str, Any]) -> str | None:
    found = [v for v in value.values() if isinstance(v, str)]
    return found[0] if len(found) == 1 else None
