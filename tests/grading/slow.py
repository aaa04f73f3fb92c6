"""The order rules by their definitions, step against step, without any thought of speed.

Each answers the steps that break a clause, None standing for the run, with whether they are open: broken only by what
did not happen. Runs hold no gaps here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from math import inf
from typing import Any

from luckrate_otel.model import Step

Broken = set[tuple[int | None, bool]]
Call = Callable[[Step], bool]


@dataclass(frozen=True)
class Clause:
    """As written: first and then are a tool, or a tool with the least amount that counts."""

    first: str | tuple[str, int]
    then: str | tuple[str, int]
    same: bool = False
    steps: int | None = None
    seconds: int | None = None

    def mapping(self) -> Mapping[str, Any]:
        written: dict[str, Any] = {"first": calls(self.first), "then": calls(self.then)}
        if self.same:
            written["same"] = "id"
        if self.steps is not None:
            written["within"] = f"{self.steps} steps"
        elif self.seconds is not None:
            written["within"] = self.seconds
        return written


def calls(wanted: str | tuple[str, int]) -> Any:
    return wanted if isinstance(wanted, str) else {"tool": wanted[0], "where": {"amount": {"ge": wanted[1]}}}


@dataclass(frozen=True)
class Run:
    """A run with the relations its clauses are made of."""

    steps: tuple[Step, ...]
    overlap: bool
    clause: Clause

    def all(self, wanted: str | tuple[str, int]) -> list[int]:
        return [i for i, step in enumerate(self.steps) if self.is_a(i, wanted)]

    def is_a(self, i: int, wanted: str | tuple[str, int]) -> bool:
        tool, least = (wanted, -inf) if isinstance(wanted, str) else wanted
        step = self.steps[i]
        assert step.args is not None
        return step.tool == tool and (least == -inf or step.args.get("amount", -inf) >= least)

    def precedes(self, a: int, b: int) -> bool:
        lasted = self.steps[a].duration
        return a < b and (not self.overlap or lasted is None or self.steps[a].t + lasted <= self.steps[b].t)

    def same(self, a: int, b: int) -> bool:
        one, other = self.steps[a].args, self.steps[b].args
        assert one is not None
        assert other is not None
        return not self.clause.same or one.get("id") == other.get("id")

    def near(self, a: int, b: int) -> bool:
        if self.clause.steps is not None:
            return b - a <= self.clause.steps
        return self.clause.seconds is None or self.steps[b].t - self.steps[a].t <= self.clause.seconds * 1000

    @property
    def last(self) -> int:
        return len(self.steps) - 1


def before(run: Run) -> Broken:
    """The first b about each thing has an a about it before it."""
    if run.clause.first == run.clause.then:
        return set()
    bs = run.all(run.clause.then)
    as_ = run.all(run.clause.first)
    firsts = [b for b in bs if not any(other < b and run.same(other, b) for other in bs)]
    return {
        (b, not any(run.same(a, b) for a in as_))
        for b in firsts
        if not any(run.precedes(a, b) and run.same(a, b) and run.near(a, b) for a in as_)
    }


def leads_to(run: Run) -> Broken:
    """Every a has a b after it."""
    bs = run.all(run.clause.then)
    return {
        (a, run.near(a, run.last) and not any(run.precedes(a, b) and run.same(a, b) for b in bs))
        for a in run.all(run.clause.first)
        if not any(run.precedes(a, b) and run.same(a, b) and run.near(a, b) for b in bs)
    }


def next_call(run: Run) -> Broken:
    """One of the calls that follow a with none in between is a b."""
    broken: Broken = set()
    for a in run.all(run.clause.first):
        after = [k for k in range(len(run.steps)) if run.precedes(a, k)]
        following = [k for k in after if not any(run.precedes(m, k) for m in after)]
        if any(run.is_a(k, run.clause.then) and run.same(a, k) and run.near(a, k) for k in following):
            continue
        passed = any(run.precedes(m, k) for m in after for k in after)
        instant = bool(after) and (not run.overlap or any(run.steps[m].duration is None for m in after))
        broken.add((a, not passed and not instant and run.near(a, run.last)))
    return broken


def not_after(run: Run) -> Broken:
    """No b comes after an a."""
    as_ = run.all(run.clause.first)
    return {
        (b, False)
        for b in run.all(run.clause.then)
        if any(run.precedes(a, b) and run.same(a, b) and run.near(a, b) for a in as_)
    }


def not_both(run: Run) -> Broken:
    """No call of one kind has one of the other before it."""
    pairs = [(run.clause.first, run.clause.then), (run.clause.then, run.clause.first)]
    return {
        (b, False)
        for one, other in pairs
        for b in run.all(one)
        if any(a < b and run.same(a, b) and run.near(a, b) for a in run.all(other))
    }


def each_before(run: Run) -> Broken:
    """Every b, in order, takes the first a that precedes it and was not taken yet."""
    left = run.all(run.clause.first)
    broken: Broken = set()
    for b in run.all(run.clause.then):
        able = [a for a in left if run.precedes(a, b) and run.same(a, b) and run.near(a, b)]
        if able:
            left.remove(able[0])
        else:
            broken.add((b, True))
    return broken


def orders(run: Run) -> list[tuple[int, ...]]:
    """Every order of the calls that keeps those apart that do not overlap."""
    count = range(len(run.steps))
    return [
        order
        for order in permutations(count)
        if not any(run.precedes(order[j], order[i]) for i in count for j in count if i < j)
    ]


def sequence(run: Run, kind: str, wanted: tuple[str, ...]) -> bool:
    """Whether some such order begins with, ends with or is what was wanted."""
    names = [tuple(run.steps[i].tool for i in order) for order in orders(run)]
    size = len(wanted)
    if kind == "exactly":
        return wanted in names
    return any(wanted == (each[:size] if kind == "starts_with" else each[len(each) - size :]) for each in names)


REFERENCES: Mapping[str, Callable[[Run], Broken]] = {
    "before": before,
    "leads_to": leads_to,
    "next": next_call,
    "not_after": not_after,
    "not_both": not_both,
    "each_before": each_before,
}
