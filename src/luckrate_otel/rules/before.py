"""`before`: pairs [a, b]; the first a precedes the first b, and b does not come without a."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.clause import Pair, parse_pairs
from luckrate_otel.rules.clauses import Found, Reading, judge, numbered
from luckrate_otel.rules.contents import each_item
from luckrate_otel.rules.earlier import ByAbout
from luckrate_otel.rules.finding import call
from luckrate_otel.rules.key import Key
from luckrate_otel.rules.lens import Hit, Lens
from luckrate_otel.rules.order import Order
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.same import About
from luckrate_otel.rules.spec_view import SpecView

BEFORE: Key[tuple[Pair, ...]] = Key("before", parse_pairs, (), shapes.PAIRS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(BEFORE)), read, trajectory, spec, order="issue")


def read(clause: Pair, lens: Lens) -> Reading:
    """One break per thing that the calls are about, on its first b. The a of a lone b may just not have been seen."""
    wanted = list(lens.accused(clause.then, clause.same.then))
    reading = Reading(activated=bool(wanted))
    if clause.first == clause.then:
        return reading
    calls_of_a = list(lens.clearing(clause.first, clause.same.first))
    all_one = not clause.same.then and not clause.within.bounded
    if all_one and wanted and calls_of_a and _precedes(lens.order, calls_of_a[0].step, wanted[0].step):
        return reading  # kept, as nearly always; half the cost of the clause
    earlier = ByAbout(lens.order, calls_of_a)
    firsts = _Firsts(clause, lens)
    for b in wanted:
        if not firsts.is_first(b):
            if all_one:
                break  # nor is any later b
            continue
        a = earlier.latest(b.step, b.about)
        if a is None or not clause.within.holds(lens.order, a, b.step):
            reading.found.append(_broken(clause, lens, b, calls_of_a))
    return reading


def _precedes(order: Order, a: int, b: int) -> bool:
    return a < b and order.ended[a] <= order.issued[b]


class _Firsts:
    """Which b is the first about its thing. With `within` a later b can break what an earlier one kept, so that there
    it matters also which calls only may be a b: trusting, they come first; doubting, they do not."""

    __slots__ = ("_doubting", "_maybe", "_started", "_unknown")

    def __init__(self, clause: Pair, lens: Lens) -> None:
        self._started: set[About] = set()
        self._doubting = clause.within.bounded and lens.doubting
        self._maybe: dict[About, int] = {}
        self._unknown = len(lens.trajectory.steps)
        if clause.within.bounded and not lens.doubting:
            for hit in lens.clearing(clause.then, clause.same.then):
                if hit.about is None:
                    self._unknown = min(self._unknown, hit.step)
                else:
                    self._maybe.setdefault(hit.about, hit.step)

    def is_first(self, b: Hit) -> bool:
        if b.about is None or self._doubting:
            return True
        if b.about in self._started or min(self._unknown, self._maybe.get(b.about, b.step)) < b.step:
            return False
        self._started.add(b.about)
        return True


def _broken(clause: Pair, lens: Lens, b: Hit, calls_of_a: list[Hit]) -> Found:
    refused = call(lens.trajectory, b.step)
    others = [a.step for a in calls_of_a if a.about == b.about][:1]
    if not others:
        return Found(b.step, f"{refused} was called without {clause.first}", open=True)
    first = call(lens.trajectory, others[0])
    if others[0] < b.step and clause.within.bounded:
        return Found(b.step, f"{refused} did not come {clause.within} of {first}", tuple(others))
    return Found(b.step, f"{refused} did not wait for {first}", tuple(others))


RULE = Rule(
    "before",
    Severity.HARD,
    (BEFORE,),
    evaluate,
    mend="let the later tool refuse until the earlier one was called",
)
