"""Which tool calls are handoffs, and to whom."""

from __future__ import annotations

import pytest

from luckrate_otel.runs import partition
from luckrate_otel.runs.handoffs import handoffs_of, same_name, target_of
from tests.making import agent, asks, links, model, tool


@pytest.mark.parametrize(
    ("name", "args", "target"),
    [
        ("transfer_to_billing_agent", None, "billingagent"),
        ("transfer-to-Billing Agent", {}, "billingagent"),
        ("transferto_x", None, "x"),
        ("transfer_back_to_supervisor", None, "supervisor"),
        ("handoff to X", None, "x"),
        ("hand_off_to_x", None, "x"),
        ("handoff_to_agent", {"agent_name": "Billing"}, "billing"),
        ("transfer_to_agent", {"agent": "b", "message": "m"}, "b"),
        ("transfer_to_agent", {"agent_name": 3}, ""),
        ("transfer_to_agent", None, ""),
        ("transfer_funds", None, "funds"),
        ("transfer", None, None),
        ("handoff", None, None),
        ("lookup_order", {"agent_name": "x"}, None),
        ("do_transfer_to_x", None, None),
        ("", None, None),
    ],
)
def test_target_of(name: str, args: dict[str, object] | None, target: str | None) -> None:
    assert target_of(name, args) == target


def test_handoffs_of_each_kind_of_span() -> None:
    assert handoffs_of(tool("a", tool="transfer_to_x")) == ("x",)
    assert handoffs_of(tool("a", tool=None)) == ()
    assert handoffs_of(tool("a", tool="transfer_to_x", handoff="Y")) == ("y",)
    assert handoffs_of(model("a", outputs=(asks("lookup", "transfer_to_x"),), inputs=(asks("transfer_to_old"),))) == (
        "x",
    )
    assert handoffs_of(agent("a")) == ()


def test_names_are_the_same_whatever_a_tool_name_cannot_carry() -> None:
    assert same_name("Billing Agent") == same_name("billing_agent") == "billingagent"
    assert same_name("Größe-2") == "grösse2"


def test_a_long_chain_of_handoffs_is_one_run_led_by_the_first_agent() -> None:
    length = 40
    facts = []
    for i in range(1, length):
        facts.append(agent(f"{i:x}", "fff", 10 * i, 10 * i + 9, agent=f"agent {i}"))
        facts.append(tool(f"a{i:x}", f"{i:x}", 10 * i + 5, tool=f"transfer_to_agent_{i + 1}"))
    (run,) = partition(facts, links(fff=""))
    assert run.root == facts[0]
    assert run.facts == tuple(facts)
