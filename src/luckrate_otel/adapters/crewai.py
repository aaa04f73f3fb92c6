"""CrewAI through OpenLLMetry (scope `opentelemetry.instrumentation.crewai.instrumentation`), and its own telemetry
(`crewai.telemetry`).

OpenLLMetry makes no tool spans: calls are in the messages of the OpenAI instrumentation, and without that only in the
Python repr of the finished tasks. CrewAI's own anonymous telemetry never shows a tool call; its spans are each a trace
of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from luckrate_otel.adapters.base import facts, name_of
from luckrate_otel.content import python_repr
from luckrate_otel.content.messages import message
from luckrate_otel.content.structured import mapping, text_of
from luckrate_otel.facts import Facts, Message, Role
from luckrate_otel.telemetry import Span, Status, Value

NAME = "crewai"
NATIVE = "crewai_native"

KIND = "traceloop.span.kind"
AGENT_NAME = "gen_ai.agent.name"
RESULT, TASKS_OUTPUT = "crewai.crew.result", "crewai.crew.tasks_output"
DESCRIPTION = "crewai.task.description"


def read(span: Span) -> Facts | None:
    """Facts of OpenLLMetry's spans. All of them say invoke_agent; only one kind is an agent."""
    kind = span.attributes.get(KIND)
    if kind == "agent":
        return facts(Role.AGENT, NAME, span, agent=name_of(span.attributes.get(AGENT_NAME)))
    if kind == "task":
        return facts(Role.WRAPPER, NAME, span, task_input=text_of(span.attributes.get(DESCRIPTION)))
    if span.head.name.endswith(".workflow"):
        return _crew(span)
    return None


def _crew(span: Span) -> Facts:
    failed = span.head.status is Status.ERROR
    return facts(
        Role.WRAPPER,
        NAME,
        span,
        outputs=_histories(span.attributes.get(TASKS_OUTPUT)),
        final_output=None if failed else text_of(span.attributes.get(RESULT)),
    )


def _histories(value: Value) -> tuple[Message, ...]:
    """The messages of every finished task, each assistant message under its agent's name."""
    if not isinstance(value, str):
        return ()
    found: list[Message] = []
    for task in python_repr.find_constructors(value, "TaskOutput"):
        agent, history = text_of(task.get("agent")), task.get("messages")
        for item in history if isinstance(history, list) else ():
            one = message(item)
            if one is not None and one.role in ("assistant", "tool") and one.parts:
                found.append(replace(one, name=agent) if one.role == "assistant" else one)
    return tuple(found)


CREW_ID = "crew_id"  # what spans of CrewAI's own telemetry have in common instead of a trace


def read_native(span: Span) -> Facts | None:
    """Facts of CrewAI's own telemetry: what a crew was asked and what it answered; nothing tells how it got there."""
    crew = span.attributes.get(CREW_ID)
    attributes = {CREW_ID: crew} if isinstance(crew, str) else {}
    if span.head.name == "Crew Created":
        task = _request(mapping(span.attributes.get("crew_inputs")))
        return facts(Role.AGENT, NATIVE, span, task_input=task, attributes=attributes)
    if span.head.name == "Crew Execution":
        return facts(
            Role.WRAPPER, NATIVE, span, final_output=text_of(span.attributes.get("crew_output")), attributes=attributes
        )
    return None


def _request(inputs: Mapping[str, Any]) -> str | None:
    only = [v for v in inputs.values() if isinstance(v, str)]
    return only[0] if only else None
