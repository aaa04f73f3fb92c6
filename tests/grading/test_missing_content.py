"""Unknown is not OK, by brute force: what was not captured is filled in with everything it may have been.

A rule is violated only if it is for every filling, and satisfied only if it is for every filling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest

from luckrate_otel import Spec, Step
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.table import RULES

LARGE = {"tool": "a", "where": {"o": 1}}
PAIRS: tuple[dict[str, Any], ...] = (
    {"first": "a", "then": "b", "same": "o"},
    {"first": LARGE, "then": "b"},
    {"first": "a", "then": {"tool": "b", "where": {"o": 1}}, "same": "o", "within": "2 steps"},
    {"first": {"tool": "a", "where": {"ok": True}}, "then": "b"},
    {"first": "a", "then": "a", "same": "o"},
)
RULES_OF_PAIRS = ("before", "each_before", "leads_to", "next", "not_after", "not_both")
SPECS: tuple[dict[str, Any], ...] = (
    *({key: [pair]} for key in RULES_OF_PAIRS for pair in PAIRS),
    {"any_of": [{"calls": ["a"], "before": "b", "same": "o"}]},
    {"any_of": [[LARGE, "c"]]},
    {"max_calls": {"a": {"max": 1, "same": "o"}}},
    {"max_calls": {"a": {"max": 1, "where": {"o": 1}}}},
    {"max_retries": 0},
    {"max_retries": 1},
    {"max_retries": {"times": 0, "then": "b"}},
    {"no_repeat": True},
    {"starts_with": [LARGE, "b"]},
    {"ends_with": ["b", LARGE]},
    {"exactly": [LARGE, "b"]},
    {"relations": ["b.p <= a.p"]},
    {"relations": [{"that": "b.p <= a.p", "same": "o"}]},
)
ARGUMENTS: tuple[dict[str, Any], ...] = ({}, *({"o": o, "p": p} for o in (1, 2, 3) for p in (1, 2)))


def run(random: Random) -> list[Step]:
    """One to five calls, one or two of them without arguments, or of unknown success."""
    steps: list[Step] = []
    for _ in range(random.randint(1, 5)):
        at = (steps[-1].t if steps else 0.0) + random.choice((0, 1, 2))
        args = {"o": random.choice((1, 2)), "p": random.choice((1, 2))}
        duration = random.choice((None, 0.0, 1.0, 3.0))
        steps.append(Step(random.choice("aabbc"), args, random.choice((True, False)), "r", at, duration=duration))
    for index in random.sample(range(len(steps)), min(len(steps), random.randint(1, 2))):
        if random.random() < 0.7:
            steps[index] = replace(steps[index], args=None)
        else:
            steps[index] = replace(steps[index], ok=None, error=random.choice((None, "no_return")))
    return steps


def fillings(steps: list[Step]) -> Iterator[tuple[Step, ...]]:
    options = [
        [replace(step, args=args) for args in ARGUMENTS]
        if step.args is None
        else [replace(step, ok=ok, error=None) for ok in (True, False)]
        if step.ok is None
        else [step]
        for step in steps
    ]
    return product(*options)


def state(spec: Spec, steps: tuple[Step, ...]) -> str:
    (rule,) = spec.values
    outcome = RULES[rule].evaluate(Trajectory(steps), spec)
    return "violated" if outcome.violations else "not evaluated" if outcome.gap else "kept"


@pytest.mark.parametrize("mapping", SPECS, ids=str)
def test_what_is_said_holds_whatever_was_not_captured(mapping: dict[str, Any]) -> None:
    spec, random = Spec.from_mapping(mapping), Random(str(mapping))
    for _ in range(120):
        steps = run(random)
        said = state(spec, tuple(steps))
        if said == "not evaluated":
            continue
        for filled in fillings(steps):
            assert state(spec, filled) in {said, "not evaluated"}, (steps, filled)
