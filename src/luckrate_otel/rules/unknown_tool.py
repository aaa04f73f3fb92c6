"""`tools`: the legal vocabulary; a call of anything else is `unknown_tool`."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.finding import at_step, call, concluded, positions
from luckrate_otel.rules.key import Key, vocabulary
from luckrate_otel.rules.outcome import SATISFIED, Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

TOOLS: Key[tuple[str, ...]] = Key("tools", vocabulary, (), shapes.either(shapes.TOOLS, {"type": "null"}))


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation per unknown tool, on its first call, the others as evidence. Vacuous without any call."""
    legal = frozenset(spec.get(TOOLS))
    if trajectory.steps and all(step.tool in legal for step in trajectory.steps):
        return SATISFIED
    return concluded(
        (
            at_step(
                trajectory,
                first,
                rule=RULE.id,
                clause="tools",
                severity=RULE.severity,
                message=f"{call(trajectory, first)} is not a tool of the vocabulary",
                evidence=others,
            )
            for tool, (first, *others) in positions(trajectory).items()
            if tool not in legal
        ),
        activated=bool(trajectory.steps),
    )


RULE = Rule(
    "unknown_tool",
    Severity.HARD,
    (TOOLS,),
    evaluate,
    mend="take the tool away from the agent, or add it to tools (or to aliases, if it is another name)",
)
