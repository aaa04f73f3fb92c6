"""Small changes to a good run, as an agent's slip would make them: what a spec is worth is how many it catches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.telemetry import Value

# An identifier of the usual look that no run holds.
INVENTED = "ZQ-4471-XK"

KINDS = ("drop", "duplicate", "swap", "alter")


@dataclass(frozen=True, slots=True)
class Mutant:
    """kind: drop a call, duplicate it, swap it with the next, or alter an argument. step: in the original run."""

    kind: str
    step: int
    trajectory: Trajectory


def mutants(run: Trajectory) -> Iterator[Mutant]:
    """Every mutant of a run, step by step. A swap of equal calls, or of calls that overlap, changes nothing."""
    count = len(run.steps)
    for i, step in enumerate(run.steps):
        yield Mutant("drop", i, _arranged(run, [k for k in range(count) if k != i]))
        yield Mutant("duplicate", i, _arranged(run, [k for k in range(count) for _ in range(2 if k == i else 1)]))
        if i + 1 < count and _apart(step, run.steps[i + 1]):
            order = [*range(i), i + 1, i, *range(i + 2, count)]
            yield Mutant("swap", i, _arranged(run, order))
        args = _altered(step.args)
        if args is not None:
            changed = (*run.steps[:i], replace(step, args=args), *run.steps[i + 1 :])
            yield Mutant("alter", i, replace(run, steps=changed))


def _apart(one: Step, other: Step) -> bool:
    same = (one.tool, one.args) == (other.tool, other.args)
    overlap = one.duration is not None and one.t + one.duration > other.t
    return not same and not overlap


def _arranged(run: Trajectory, order: Sequence[int]) -> Trajectory:
    """The run with these of its steps, one after the other: each starts when the one before it has ended."""
    at = 0.0
    made: list[Step] = []
    for index in order:
        step = run.steps[index]
        start = max(at, step.t) if made else min(step.t, run.steps[0].t)
        made.append(replace(step, t=start))
        at = start + (step.duration or 0.0)
    places = {old: new for new, old in reversed(list(enumerate(order)))}
    gaps = {(new, part): run.gaps[old, part] for new, old in enumerate(order) for o, part in run.gaps if o == old}
    turns = tuple(Turn(turn.text, _moved(turn.before_step, places, len(order))) for turn in run.turns)
    return replace(run, steps=tuple(made), gaps=gaps, turns=turns, call_ids=())


def _moved(before_step: int, places: Mapping[int, int], count: int) -> int:
    """A turn stays before the first of the steps that it stood before."""
    return min((new for old, new in places.items() if old >= before_step), default=count)


def _altered(args: Mapping[str, Value] | None) -> Mapping[str, Value] | None:
    """One argument made up, the first text or number by name; None if there is none."""
    for key in sorted(args or {}, key=str):
        value = (args or {})[key]
        if isinstance(value, str) and value:
            return {**(args or {}), key: INVENTED}
        if isinstance(value, int | float) and not isinstance(value, bool):
            return {**(args or {}), key: value * 10 + 7}
    return None
