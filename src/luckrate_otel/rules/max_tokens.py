"""`max_tokens`: how many tokens a run may use, input and output."""

from __future__ import annotations

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.plural import plural
from luckrate_otel.rules import shapes
from luckrate_otel.rules.contents import as_one
from luckrate_otel.rules.finding import concluded, on_run
from luckrate_otel.rules.key import Key, count
from luckrate_otel.rules.outcome import SATISFIED, Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

MAX_TOKENS: Key[int | None] = Key("max_tokens", count(0), None, shapes.BUDGET, as_one)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation of the run. Of a run cut short more may have been used than was seen."""
    budget, used = spec.get(MAX_TOKENS), trajectory.tokens
    if budget is None:
        return SATISFIED
    if used is None:
        return Outcome(gap=Gap.NOT_CAPTURED)
    if used <= budget:
        return Outcome(gap=Gap.INCOMPLETE) if trajectory.cut_short else SATISFIED
    violation = on_run(
        trajectory,
        rule=RULE.id,
        clause=RULE.id,
        severity=RULE.severity,
        message=f"{plural(used, 'token is', 'tokens are')} over the budget of {budget}",
    )
    return concluded((violation,))


RULE = Rule(
    "max_tokens",
    Severity.SOFT,
    (MAX_TOKENS,),
    evaluate,
    mend="shorten what the tools give back to the model, or raise the budget",
)
