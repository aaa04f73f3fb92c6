"""`handoffs`: pairs [from, to]; which agent may hand over to which."""

from __future__ import annotations

from dataclasses import dataclass

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules import shapes
from luckrate_otel.rules.finding import agent_of, at_step, concluded, gap_of, named
from luckrate_otel.rules.key import Key, Place, items, shown, text
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import Value


@dataclass(frozen=True, slots=True)
class Handoffs:
    """The allowed ones. None at all is a rule too: nobody hands over."""

    allowed: frozenset[tuple[str, str]]


def _parse(value: Value, place: Place) -> Handoffs:
    pairs: set[tuple[str, str]] = set()
    for i, item in enumerate(items(value, place, "a list of pairs of agents")):
        if not isinstance(item, list | tuple) or len(item) != 2:
            place.at(i).problem(f"expected a pair of agents, [from, to], got {shown(item)}")
            continue
        giver, taker = (text(name, place.at(i).at(j)) for j, name in enumerate(item))
        pairs.add((giver, taker))
    return Handoffs(frozenset(pairs))


HANDOFFS: Key[Handoffs | None] = Key("handoffs", _parse, None, shapes.a_list(shapes.TWO))


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation per pair of agents, on the first call after the handoff. Going back to an agent that is waiting
    for an answer is a return, not a handoff; and an agent that waits may hand over to another meanwhile."""
    rule = spec.get(HANDOFFS)
    allowed = rule.allowed if rule else frozenset[tuple[str, str]]()
    waiting: list[str | None] = [trajectory.agent] if trajectory.agent else []  # None: any agent
    broken: dict[tuple[str, str], Violation] = {}
    activated = False
    gap: Gap | None = None
    for index in range(len(trajectory.steps)):
        taker = agent_of(trajectory, index)
        if taker is None:
            gap = gap or gap_of(trajectory, index, "agent")
        if not waiting:
            waiting.append(taker)
        if taker in waiting:
            del waiting[waiting.index(taker) + 1 :]
            continue
        activated |= taker is not None
        givers = [at for at, agent in enumerate(waiting) if None in (agent, taker) or (agent, taker) in allowed]
        if givers:
            del waiting[givers[-1] + 1 :]
        elif (giver := waiting[-1]) is not None and taker is not None:
            broken.setdefault((giver, taker), _violation(trajectory, index, giver, taker))
        waiting.append(taker)
    return concluded(broken.values(), gap=gap, activated=activated)


def _violation(trajectory: Trajectory, index: int, giver: str, taker: str) -> Violation:
    return at_step(
        trajectory,
        index,
        rule=RULE.id,
        clause=RULE.id,
        severity=RULE.severity,
        message=f"{named(giver)} may not hand over to {named(taker)} (step {index})",
        content=f"{giver}\x1f{taker}",
    )


RULE = Rule(
    "handoffs",
    Severity.HARD,
    (HANDOFFS,),
    evaluate,
    mend="remove the handoff from the agent, or allow it in handoffs",
)
