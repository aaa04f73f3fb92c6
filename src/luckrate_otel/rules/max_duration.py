"""`max_duration`: how long a run may take."""

from __future__ import annotations

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import as_one
from luckrate_otel.rules.finding import concluded, on_run
from luckrate_otel.rules.key import Key, seconds
from luckrate_otel.rules.outcome import SATISFIED, Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

MAX_DURATION: Key[float | None] = Key("max_duration", seconds, None, shapes.DURATION, as_one)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation of the run. What is known of its length is the least that it took."""
    budget = spec.get(MAX_DURATION)
    if budget is None:
        return SATISFIED
    least = max((step.t + (step.duration or 0) for step in trajectory.steps), default=0.0)
    taken = max(least, trajectory.duration or 0) / 1000
    if taken <= budget:
        if trajectory.cut_short:
            return Outcome(gap=Gap.INCOMPLETE)
        return Outcome(gap=Gap.NOT_CAPTURED) if trajectory.duration is None else SATISFIED
    violation = on_run(
        trajectory,
        rule=RULE.id,
        clause=RULE.id,
        severity=RULE.severity,
        message=f"{taken:.3g} s is over the budget of {budget:g} s",
    )
    return concluded((violation,))


RULE = Rule(
    "max_duration",
    Severity.SOFT,
    (MAX_DURATION,),
    evaluate,
    mend="look for the slowest steps of the run; raise the limit only if good runs need more",
)
