"""`forbidden`: tools that must not be called."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import each_item
from luckrate_otel.rules.finding import at_step, call, concluded, positions
from luckrate_otel.rules.key import Key, tool_names
from luckrate_otel.rules.outcome import SATISFIED, Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

FORBIDDEN: Key[tuple[str, ...]] = Key("forbidden", tool_names, (), shapes.TOOLS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation per forbidden tool, on its first call, the others as evidence."""
    banned = spec.get(FORBIDDEN)
    if not any(step.tool in banned for step in trajectory.steps):
        return SATISFIED
    called = positions(trajectory)
    return concluded(
        at_step(
            trajectory,
            called[tool][0],
            rule=RULE.id,
            clause=f"forbidden[{i}]",
            severity=RULE.severity,
            message=f"{call(trajectory, called[tool][0])} must not be called",
            evidence=called[tool][1:],
        )
        for i, tool in enumerate(banned)
        if tool in called
    )


RULE = Rule(
    "forbidden",
    Severity.HARD,
    (FORBIDDEN,),
    evaluate,
    mend="take the tool away from the agent, or drop it from forbidden if it may be called",
)
