"""`next`: pairs [a, b]; the very next call after a is b."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import inf

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
from luckrate_otel.rules.same import About
from luckrate_otel.rules.spec_view import SpecView

NEXT: Key[tuple[Pair, ...]] = Key("next", parse_pairs, (), shapes.PAIRS, each_item)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    return judge((RULE.id, RULE.severity), numbered(RULE.id, spec.get(NEXT)), read, trajectory, spec)


def read(clause: Pair, lens: Lens) -> Reading:
    """One break per a. Of calls that overlap and follow a side by side, any may be the next."""
    order, count = lens.order, len(lens.trajectory.steps)
    accused = {hit.step: hit for hit in lens.accused(clause.first, clause.same.first)}
    answers = {hit.step: hit for hit in lens.clearing(clause.then, clause.same.then)}
    running: list[tuple[float, int]] = []  # a's that may still be going on: (ended, step), a heap
    turn = _Turn()
    broken: dict[int, Found] = {}
    for step in range(count):
        broken.update((a, _broken(clause, lens, a)) for a in turn.expire(order.issued[step]))
        while running and running[0][0] <= order.issued[step]:
            a = heappop(running)[1]
            turn.open(a, accused[a].about)
        if step in answers:
            met = turn.answer(answers[step].about)
            # One that is too far off now is no nearer to any later call.
            broken.update((a, _broken(clause, lens, a)) for a in met if not clause.within.holds(order, a, step))
        turn.limit(order.ended[step])
        if step in accused:
            heappush(running, (order.ended[step], step))
    # One that came in its place, and that nothing can come beside any more, decides it now.
    broken.update((a, _broken(clause, lens, a)) for a in turn.expire(-inf))
    for a in (*turn.waiting(), *(a for _, a in running)):
        broken[a] = _broken(clause, lens, a, still_open=clause.within.holds(order, a, count - 1))
    return Reading([broken[a] for a in sorted(broken)], activated=bool(accused))


class _Turn:
    """The a's whose next call is due, each until the first of the calls that followed it has ended.

    Those that became due earlier have seen all that the later ones have, so that their ends are never later: groups of
    one end each, in order of their ends. What is the same is merged, so that every a is moved O(log n) times.
    """

    __slots__ = ("_by_about", "_groups")

    def __init__(self) -> None:
        self._groups: deque[tuple[float, list[tuple[int, About | None]]]] = deque()
        self._by_about: dict[About | None, dict[int, None]] = {}

    def open(self, a: int, about: About | None) -> None:
        self._by_about.setdefault(about, {})[a] = None
        self._groups.append((inf, [(a, about)]))

    def expire(self, at: float) -> list[int]:
        """Those whose time has passed."""
        passed: list[int] = []
        while self._groups and self._groups[0][0] <= at:
            for a, about in self._groups.popleft()[1]:
                if a in self._by_about.get(about, ()):
                    del self._by_about[about][a]
                    passed.append(a)
        return passed

    def answer(self, about: About | None) -> list[int]:
        """Those that a call about this answers; one that may be about anything answers all that are about something."""
        abouts = [known for known in self._by_about if known is not None] if about is None else [about]
        return [a for known in abouts for a in self._by_about.pop(known, {})]

    def limit(self, ended: float) -> None:
        """A call has followed that ends then."""
        merged: list[tuple[int, About | None]] = []
        while self._groups and self._groups[-1][0] >= ended:
            other = self._groups.pop()[1]
            if len(other) > len(merged):
                merged, other = other, merged
            merged.extend(other)
        if merged:
            self._groups.append((ended, merged))

    def waiting(self) -> list[int]:
        return [a for some in self._by_about.values() for a in some]


def _broken(clause: Pair, lens: Lens, a: int, *, still_open: bool = False) -> Found:
    near = f" {clause.within}" if clause.within.bounded else ""
    return Found(a, f"the call after {call(lens.trajectory, a)} was not {clause.then}{near}", open=still_open)


RULE = Rule(
    "next",
    Severity.HARD,
    (NEXT,),
    evaluate,
    mend="let the agent make the second call directly after the first",
)
