"""Runs of a public benchmark (tests/data/tau): what shops ask of their agents can be said, and is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel import Step, Turn, check, luck_rate
from luckrate_otel.model import Trajectory

FILE = Path(__file__).parents[1] / "data" / "tau" / "retail.jsonl"
RUNS: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]

EXCHANGE = "exchange_delivered_order_items"
WRITES = [
    "cancel_pending_order",
    "modify_pending_order_items",
    "modify_pending_order_address",
    "modify_pending_order_payment",
    EXCHANGE,
    "return_delivered_order_items",
]
EITHER = {"calls": ["find_user_id_by_email", "find_user_id_by_name_zip"], "before": WRITES}
SAME_ORDER = {"first": "get_order_details", "then": WRITES, "same": "order_id"}


def trajectory(run: dict[str, Any]) -> Trajectory:
    """Every user turn is input, from the moment on that it was said."""
    steps = tuple(Step(s["tool"], s["args"], s["ok"], s["result"], float(i)) for i, s in enumerate(run["steps"]))
    said = [sum(s["user_turns_before"] <= n for s in run["steps"]) for n in range(len(run["messages_user"]))]
    turns = tuple(Turn(text, at) for text, at in zip(run["messages_user"], said, strict=True))
    return Trajectory(steps, turns)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"any_of": [EITHER]}, [[], [], []]),
        (
            {"any_of": [{**EITHER, "calls": ["find_user_id_by_email"]}]},
            [
                ["any_of[0]: cancel_pending_order (step 3) was called without find_user_id_by_email before it"],
                [],
                [
                    f"any_of[0]: {EXCHANGE} (step 6) was called without find_user_id_by_email before it",
                    f"any_of[0]: {EXCHANGE} (step 7) was called without find_user_id_by_email before it",
                ],
            ],
        ),
        ({"before": [("get_order_details", write) for write in WRITES]}, [[], [], []]),
        (
            {"before": [SAME_ORDER]},
            [
                [],
                ["before[0]: exchange_delivered_order_items (step 7) did not wait for get_order_details (step 8)"],
                ["before[0]: exchange_delivered_order_items (step 6) was called without get_order_details"],
            ],
        ),
    ],
)
def test_look_ups_before_writes(spec: dict[str, Any], found: list[list[str]]) -> None:
    verdicts = [check(trajectory(run), {**spec, "ground": False}, output_ok=run["utility"]) for run in RUNS]
    assert [[v.message for v in verdict.violations] for verdict in verdicts] == found


def test_the_luck_rate_counts_every_user_turn_as_input() -> None:
    """The two lucky-looking runs failed their task; of those that did it, none was lucky."""
    spec = {"before": [SAME_ORDER], "no_repeat": True}
    rate = luck_rate(check(trajectory(run), spec, output_ok=run["utility"]) for run in RUNS)
    assert (rate.lucky, rate.green, rate.runs) == (0, 1, 3)
