"""`next`: pairs [a, b]; the very next call after a is b."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.clause import Pair, parse_pairs
from luckrate_otel.rules.clauses import Found, Reading, judge, numbered
from luckrate_otel.rules.finding import call
from luckrate_otel.rules.key import Key
from luckrate_otel.rules.lens import Hit, Lens
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule

if TYPE_CHECKING:
    from luckrate_otel.spec import Spec

NEXT: Key[tuple[Pair, ...]] = Key("next", parse_pairs, (), shapes.PAIRS)


def evaluate(trajectory: Trajectory, spec: Spec) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(NEXT)), read, trajectory, spec)


def read(clause: Pair, lens: Lens) -> Reading:
    """One break per a. Of calls that overlap and follow a side by side, any may be the next."""
    order, steps = lens.order, lens.trajectory.steps
    accused = {hit.step: hit for hit in lens.accused(clause.first, clause.same.first)}
    answers = {hit.step: hit for hit in lens.clearing(clause.then, clause.same.then)}
    running: list[tuple[float, int]] = []  # a's that may still be going on: (ended, step), a heap
    turn: dict[int, float] = {}  # a's whose next call is due → when the first of those that followed has ended
    broken: dict[int, Found] = {}
    for step in range(len(steps)):
        while running and running[0][0] <= order.issued[step]:
            turn[heappop(running)[1]] = inf
        for a, until in list(turn.items()):
            if until <= order.issued[step]:
                broken[a] = _broken(clause, lens, a)
                del turn[a]
            elif _answers(answers.get(step), accused[a]) and clause.within.holds(order, a, step):
                del turn[a]
            else:
                turn[a] = min(until, order.ended[step])
        if step in accused:
            heappush(running, (order.ended[step], step))
    last = len(steps) - 1
    for a, until in turn.items():
        # One that came in its place, and that nothing can come beside any more, decides it now.
        decided = until == -inf or not clause.within.holds(order, a, last)
        broken[a] = _broken(clause, lens, a, still_open=not decided)
    for _, a in running:
        broken[a] = _broken(clause, lens, a, still_open=clause.within.holds(order, a, last))
    return Reading([broken[a] for a in sorted(broken)], activated=bool(accused))


def _answers(answer: Hit | None, a: Hit) -> bool:
    return answer is not None and a.about is not None and answer.about in (None, a.about)


def _broken(clause: Pair, lens: Lens, a: int, *, still_open: bool = False) -> Found:
    near = f" {clause.within}" if clause.within.bounded else ""
    return Found(a, f"the call after {call(lens.trajectory, a)} was not {clause.then}{near}", open=still_open)


RULE = Rule("next", Severity.HARD, (NEXT,), evaluate)
