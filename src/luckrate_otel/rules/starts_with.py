"""`starts_with`: the calls that a run begins with, in order."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.calls import Calls
from luckrate_otel.rules.clauses import Found, Reading, judge
from luckrate_otel.rules.contents import as_one
from luckrate_otel.rules.finding import call
from luckrate_otel.rules.key import Key
from luckrate_otel.rules.lens import Lens
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.sequence import begins, parse_sequence
from luckrate_otel.rules.spec_view import SpecView

STARTS_WITH: Key[tuple[Calls, ...]] = Key("starts_with", parse_sequence, (), shapes.SEQUENCE, as_one)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), [(RULE.id, spec.get(STARTS_WITH))], read, trajectory, spec)


def read(wanted: tuple[Calls, ...], lens: Lens) -> Reading:
    """One break, on the call that stands where another was wanted; on the run if none does."""
    reached, left = begins(lens, wanted)
    if reached == len(wanted):
        return Reading(activated=True)
    words = f"{wanted[reached]} was to be step {reached}"
    if not left:
        return Reading(
            [Found(None, f"{words}, but no more came", open=True, tool=wanted[reached].tool)], activated=True
        )
    return Reading([Found(left[0], f"{words}, not {call(lens.trajectory, left[0])}")], activated=True)


RULE = Rule(
    "starts_with",
    Severity.HARD,
    (STARTS_WITH,),
    evaluate,
    mend="tell the agent which call comes first",
)
