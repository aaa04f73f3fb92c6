"""`leads_to`: pairs [a, b]; every a is followed by a b."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.clause import Pair, parse_pairs
from luckrate_otel.rules.clauses import Found, Reading, judge, numbered
from luckrate_otel.rules.contents import each_item
from luckrate_otel.rules.finding import call
from luckrate_otel.rules.key import Key
from luckrate_otel.rules.lens import Lens
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.rules.unanswered import Unanswered

LEADS_TO: Key[tuple[Pair, ...]] = Key("leads_to", parse_pairs, (), shapes.PAIRS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(LEADS_TO)), read, trajectory, spec)


def read(clause: Pair, lens: Lens) -> Reading:
    """One break per a. One b may follow several a's. Broken now where `within` has passed, else only by the end."""
    calls_of_a = list(lens.accused(clause.first, clause.same.first))
    unanswered = Unanswered(lens.order, calls_of_a)
    late: list[int] = []
    for b in lens.clearing(clause.then, clause.same.then):
        late += (a for a in unanswered.answer(b) if not clause.within.holds(lens.order, a, b.step))
    last = len(lens.trajectory.steps) - 1
    found = [Found(a, _words(clause, lens, a)) for a in late]
    for a in unanswered.rest():
        passed = not clause.within.holds(lens.order, a, last)
        found.append(Found(a, _words(clause, lens, a), open=not passed))
    return Reading(sorted(found, key=lambda one: one.step or 0), activated=bool(calls_of_a))


def _words(clause: Pair, lens: Lens, a: int) -> str:
    near = f" {clause.within}" if clause.within.bounded else ""
    return f"{call(lens.trajectory, a)} was not followed by {clause.then}{near}"


RULE = Rule(
    "leads_to",
    Severity.HARD,
    (LEADS_TO,),
    evaluate,
    mend="let the agent make the second call whenever the first one is made",
)
