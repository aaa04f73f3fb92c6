"""Runs with one identifier made up: same shape, other digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks.provenance.corpus import Recorded
from benchmarks.provenance.engines import leaves
from luckrate_otel.model import Trajectory

PER_RUN = 3
_SHAPE = re.compile(r"[#\w.@:/+-]{3,60}")
_DATE_OR_TIME = re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}:\d\d.*")


def fabricated(run: Recorded, seed: int) -> Iterator[tuple[Trajectory, int]]:
    """Up to PER_RUN copies of a run, one identifier replaced in each, and the step it is in. Repeatable."""
    random = Random(f"{seed}:{run.id}")  # noqa: S311 - a repeatable choice, no secret
    known = " ".join([*(turn.text for turn in run.trajectory.turns), *(s.result or "" for s in run.trajectory.steps)])
    places = [
        (number, path, value)
        for number, step in enumerate(run.trajectory.steps)
        for path, value in leaves(step.args or {})
        if isinstance(value, str) and _SHAPE.fullmatch(value) and _is_id(value)
    ]
    for number, path, value in random.sample(places, min(PER_RUN, len(places))):
        made_up = _scramble(value, random)
        if made_up != value and made_up not in known:
            yield _with(run.trajectory, number, path, made_up), number


def _is_id(value: str) -> bool:
    return (sum(map(str.isdigit, value)) > 1 or "@" in value) and not _DATE_OR_TIME.fullmatch(value)


def _scramble(value: str, random: Random) -> str:
    if any(map(str.isdigit, value)):
        return "".join(random.choice("0123456789") if char.isdigit() else char for char in value)
    return "".join(random.choice("abcdefghijklmnopqrstuvwxyz") if char.isalpha() else char for char in value)


def _with(trajectory: Trajectory, number: int, path: tuple[Any, ...], value: str) -> Trajectory:
    steps = list(trajectory.steps)
    steps[number] = replace(steps[number], args=_put(steps[number].args, path, value))
    return replace(trajectory, steps=tuple(steps))


def _put(node: Any, path: tuple[Any, ...], value: str) -> Any:
    if not path:
        return value
    copy = dict(node) if isinstance(node, dict) else list(node)
    copy[path[0]] = _put(node[path[0]], path[1:], value)
    return copy
