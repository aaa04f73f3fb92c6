"""`agents`: what each agent may call, and how much."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import as_one, by_tool
from luckrate_otel.rules.finding import agent_of, at_step, call, concluded, gap_of, named
from luckrate_otel.rules.key import Aliases, Clause, Key, Place, block, count, entries, tool, tool_names, whole
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import NOTHING, Value, nothing

_WORDS = ("tools", "forbidden", "max_steps", "max_calls")


@dataclass(frozen=True, slots=True)
class Agent:
    """tools None: whatever the run may call. max_calls: tool → most."""

    tools: frozenset[str] | None = None
    forbidden: frozenset[str] = frozenset()
    max_steps: int | None = None
    max_calls: Mapping[str, int] = field(default_factory=nothing)


def _agents(value: Value, place: Place) -> Mapping[str, Agent]:
    expected = "a mapping from agents to what they may do"
    return {name: _agent(item, place.at(name)) for name, item in entries(value, place, expected)}


def _agent(value: Value, place: Place) -> Agent:
    read = block(value, place, _WORDS)
    calls = entries(read.get("max_calls", {}), place.at("max_calls"), "a mapping from tools to numbers")
    at = place.at("max_calls")
    return Agent(
        frozenset(tool_names(read["tools"], place.at("tools"))) if "tools" in read else None,
        frozenset(tool_names(read["forbidden"], place.at("forbidden"))) if "forbidden" in read else frozenset(),
        count(0)(read.get("max_steps"), place.at("max_steps")),
        {tool(name, at.at(name)): whole(0)(most, at.at(name)) for name, most in calls},
    )


_SHAPE = shapes.a_map(
    shapes.block(
        {
            "tools": shapes.TOOLS,
            "forbidden": shapes.TOOLS,
            "max_steps": shapes.BUDGET,
            "max_calls": shapes.a_map(shapes.COUNT),
        }
    )
)


def _clauses(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    """Its budgets; of tools that are not its own, a finding says itself which they are."""
    for agent, item in value.items():
        if item.get("max_steps") is not None:
            yield from as_one(f"{key}.{agent}.max_steps", item["max_steps"], aliases)
        yield from by_tool(f"{key}.{agent}.max_calls", item.get("max_calls", NOTHING), aliases)


AGENTS: Key[Mapping[str, Agent]] = Key("agents", _agents, NOTHING, _SHAPE, _clauses)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """A tool that is not the agent's own is hard, once per tool; a budget is soft, on the first call over it. A call of
    which nobody knows whose it is accuses no agent, and leaves the rule without an answer.
    """
    violations: list[Violation] = []
    activated = False
    callers = [agent_of(trajectory, index) for index in range(len(trajectory.steps))]
    for name, agent in spec.get(AGENTS).items():
        steps = [index for index, caller in enumerate(callers) if caller == name]
        activated |= bool(steps)
        violations += _wrong_tools(trajectory, name, agent, steps)
        violations += _budgets(trajectory, name, agent, steps)
    unknown = next((index for index, caller in enumerate(callers) if caller is None), None)
    gap = None if unknown is None else gap_of(trajectory, unknown, "agent")
    return concluded(violations, gap=gap, activated=activated)


def _wrong_tools(trajectory: Trajectory, name: str, agent: Agent, steps: list[int]) -> Iterator[Violation]:
    called: dict[str, list[int]] = {}
    for index in steps:
        called.setdefault(trajectory.steps[index].tool, []).append(index)
    for tool_name, (first, *others) in called.items():
        forbidden = tool_name in agent.forbidden
        if forbidden or (agent.tools is not None and tool_name not in agent.tools):
            part = "forbidden" if forbidden else "tools"
            words = f"{call(trajectory, first)} is not for {named(name)} to call"
            yield _violation(trajectory, f"{name}.{part}", Severity.HARD, [first, *others], words)


def _budgets(trajectory: Trajectory, name: str, agent: Agent, steps: list[int]) -> Iterator[Violation]:
    if agent.max_steps is not None and len(steps) > agent.max_steps:
        over = steps[agent.max_steps :]
        words = f"{call(trajectory, over[0])} is over {named(name)}'s budget of {agent.max_steps} ({len(steps)} made)"
        yield _violation(trajectory, f"{name}.max_steps", Severity.SOFT, over, words)
    for tool_name, most in agent.max_calls.items():
        made = [index for index in steps if trajectory.steps[index].tool == tool_name]
        if len(made) > most:
            words = f"{call(trajectory, made[most])} is over {named(name)}'s limit of {most} ({len(made)} made)"
            yield _violation(trajectory, f"{name}.max_calls.{tool_name}", Severity.SOFT, made[most:], words)


def _violation(trajectory: Trajectory, clause: str, severity: Severity, steps: list[int], message: str) -> Violation:
    return at_step(
        trajectory,
        steps[0],
        rule=RULE.id,
        clause=f"{RULE.id}.{clause}",
        severity=severity,
        message=message,
        evidence=steps[1:],
    )


RULE = Rule(
    "agents",
    Severity.HARD,
    (AGENTS,),
    evaluate,
    mend="take the tool away from this agent, or add it to the agent's tools in the spec",
)
