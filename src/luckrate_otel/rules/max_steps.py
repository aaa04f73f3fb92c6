"""`max_steps`: the step budget."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import as_one
from luckrate_otel.rules.finding import concluded, on_run
from luckrate_otel.rules.key import Key, count
from luckrate_otel.rules.outcome import SATISFIED, Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

MAX_STEPS: Key[int | None] = Key("max_steps", count(0), None, shapes.BUDGET, as_one)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation of the run; the evidence is the first step over the budget."""
    budget = spec.get(MAX_STEPS)
    taken = len(trajectory.steps)
    if budget is None or taken <= budget:
        return SATISFIED
    violation = on_run(
        trajectory,
        rule=RULE.id,
        clause="max_steps",
        severity=RULE.severity,
        message=f"step {budget} is over the budget of {budget} ({taken} taken)",
        evidence=(budget,),
    )
    return concluded((violation,))


RULE = Rule(
    "max_steps",
    Severity.SOFT,
    (MAX_STEPS,),
    evaluate,
    mend="look for needless calls first; raise the budget only if good runs need more",
)
