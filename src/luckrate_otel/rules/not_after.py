"""`not_after`: pairs [a, b]; once a was called, b is not called any more."""

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

NOT_AFTER: Key[tuple[Pair, ...]] = Key("not_after", parse_pairs, (), shapes.PAIRS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(NOT_AFTER)), read, trajectory, spec)


def read(clause: Pair, lens: Lens) -> Reading:
    """One break per b that comes after an a, with `within` only soon after."""
    calls_of_a = list(lens.accused(clause.first, clause.same.first))
    earlier = ByAbout(lens.order, calls_of_a)
    found: list[Found] = []
    for b in lens.accused(clause.then, clause.same.then):
        a = earlier.latest(b.step, b.about, accusing=True)
        if a is not None and clause.within.holds(lens.order, a, b.step):
            found.append(Found(b.step, f"{call(lens.trajectory, b.step)} came after {call(lens.trajectory, a)}", (a,)))
    return Reading(found, activated=bool(calls_of_a))


RULE = Rule(
    "not_after",
    Severity.HARD,
    (NOT_AFTER,),
    evaluate,
    mend="let the second tool refuse once the first was called",
)
