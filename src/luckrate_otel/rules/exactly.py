"""`exactly`: all calls of a run, in order, and no others."""

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

EXACTLY: Key[tuple[Calls, ...]] = Key("exactly", parse_sequence, (), shapes.SEQUENCE, as_one)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), [(RULE.id, spec.get(EXACTLY))], read, trajectory, spec)


def read(wanted: tuple[Calls, ...], lens: Lens) -> Reading:
    """One break, on the first call that goes another way; on the run if it stops short."""
    reached, left = begins(lens, wanted)
    if reached == len(wanted) and not left:
        return Reading(activated=True)
    if not left:
        words = f"{wanted[reached]} was to be step {reached}, but no more came"
        return Reading([Found(None, words, open=True, tool=wanted[reached].tool)], activated=True)
    here = call(lens.trajectory, left[0])
    if reached == len(wanted):
        return Reading([Found(left[0], f"{here} is one call too many", tuple(left[1:]))], activated=True)
    return Reading([Found(left[0], f"{wanted[reached]} was to be step {reached}, not {here}")], activated=True)


RULE = Rule(
    "exactly",
    Severity.HARD,
    (EXACTLY,),
    evaluate,
    mend="look for a repeated or missing call",
)
