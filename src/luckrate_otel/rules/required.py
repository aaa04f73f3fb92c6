"""`required`: tools that must be called."""

from __future__ import annotations

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import each_item
from luckrate_otel.rules.finding import concluded, named, on_run
from luckrate_otel.rules.key import Key, tool_names
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

REQUIRED: Key[tuple[str, ...]] = Key("required", tool_names, (), shapes.TOOLS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation of the run per tool that was not called; in a run cut short it may still have come."""
    called = {step.tool for step in trajectory.steps}
    missing = [(i, tool) for i, tool in enumerate(spec.get(REQUIRED)) if tool not in called]
    if missing and trajectory.cut_short:
        return Outcome(gap=Gap.INCOMPLETE)
    return concluded(
        on_run(
            trajectory,
            rule=RULE.id,
            clause=f"required[{i}]",
            severity=RULE.severity,
            message=f"{named(tool)} was never called",
            tool=tool,
        )
        for i, tool in missing
    )


RULE = Rule(
    "required",
    Severity.HARD,
    (REQUIRED,),
    evaluate,
    mend="tell the agent to make this call in every run, or guard the answer on it",
)
