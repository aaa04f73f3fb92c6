"""A run's facts sorted by what they are."""

from __future__ import annotations

from luckrate_otel.facts import Evaluation, Facts, Role
from luckrate_otel.record import record


@record(frozen=True, slots=True)
class Kinds:
    """The facts of a run by kind, each kind by start: told apart once instead of by every stage that wants one kind.

    models, tools, containers: by role, agents and workflows being containers. calls: the tools, and the agents whose
    span is that of a tool call too. told: those that name a conversation. defining: those with tool definitions.
    """

    facts: tuple[Facts, ...]
    models: list[Facts]
    tools: list[Facts]
    containers: list[Facts]
    calls: list[Facts]
    told: list[Facts]
    defining: list[Facts]
    evaluations: tuple[Evaluation, ...]
    case: str | None
    adapters: frozenset[str]
    has_agent: bool


def by_kind(facts: tuple[Facts, ...]) -> Kinds:
    models: list[Facts] = []
    tools: list[Facts] = []
    containers: list[Facts] = []
    calls: list[Facts] = []
    told: list[Facts] = []
    defining: list[Facts] = []
    evaluations: list[Evaluation] = []
    case: str | None = None
    has_agent = False
    for fact in facts:
        role = fact.role
        if role is Role.MODEL:
            models.append(fact)
        elif role is Role.TOOL:
            tools.append(fact)
            calls.append(fact)
        else:
            containers.append(fact)
            if role is Role.AGENT:
                has_agent = True
                if fact.tool:
                    calls.append(fact)
        if fact.conversation_id:
            told.append(fact)
        if fact.definitions:
            defining.append(fact)
        if fact.evaluations:
            evaluations += fact.evaluations
        case = case or fact.case or None
    return Kinds(
        facts,
        models,
        tools,
        containers,
        calls,
        told,
        defining,
        tuple(evaluations),
        case,
        frozenset([f.adapter for f in facts]),
        has_agent or bool(models),
    )
