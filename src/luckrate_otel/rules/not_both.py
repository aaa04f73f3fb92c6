"""`not_both`: pairs [a, b]; one run calls one of them at most, in whatever order."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.clause import Pair, parse_pairs
from luckrate_otel.rules.clauses import Found, Reading, judge, numbered
from luckrate_otel.rules.contents import each_item
from luckrate_otel.rules.earlier import ByAbout
from luckrate_otel.rules.finding import call
from luckrate_otel.rules.key import Key
from luckrate_otel.rules.lens import Lens
from luckrate_otel.rules.order import order_of
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

NOT_BOTH: Key[tuple[Pair, ...]] = Key("not_both", parse_pairs, (), shapes.PAIRS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(NOT_BOTH)), read, trajectory, spec)


def read(clause: Pair, lens: Lens) -> Reading:
    """One break per call of either that has the other before it, on the later of the two."""
    ones = list(lens.accused(clause.first, clause.same.first))
    others = list(lens.accused(clause.then, clause.same.then))
    # In the order of issue: calls that overlap are both made all the same.
    order = order_of(lens.trajectory, "issue")
    found: dict[int, Found] = {}
    for these, those in ((ones, others), (others, ones)):
        earlier = ByAbout(order, those)
        for hit in these:
            other = earlier.latest(hit.step, hit.about, accusing=True)
            if other is not None and hit.step not in found and clause.within.holds(order, other, hit.step):
                words = f"{call(lens.trajectory, hit.step)} and {call(lens.trajectory, other)} exclude each other"
                found[hit.step] = Found(hit.step, words, (other,))
    return Reading([found[step] for step in sorted(found)], activated=bool(ones or others))


RULE = Rule(
    "not_both",
    Severity.HARD,
    (NOT_BOTH,),
    evaluate,
    mend="let the agent choose one of the two tools",
)
