"""Handoffs: one agent passes control to another, which runs beside it and not below it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping

from luckrate_otel.facts import Call, Facts, Role
from luckrate_otel.telemetry import Value

# The tool names that frameworks give to a handoff: transfer_to_billing_agent (OpenAI Agents, LangGraph),
# handoff_to_agent (Strands), transfer_to_agent (Google ADK), "handoff to X" (OpenInference). Not a proof on its own:
# a handoff joins two runs only when an agent of that name really starts beside the first one.
_HANDOFF = re.compile(r"(?:transfer|hand[_\s-]?off)(?:[_\s-]?back)?(?:[_\s-]?to)?[_\s-]+(?P<target>.+)", re.IGNORECASE)
_GENERIC = frozenset({"agent", "subagent", "assistant"})


def same_name(name: str) -> str:
    """An agent's name without the spelling that tool names cannot carry: `Billing Agent` → `billingagent`."""
    return re.sub(r"[\W_]+", "", name.casefold())


def target_of(tool: str, args: Mapping[str, Value] | None) -> str | None:
    """Normalised name of the agent that a tool call hands over to, "" if it does not say, None if it is no handoff."""
    match = _HANDOFF.fullmatch(tool.strip())
    if match is None:
        return None
    target = same_name(match["target"])
    if target not in _GENERIC:
        return target
    for key in ("agent_name", "agent", "target", "name"):
        value = (args or {}).get(key)
        if isinstance(value, str):
            return same_name(value)
    return ""


def handoffs_of(fact: Facts) -> tuple[str, ...]:
    """Normalised targets of the handoffs that one span tells of, "" for one whose target is not told."""
    if fact.handoff is not None:
        return (same_name(fact.handoff),)
    if fact.role is Role.TOOL:
        calls: Iterable[tuple[str, Mapping[str, Value] | None]] = ((fact.tool or "", fact.args),)
    elif fact.role is Role.MODEL:
        calls = ((p.tool, p.args) for message in fact.outputs for p in message.parts if isinstance(p, Call))
    else:
        return ()
    return tuple(target for tool, args in calls if (target := target_of(tool, args)) is not None)


def join_siblings(
    ordered: Iterable[Facts],
    owner: Mapping[str, str],
    siblings: Mapping[str, tuple[Facts, ...]],
    beside: Mapping[str, str],
) -> dict[str, str]:
    """Join runs that a handoff connects: run → the run it is a part of, for the runs that are joined to another.

    ordered: facts by start. owner: span id → its run, for spans inside a run. siblings: parent id → the outermost agent
    spans under it, by start; beside: run → that parent id. A handoff goes to the first agent of the named target that
    starts beside the run at or after it; with no name told, to the first one that starts there.
    """
    rows = {parent: _by_name(agents) for parent, agents in siblings.items() if len(agents) > 1}
    joined: dict[str, str] = {}
    for fact in ordered:
        run = owner.get(fact.head.span_id)
        row = rows.get(beside.get(run, "")) if run else None
        if row is None or run is None:
            continue
        for target in handoffs_of(fact):
            agent = _first_from(row.get(target, ()), fact.head.start_ns)
            if agent is not None:
                _join(joined, run, owner.get(agent, agent))
    return {run: _lead(joined, run) for run in joined}


def _by_name(agents: tuple[Facts, ...]) -> dict[str, list[tuple[int, str]]]:
    row: dict[str, list[tuple[int, str]]] = {"": []}
    for agent in agents:
        start = (agent.head.start_ns, agent.head.span_id)
        row[""].append(start)
        if agent.agent and same_name(agent.agent):
            row.setdefault(same_name(agent.agent), []).append(start)
    return row


def _first_from(starts: list[tuple[int, str]] | tuple[()], start_ns: int) -> str | None:
    at = bisect_left(starts, (start_ns, ""))
    return starts[at][1] if at < len(starts) else None


def _join(joined: dict[str, str], run: str, other: str) -> None:
    first, second = _lead(joined, run), _lead(joined, other)
    if first != second:
        joined[second] = first


def _lead(joined: dict[str, str], run: str) -> str:
    """The run at the end of the chain; halves the chain on the way, so that long chains stay cheap."""
    while run in joined:
        above = joined[run]
        if above in joined:
            joined[run] = joined[above]
        run = above
    return run
