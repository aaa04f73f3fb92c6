"""Results that were made to be expensive: a megabyte is read in one pass, or the run is said to be too large."""

from __future__ import annotations

import json
from time import process_time

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import TokenEngine

MEGABYTE = 1_000_000
# CPU seconds; a pass takes 0.02 to 0.5, and what is not one pass takes minutes.
BOUND = 3.0
VALUE = " ops@evil.example "
POLICY = Policy(("read_page",), ("act",))


def judged(text: str, args: dict[str, object]) -> tuple[int, Gap | None]:
    """How many taint findings, and why not; within BOUND."""
    steps = (Step("read_page", {"topic": "kettle"}, True, text, 0.0), Step("act", args, True, "done", 1.0))
    trajectory = Trajectory(steps=steps, turns=(Turn("Please read it."),))
    start = process_time()
    engine = TokenEngine()
    engine.ground(trajectory, POLICY)
    outcome = engine.taint(trajectory, POLICY)
    assert process_time() - start < BOUND
    return len(outcome.violations), outcome.gap


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "1",
        " ",
        "\n",
        "\n ",
        "- ",
        "{a:",
        "a:",
        "<a ",
        "&#64;",
        "%41",
        "\\",
        "a@",
        "a.",
        "12 34 ",
        "\u200b",
        "\ufdfa",
    ],
)
def test_one_piece_repeated(unit: str) -> None:
    assert judged(unit * (MEGABYTE // len(unit)) + VALUE, {"to": VALUE.strip()}) == (1, None)


@pytest.mark.parametrize(
    ("head", "unit"),
    [("[", "a "), ("Issue(a=", "b "), ("{", "a:"), ("{", "="), ('["', "'"), ("['", "a' '"), ("k: 'v\n", "x\n")],
)
def test_a_value_that_never_ends(head: str, unit: str) -> None:
    assert judged(head + unit * (MEGABYTE // len(unit)) + VALUE, {"to": VALUE.strip()}) == (1, None)


def test_attribute_names_without_a_value() -> None:
    assert judged(f"<a {'-' * 3900}>" * (MEGABYTE // 3904) + VALUE, {"to": VALUE.strip()}) == (1, None)


def test_deep_json() -> None:
    assert judged("[" * 100_000 + VALUE + "]" * 100_000, {"to": VALUE.strip()}) == (1, None)
    assert judged("[" * 900 + json.dumps(VALUE) + "]" * 900, {"to": VALUE.strip()}) == (1, None)


def test_many_ids_in_one_large_text_are_too_large() -> None:
    ids = [f"W{4471902 + n}" for n in range(5000)]
    text = f"<p>{' '.join(ids)}{' x' * (MEGABYTE // 2)}</p>"
    assert judged(text, {"order_id": ids}) == (0, Gap.TOO_LARGE)


def test_many_values_against_many_encoded_ones() -> None:
    same = "b3BzQGV2aWwuZXhhbXBsZQ== " * 40_000
    assert judged(same, {"to": [f"o{n}ps@evil.example" for n in range(2000)]}) == (0, None)
