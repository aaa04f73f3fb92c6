"""`each_before`: pairs [a, b]; every b has an a of its own before it, one approval per refund."""

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
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

EACH_BEFORE: Key[tuple[Pair, ...]] = Key("each_before", parse_pairs, (), shapes.PAIRS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(EACH_BEFORE)), read, trajectory, spec)


def read(clause: Pair, lens: Lens) -> Reading:
    """One break per b for which no a is left. A b takes the oldest a that precedes it and was not taken yet."""
    earlier = ByAbout(lens.order, lens.clearing(clause.first, clause.same.first))
    reading = Reading()
    for b in lens.accused(clause.then, clause.same.then):
        reading.activated = True
        if earlier.take_oldest(b.step, b.about, clause.within) is None:
            words = f"{call(lens.trajectory, b.step)} has no {clause.first} of its own before it"
            reading.found.append(Found(b.step, words, open=True))
    return reading


RULE = Rule(
    "each_before",
    Severity.HARD,
    (EACH_BEFORE,),
    evaluate,
    mend="ask for one call of the first tool per call of the second, about the same thing",
)
