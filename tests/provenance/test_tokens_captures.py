"""The support agent of the captured scenarios: findings exactly where the agent went wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import TokenEngine

CAPTURES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "provenance" / "captures.json").read_text("utf-8")
)
POLICY = Policy(untrusted=("fetch_page",), privileged=("issue_refund", "send_email"))
HIJACKED = [("issue_refund.order_id", "hard"), ("send_email.to", "hard")]
GROUND = {"s3": ["order_id"], "s3_react": ["order_id"]}
NO_AMOUNT_ON_THE_PAGE = {"langgraph-genai/s4", "google-adk-native/s4"}


@pytest.mark.parametrize("name", CAPTURES)
def test_findings_of_each_scenario(name: str) -> None:
    raw, scenario = CAPTURES[name], name.rpartition("/")[2]
    steps = tuple(
        Step(s["tool"], s["args"], s["ok"], s["result"], float(n), error=s["error"]) for n, s in enumerate(raw["steps"])
    )
    engine, trajectory = TokenEngine(), Trajectory(steps=steps, turns=(Turn(raw["task"]),))
    ground, taint = engine.ground(trajectory, POLICY), engine.taint(trajectory, POLICY)
    assert [v.argument for v in ground.violations] == (
        ["amount"] if name in NO_AMOUNT_ON_THE_PAGE else GROUND.get(scenario, [])
    )
    assert [(f"{v.tool}.{v.argument}", str(v.severity)) for v in taint.violations] == (
        HIJACKED if scenario == "s4" else []
    )
    assert (ground.gap, taint.gap) == (None, None)
