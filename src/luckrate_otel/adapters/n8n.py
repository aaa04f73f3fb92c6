"""n8n: native spans (scope `n8n-workflow`, 2.19 on) and the community tracekit (scope `n8n-instrumentation`).

Native spans carry no arguments, results or prompts; a tool call is the span of a tool sub-node, agents and tools are
siblings under their workflow. The Agents feature (scope `@n8n/agents`) is Vercel's SDK with GenAI attributes: see
vercel_ai.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters.base import call_facts, facts, matchable
from luckrate_otel.adapters.failure import failure
from luckrate_otel.content.results import Returned
from luckrate_otel.content.structured import as_text, dumps, structured, text_of
from luckrate_otel.facts import NO_RETURN, Facts, Gap, Role
from luckrate_otel.telemetry import Span, Value

NAME = "n8n"

NODE_NAME, NODE_TYPE = "n8n.node.name", "n8n.node.type"
OUTPUT = "n8n.node.output_json"  # tracekit only

_LANGCHAIN = "@n8n/n8n-nodes-langchain."
_AGENT_TYPES = frozenset({"agent", "openAiAssistant", "agentTool"})
_MODEL_TYPE = re.compile(r"lm(Chat)?[A-Z]\w*")
# Sub-nodes that an agent calls: the langchain package's own tools, and any app node offered as one (`…Tool`).
_TOOL_TYPE = re.compile(r"tool[A-Z]\w*|\w+Tool")
_CUT = "…"  # how tracekit ends a text of more than 20,000 characters
# A trigger's fields that hold what the user said; the first that is there.
_QUESTIONS = ("chatInput", "message", "question", "request", "text", "input", "query", "prompt")


def read(span: Span) -> Facts | None:
    """Facts of a node or workflow span; nodes that are neither agent, model nor tool only matter as triggers."""
    kind = text_of(span.attributes.get(NODE_TYPE))
    if kind is None:
        is_workflow = span.head.name.endswith("workflow.execute")
        return facts(Role.WRAPPER, NAME, span, attributes=matchable(span)) if is_workflow else None
    short = kind.removeprefix(_LANGCHAIN).rpartition(".")[2]
    if _TOOL_TYPE.fullmatch(short):
        return _tool(span, short)
    if kind.startswith(_LANGCHAIN) and short in _AGENT_TYPES:
        return _agent(span)
    if kind.startswith(_LANGCHAIN) and _MODEL_TYPE.fullmatch(short):
        return facts(Role.MODEL, NAME, span)
    return (
        facts(Role.WRAPPER, NAME, span, task_input=_question(span)) if "rigger" in short or short == "webhook" else None
    )


def _tool(span: Span, kind: str) -> Facts | None:
    name = text_of(span.attributes.get(NODE_NAME))
    if name is None:
        return None
    ok, error = failure(span)
    if text_of(span.attributes.get("n8n.node.termination_reason")) == "workflow_cancelled":
        ok, error = None, NO_RETURN
    back = _result(span.attributes.get(OUTPUT))
    if ok and back.ok is False:
        ok, error = False, back.text
    delegate = name if kind == "agentTool" else None
    return call_facts(NAME, span, name, (None, Gap.NOT_CAPTURED), back, (ok, error), delegate=delegate)


def _agent(span: Span) -> Facts:
    ok, _ = failure(span)
    item = _first_item(span.attributes.get(OUTPUT))
    answer = item.get("output") if ok else None
    return facts(
        Role.AGENT,
        NAME,
        span,
        agent=text_of(span.attributes.get(NODE_NAME)),
        final_output=as_text(answer),
    )


def _question(span: Span) -> str | None:
    item = _first_item(span.attributes.get(OUTPUT))
    body = item.get("body", item)
    for key in _QUESTIONS:
        if isinstance(body, Mapping) and isinstance(body.get(key), str):
            return str(body[key])
    return None


def _first_item(value: Value) -> Mapping[str, Any]:
    """The json of a node's first main item; tracekit writes the bare json or the item around it."""
    found, _ = structured(value)
    first = found[0] if isinstance(found, (list, tuple)) and found else found
    if isinstance(first, Mapping) and isinstance(first.get("json"), Mapping):
        first = first["json"]
    return first if isinstance(first, Mapping) else {}


def _result(value: Value) -> Returned:
    """`{"ai_tool": [[{"json": …}]]}`: the json is the result, `{"response": text}` for a code tool."""
    found, gap = structured(value)
    if not isinstance(found, Mapping):
        return Returned(None, gap=gap or (Gap.TRUNCATED if str(found).endswith(_CUT) else Gap.NOT_CAPTURED))
    items = [
        i for row in found.get("ai_tool") or () if isinstance(row, (list, tuple)) for i in row if isinstance(i, Mapping)
    ]
    bodies = [i["json"] for i in items if "json" in i]
    if not bodies:
        return Returned(None, gap=Gap.NOT_CAPTURED)
    texts = [_text(b) for b in bodies]
    failed = all(isinstance(b, Mapping) and set(b) == {"error"} for b in bodies)
    return Returned("\n".join(texts), False if failed else None)


def _text(body: Any) -> str:
    if isinstance(body, Mapping) and len(body) == 1:
        (only,) = body.values()
        if isinstance(only, str) and set(body) <= {"response", "output", "error", "text"}:
            return only
    return dumps(body)
