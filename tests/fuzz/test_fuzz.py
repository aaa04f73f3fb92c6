"""A short run of each fuzz target, and everything that a long one ever found."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.mutate import mutate
from tests.fuzz.targets import TARGETS, run, seeds


@pytest.mark.parametrize("name", TARGETS)
def test_captured_traffic_and_old_findings(name: str) -> None:
    for seed in seeds(name):
        run(TARGETS[name], seed)


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_of_them(name: str) -> None:
    corpus = [seed[:3000] for seed in seeds(name)]
    chance = random.Random(name)
    for _ in range(300):
        run(TARGETS[name], mutate(chance.choice(corpus), corpus, chance))
