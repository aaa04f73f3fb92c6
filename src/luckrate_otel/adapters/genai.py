"""OpenTelemetry GenAI conventions, versions 1.28 to genai 0.1.0: the reader of every scope without a table row of its
own.

Operation name where there is one (1.33 on), else the attributes that a span has. Content: span attributes (1.37 on),
else span events (`gen_ai.*.message`, `gen_ai.choice`, `gen_ai.client.inference.operation.details`), else the same as
log events.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from luckrate_otel.adapters.base import CASE_KEY, begun, completed, conversation, facts, name_of, tokens
from luckrate_otel.adapters.failure import failure
from luckrate_otel.adapters.genai_events import (
    DETAILS,
    INPUT,
    MESSAGE_ROLES,
    OUTPUT,
    either,
    event_inputs,
    event_outputs,
    indexed,
)
from luckrate_otel.content.arguments import arguments
from luckrate_otel.content.definitions import definitions
from luckrate_otel.content.messages import calls_in, instructions, messages
from luckrate_otel.content.results import Returned, outcome, returned, tells_failure
from luckrate_otel.content.structured import text_of
from luckrate_otel.facts import MAX_ERROR_CHARS, Evaluation, Facts, Gap, Message, Response, Role
from luckrate_otel.telemetry import Head, LogRecord, Span, Value
from luckrate_otel.vocabulary import EVALUATION_EVENT, EVALUATION_NAME

NAME = "genai"

OPERATION = "gen_ai.operation.name"
AGENT_NAME = "gen_ai.agent.name"
WORKFLOW_NAME = "gen_ai.workflow.name"  # until genai 0.1.0, then AGENT_NAME
TOOL_NAME = "gen_ai.tool.name"
CALL_ID = "gen_ai.tool.call.id"
SYSTEM, DEFINITIONS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
FINISH = "gen_ai.response.finish_reasons"

# 1.38 on, and what emitters used before or beside it.
ARGUMENTS = ("gen_ai.tool.call.arguments", "gen_ai.tool.arguments", "gen_ai.tool.call.args", "gen_ai.tool.input")
RESULTS = ("gen_ai.tool.call.result", "gen_ai.tool.result", "gen_ai.tool.output", "gen_ai.tool.call.output")

OPERATIONS = {
    "execute_tool": Role.TOOL,
    "invoke_agent": Role.AGENT,
    "invoke_workflow": Role.WRAPPER,
    "handle_conversation_turn": Role.WRAPPER,
    "chat": Role.MODEL,
    "text_completion": Role.MODEL,
    "generate_content": Role.MODEL,
    "fetch_response": Role.MODEL,
}
# Operations that are neither a step nor a container of steps worth keeping.
_ASIDE = frozenset({"embeddings", "retrieval", "create_agent", "rerank"})

_TOKENS = (
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
)
_TOKEN_KEYS = frozenset(key for pair in _TOKENS for key in pair)


def read(span: Span) -> Facts | None:
    """Facts of a span that follows the conventions, None if nothing on it does."""
    role = role_of(span)
    if role is Role.TOOL:
        return read_tool(span)
    if role is None:
        return None
    if role is Role.WRAPPER and not _holds_a_conversation(span):
        return facts(role, NAME, span, evaluations=evaluations(span))
    return read_conversation(span, role)


def _holds_a_conversation(span: Span) -> bool:
    """Workflows, swarms, crews: what they were asked and answered is the run's; a cycle or step only repeats parts of
    it.
    """
    operation = text_of(span.attributes.get(OPERATION))
    return operation is None or operation in OPERATIONS or operation.startswith("invoke_")


def role_of(span: Span) -> Role | None:
    attributes = span.attributes
    operation = attributes.get(OPERATION)
    if isinstance(operation, str) and operation:
        role = OPERATIONS.get(operation)
        if role is not None or operation in _ASIDE:
            return role
    if TOOL_NAME in attributes and (CALL_ID in attributes or any(k in attributes for k in (*ARGUMENTS, *RESULTS))):
        return Role.TOOL
    if operation is None:
        return _role_without_operation(span)
    return Role.WRAPPER if any(k.startswith("gen_ai.") for k in attributes) else None


def _role_without_operation(span: Span) -> Role | None:
    """Emitters of before 1.33, which introduced the operation name for agents and tools."""
    attributes, name = span.attributes, span.head.name
    if TOOL_NAME in attributes or name.startswith("execute_tool "):
        return Role.TOOL
    if "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes:
        return Role.MODEL
    if name.startswith("invoke_agent"):
        return Role.AGENT
    if (
        INPUT in attributes
        or OUTPUT in attributes
        or any(e.name in MESSAGE_ROLES or e.name == "gen_ai.choice" for e in span.events)
    ):
        return Role.MODEL if "gen_ai.system" in attributes or "gen_ai.provider.name" in attributes else Role.WRAPPER
    if AGENT_NAME in attributes or "gen_ai.agent.id" in attributes:
        return Role.WRAPPER
    found = evaluations(span)
    return Role.WRAPPER if found else None


# ---- tools -------------------------------------------------------------------------------------


def tool_name(span: Span) -> str | None:
    """The tool's name. The span name is a last resort: since 0.1.0 it may end in a skill or an agent."""
    name = text_of(span.attributes.get(TOOL_NAME))
    if name is None and span.head.name.startswith("execute_tool "):
        name = span.head.name[13:].strip() or None
    return name


def read_tool(span: Span, *, adapter: str = NAME, agent: str | None = None, **fields: Any) -> Facts | None:
    """Facts of a tool span; fields: what the caller knows better (args, back: Returned, tool, call_id)."""
    attributes = span.attributes
    tool = fields.pop("tool", None) or tool_name(span)
    if tool is None:
        return None
    args, args_gap = fields.pop("args", None) or _arguments(span)
    back: Returned = fields.pop("back", None) or _result(span)
    ok, error = failure(span)
    flagged = outcome(attributes.get("gen_ai.tool.status"))
    if ok and (flagged is False or back.ok is False or (back.ok is None and tells_failure(back.text))):
        ok, error = False, (back.text or "error")[:MAX_ERROR_CHARS]
    made = begun(Role.TOOL, adapter, span)
    made.agent = agent or name_of(attributes.get(AGENT_NAME))
    made.tool = tool
    made.call_id = fields.pop("call_id", None) or _call_id(attributes.get(CALL_ID)) or back.call_id
    made.args, made.args_gap = args, args_gap
    made.result, made.result_gap = back.text if ok is not None else None, back.gap
    made.ok, made.error = ok, error
    return completed(made, fields)


def _call_id(value: Value) -> str | None:
    found = text_of(value)
    return None if found == "<not specified>" else found  # Google ADK, when the tool raised


def _arguments(span: Span) -> tuple[Mapping[str, Value] | None, Gap | None]:
    attributes = span.attributes
    for key in ARGUMENTS:
        if key in attributes:
            return arguments(attributes[key])
    for event in span.events:  # Strands' default form
        if event.name == "gen_ai.tool.message" and "content" in event.attributes:
            found, gap = arguments(event.attributes["content"])
            if found is not None:
                return found, gap
    own = [c for c in calls_in(_inputs(span)) if c.args is not None]
    if own:
        return own[-1].args, None
    return None, Gap.NOT_CAPTURED


def _result(span: Span) -> Returned:
    attributes = span.attributes
    for key in RESULTS:
        if key in attributes:
            return returned(attributes[key])
    for event in span.events:
        if event.name == "gen_ai.choice" and "message" in event.attributes:
            return returned(event.attributes["message"])
    answers = [p for m in _outputs(span) for p in m.parts if isinstance(p, Response)]
    if answers:
        return Returned(answers[-1].result, answers[-1].ok, answers[-1].call_id)
    return Returned(None, gap=Gap.NOT_CAPTURED)


# ---- models, agents, workflows -----------------------------------------------------------------


def read_conversation(span: Span, role: Role, *, adapter: str = NAME, **fields: Any) -> Facts:
    """Facts of a span that holds messages; fields: what the caller knows better."""
    attributes = span.attributes
    made = begun(role, adapter, span)
    if "agent" not in fields:
        made.agent = name_of(attributes.get(AGENT_NAME)) or (
            name_of(attributes.get(WORKFLOW_NAME)) if role is not Role.MODEL else None
        )
    if "inputs" not in fields:
        made.inputs = _inputs(span)
    if "outputs" not in fields:
        made.outputs = _outputs(span)
    made.system = fields.pop("system", None) or _system(span)
    made.definitions = fields.pop("definitions", None) or definitions(attributes.get(DEFINITIONS))
    made.evaluations = evaluations(span)
    made.finish_reasons = finish_reasons(attributes.get(FINISH, attributes.get("gen_ai.response.finish_reason")))
    if role is Role.MODEL and not _TOKEN_KEYS.isdisjoint(attributes):
        made.tokens = tokens(attributes, *_TOKENS)
    return completed(made, fields)


def finish_reasons(value: Value) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, (list, tuple)) else ()


def _system(span: Span) -> tuple[str, ...]:
    stated = span.attributes.get(SYSTEM)
    found = instructions(stated) if stated is not None else ()
    if found or not span.events:
        return found
    return tuple(t for e in span.events if e.name == DETAILS for t in instructions(e.attributes.get(SYSTEM)))


def _inputs(span: Span) -> tuple[Message, ...]:
    if INPUT in span.attributes:
        return messages(span.attributes[INPUT])
    if span.events:
        return tuple(m for e in span.events for m in event_inputs(e.name, e.attributes, None))
    return indexed(span.attributes, "gen_ai.prompt")


def _outputs(span: Span) -> tuple[Message, ...]:
    if OUTPUT in span.attributes:
        return messages(span.attributes[OUTPUT], "assistant")
    if span.events:
        return tuple(m for e in span.events for m in event_outputs(e.name, e.attributes, None))
    return indexed(span.attributes, "gen_ai.completion", "assistant")


# ---- evaluations -------------------------------------------------------------------------------


def evaluations(span: Span) -> tuple[Evaluation, ...]:
    """Evaluations on the span itself and in its events, except our own."""
    if not span.events and "gen_ai.evaluation.name" not in span.attributes:
        return ()
    own = _evaluation(span.attributes, span.head.end_ns)
    told = (_evaluation(e.attributes, e.time_ns) for e in span.events if e.name == EVALUATION_EVENT)
    return tuple(e for e in (own, *told) if e is not None)


def _evaluation(attributes: Mapping[str, Value], time_ns: int) -> Evaluation | None:
    name = text_of(attributes.get("gen_ai.evaluation.name"))
    if name is None or name == EVALUATION_NAME:  # ours, of an earlier hop: never read for grading
        return None
    score = _score(attributes.get("gen_ai.evaluation.score.value"))
    return Evaluation(
        name,
        text_of(attributes.get("gen_ai.evaluation.score.label")),
        score,
        text_of(attributes.get("gen_ai.evaluation.explanation")),
        time_ns,
    )


def _score(value: Value) -> float | None:
    """Some evaluators write their numbers as texts."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        score = float(value)
    except (ValueError, OverflowError):
        return None
    return score if isfinite(score) else None


# ---- log events --------------------------------------------------------------------------------


def read_log(log: LogRecord, *, adapter: str = NAME) -> Facts | None:
    """Facts of a GenAI log event; they belong to the span whose ids it carries."""
    name = log.event_name or text_of(log.attributes.get("event.name")) or ""
    if not name.startswith("gen_ai."):
        return None
    inputs, outputs = event_inputs(name, log.attributes, log.body), event_outputs(name, log.attributes, log.body)
    evaluation = _evaluation(log.attributes, log.time_ns) if name == EVALUATION_EVENT else None
    system = instructions(either(log.attributes, log.body, SYSTEM))
    if not (inputs or outputs or evaluation or system):
        return None
    head = Head(
        log.trace_id,
        log.span_id,
        name=name,
        start_ns=log.time_ns,
        end_ns=log.time_ns,
        scope=log.scope,
        service=log.service,
    )
    return Facts(
        role=Role.WRAPPER if evaluation else Role.MODEL,
        adapter=adapter,
        head=head,
        log=True,
        agent=name_of(log.attributes.get(AGENT_NAME)),
        conversation_id=conversation(log.attributes),
        case=text_of(log.attributes.get(CASE_KEY)),
        inputs=inputs,
        outputs=outputs,
        system=system,
        definitions=definitions(either(log.attributes, log.body, DEFINITIONS)),
        evaluations=(evaluation,) if evaluation else (),
        finish_reasons=finish_reasons(log.attributes.get(FINISH)),
    )
