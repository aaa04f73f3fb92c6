"""`ends_with`: the calls that a run ends with, in order."""

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
from luckrate_otel.rules.sequence import ends, parse_sequence
from luckrate_otel.rules.spec_view import SpecView

ENDS_WITH: Key[tuple[Calls, ...]] = Key("ends_with", parse_sequence, (), shapes.SEQUENCE, as_one)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), [(RULE.id, spec.get(ENDS_WITH))], read, trajectory, spec)


def read(wanted: tuple[Calls, ...], lens: Lens) -> Reading:
    """One break, on the call that stands where another was wanted; on the run if none does."""
    reached, left = ends(lens, wanted)
    if reached == len(wanted):
        return Reading(activated=True)
    missed = wanted[len(wanted) - 1 - reached]
    words = f"{missed} was to be {_place(reached)}"
    if not left:
        return Reading([Found(None, f"{words}, but no more came", open=True, tool=missed.tool)], activated=True)
    return Reading([Found(left[-1], f"{words}, not {call(lens.trajectory, left[-1])}", open=True)], activated=True)


def _place(from_the_end: int) -> str:
    if from_the_end == 0:
        return "the last call"
    return f"the last call but {from_the_end}" if from_the_end > 1 else "the last call but one"


RULE = Rule(
    "ends_with",
    Severity.HARD,
    (ENDS_WITH,),
    evaluate,
    mend="tell the agent which call comes last",
)
