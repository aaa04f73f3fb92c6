"""`ground`: every form that explains a value, and the nearest value that stays invented."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from luckrate_otel.facts import Gap, ToolDefinition
from luckrate_otel.model import History, Severity, Step, Trajectory, Turn, Violation
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import TokenEngine
from luckrate_otel.rules.outcome import Outcome


def run(args: dict[str, Any], *, user: str = "Please help.", result: str = "nothing here", **more: Any) -> Trajectory:
    steps = (Step("look", {}, True, result, 0.0), Step("act", args, True, "done", 1.0, span="b" * 16))
    return Trajectory(steps=steps, turns=(Turn(user),), **more)


def warned(trajectory: Trajectory) -> list[str | None]:
    return [violation.argument for violation in TokenEngine().ground(trajectory, Policy()).violations]


GIVEN = [
    # (form, argument, the text that gives it, an argument that it does not give)
    ("same", {"order_id": "88213"}, "order 88213", {"order_id": "88214"}),
    ("whole words", {"order_id": "200"}, "total 200", {"order_id": "20"}),
    ("case", {"order_id": "ord-7K2"}, "ORD-7K2", {"order_id": "ord-7K3"}),
    ("separators", {"order_id": "ORD_7K2"}, "ord 7k2", {"order_id": "ORD_7K"}),
    ("hash", {"order_id": "#W4471902"}, "W4471902", {"order_id": "#W4471903"}),
    ("prefix and id", {"id": "order-4471902"}, "4471902", {"id": "order-4471903"}),
    ("known words and id", {"id": "credit_card_56342"}, "credit card, gift_card_56342", {"id": "credit_card_56343"}),
    ("number", {"amount": 1250.5}, "1,250.50", {"amount": 1250.51}),
    ("number as text", {"amount": "1250.50"}, "1.250,50", {"amount": "1251.50"}),
    ("number with unit", {"amount": "250 USD"}, "250", {"amount": "251 USD"}),
    ("email", {"to": "Ann.Lee@Shop.Example"}, "<ann.lee@shop.example>", {"to": "ann.lee@shop.sample"}),
    ("email spelled out", {"to": "ann@shop.example"}, "ann at shop dot example", {"to": "ann@shop.sample"}),
    ("name and domain", {"to": "ann.lee@shop.example"}, "Ann Lee, info@shop.example", {"to": "ann.leo@shop.example"}),
    ("one word and domain", {"to": "ann.lee@shop.example"}, "Ann Lee, info@shop.example", {"to": "ann@shop.example"}),
    ("names apart", {"to": "ann.lee@a.example"}, "first: Ann, last: Lee, x@a.example", {"to": "bo.lee@a.example"}),
    ("two ids", {"ref": "AB12-CD34"}, "AB12 and then CD34", {"ref": "AB12-CD35"}),
    ("count", {"amount": 130}, json.dumps([{"on": True}] * 130), {"amount": 131}),
    (
        "list of addresses",
        {"to": "a@x.example;b@x.example"},
        "b@x.example a@x.example",
        {"to": "a@x.example,c@x.example"},
    ),
    ("phone with slash", {"phone": "01705550199"}, "0170/555-0199", {"phone": "01705550198"}),
    ("mailto", {"to": "mailto:ann@shop.example"}, "ann@shop.example", {"to": "mailto:bob@shop.example"}),
    ("URL", {"url": "https://shop.example/a%20b/"}, "www.shop.example/a b", {"url": "https://shop2.example/a"}),
    (
        "URL joined",
        {"url": "https://shop.example/orders/8821"},
        "shop.example, 8821",
        {"url": "https://shop.example/orders/8822"},
    ),
    ("path joined", {"path": "/tmp/report_8821.pdf"}, "report 8821", {"path": "/tmp/report_8822.pdf"}),
    ("phone", {"phone": "+491705550199"}, "+49 (170) 555-0199", {"phone": "+491705550198"}),
    ("account", {"iban": "DE89370400440532013000"}, "DE89 3704 0044 0532 0130 00", {"iban": "DE89370400440532013001"}),
    ("account ungrouped", {"iban": "DE89 3704 0044 0532"}, "DE89370400440532", {"iban": "DE89 3704 0044 0533"}),
    (
        "base64",
        {"order_id": "W4471902-ABCD"},
        base64.b64encode(b"see W4471902-ABCD").decode(),
        {"order_id": "W4471903-ABCD"},
    ),
    ("hex argument", {"ref": b"W4471902".hex()}, "W4471902", {"ref": b"W4471903".hex()}),
    ("percent escape", {"to": "ann@shop.example"}, "ann%40shop.example", {"to": "ann@shop.sample"}),
    ("JSON escape", {"order_id": "ORD-8821"}, json.dumps({"t": "line\nORD-8821"}), {"order_id": "ORD-8822"}),
    (
        "JSON in JSON",
        {"order_id": "ORD-8821"},
        json.dumps({"t": json.dumps({"x": "é\nORD-8821"})}),
        {"order_id": "ORD-8822"},
    ),
    ("list", {"ids": ["ORD-8821", "ORD-8822"]}, "ORD-8821 ORD-8822", {"ids": ["ORD-8823"]}),
    ("nested", {"a": [{"b": {"order_id": "ORD-8821"}}]}, "ORD-8821", {"a": [{"b": {"order_id": "ORD-8823"}}]}),
    ("sum", {"amount": 350}, "items: 120, 230", {"amount": 352}),
    ("difference", {"amount": 1653.1}, "balance 1810.0, due 156.9", {"amount": 1653.2}),
    ("product", {"amount": 360}, "price 120", {"amount": 361.5}),
    ("share", {"amount": 905}, "balance 1810", {"amount": 906}),
    ("percentage", {"amount": 271.5}, "15 percent of 1810", {"amount": 271.6}),
    ("total", {"amount": 607.5}, "120, 230.5 and 257", {"amount": 607.6}),
    ("mean", {"amount": 202.5}, "120, 230.5 and 257", {"amount": 202.6}),
    ("mail in a JSON list", {"to": "ann@shop.example"}, r"[\"x\nann@shop.example\"]", {"to": "bob@shop.example"}),
]


@pytest.mark.parametrize(
    ("args", "text"), [(args, text) for _, args, text, _ in GIVEN], ids=[name for name, *_ in GIVEN]
)
@pytest.mark.parametrize("place", ["user", "result"])
def test_a_given_value_is_not_an_invention(args: dict[str, Any], text: str, place: str) -> None:
    assert warned(run(args, **{place: text})) == []


@pytest.mark.parametrize(("args", "text"), [(near, text) for *_, text, near in GIVEN], ids=[name for name, *_ in GIVEN])
@pytest.mark.parametrize("place", ["user", "result"])
def test_the_nearest_other_value_is(args: dict[str, Any], text: str, place: str) -> None:
    assert len(warned(run(args, **{place: text}))) == 1


@pytest.mark.parametrize(
    "args",
    [
        {"flag": True, "none": None, "empty": "", "text": "yes"},
        {"limit": 10, "page": 2, "per_page": "50"},
        {"priority": "high", "status": "pending", "city": "New York"},
        {"agent_name": "billing_agent", "coworker": "Order Clerk"},
        {"body": "The invoice 4471 was refunded on our side.", "subject": "Your order"},
        {"when": "2024-05-20", "at": "19:00", "until": "2024-05-20T21:00:00"},
        {"at": "6pm", "slot": "18:00-20:00", "from": "9:30 am"},
        {"duration": "30min", "size": "4K", "floor": "15th", "paper": "A4", "quarter": "Q3"},
        {"path": "/tmp/summary.txt"},
        {"expression": "(12.5 + 30) * 2"},
        {},
    ],
)
def test_vocabulary_prose_dates_and_small_numbers_are_no_inventions(args: dict[str, Any]) -> None:
    assert warned(run(args)) == []


def test_what_a_definition_offers_is_known() -> None:
    schema = {"properties": {"plan": {"enum": ["plan-2024"]}, "size": {"default": 500}, "kind": {"const": "k-77"}}}
    offered = (ToolDefinition("act", schema),)
    assert warned(run({"plan": "plan-2024", "size": 500, "kind": "k-77"}, definitions=offered)) == []
    (missing,) = TokenEngine().ground(run({"plan": "plan-2025"}, definitions=offered), Policy()).violations
    assert missing.message == "act.plan ← nothing (this id is in none of: user, definitions, 1 result)"


def test_the_names_of_agents_and_tools_are_known() -> None:
    steps = (
        Step("hand_over", {"agent_name": "desk_agent_22", "tool": "look_up_v2"}, True, "ok"),
        Step("look", {}, True, "", agent="desk_agent_22"),
    )
    offered = (ToolDefinition("look_up_v2"),)
    assert warned(Trajectory(steps=steps, turns=(Turn("Hi."),), definitions=offered)) == []
    assert warned(Trajectory(steps=steps[:1], turns=(Turn("Hi."),))) == ["agent_name", "tool"]


def test_a_calculation_across_texts_counts_while_numbers_are_few() -> None:
    def asked(others: int) -> list[str | None]:
        listing = " ".join(str(1000 + n) for n in range(others))
        steps = (
            Step("balance", {}, True, f"1810.25 {listing}", 0.0),
            Step("bill", {}, True, "due: 156.9", 1.0),
            Step("pay", {"amount": 1653.35}, True, "ok", 2.0),
        )
        return warned(Trajectory(steps=steps, turns=(Turn("Pay it."),)))

    assert asked(57) == []
    assert asked(59) == ["amount"]


def test_operands_are_looked_for_in_what_was_read_last() -> None:
    def asked(filler: int) -> list[str | None]:
        steps = (
            Step("prices", {}, True, "120 230", 0.0),
            Step("page", {}, True, "x" * filler, 1.0),
            Step("pay", {"amount": 350}, True, "ok", 2.0),
        )
        return warned(Trajectory(steps=steps, turns=(Turn("Pay it."),)))

    assert asked(50_000) == []
    assert asked(60_001) == ["amount"]


def test_a_very_long_number_is_no_calculation() -> None:
    assert warned(run({"amount": 2e28}, user="1e28 and 2", result="10000000000000000000000000000 2")) == ["amount"]


@pytest.mark.parametrize(
    "schema", [{"anyOf": [{"enum": ["plan-77"]}]}, {"properties": {"a": {"description": "such as plan-77"}}}]
)
def test_definitions_are_read_at_any_depth(schema: dict[str, Any]) -> None:
    assert warned(run({"plan": "plan-77"}, definitions=(ToolDefinition("act", schema),))) == []


def test_definitions_nested_beyond_reason_are_too_large() -> None:
    schema: dict[str, Any] = {"enum": ["x"]}
    for _ in range(70):
        schema = {"items": schema}
    trajectory = run({"plan": "plan-77"}, definitions=(ToolDefinition("act", schema),))
    assert TokenEngine().ground(trajectory, Policy()) == Outcome(gap=Gap.TOO_LARGE)


def test_a_result_made_of_one_number_repeated_is_too_large() -> None:
    trajectory = run({"order_id": 200}, result="x200 " * 11_000 + "200")
    assert TokenEngine().ground(trajectory, Policy()) == Outcome(gap=Gap.TOO_LARGE)


def test_system_texts_and_earlier_turns_are_sources() -> None:
    history = History(turns=("about ORD-1111",), steps=(Step("look", {}, True, "ORD-2222"),))
    given = {"a_id": "ORD-1111", "b_id": "ORD-2222", "c_id": "ORD-3333"}
    assert warned(run(given, system=("Use ORD-3333.",), history=history)) == []
    assert warned(run(given)) == ["a_id", "b_id", "c_id"]


def test_a_user_turn_counts_from_its_moment_on() -> None:
    steps = (Step("act", {"order_id": "88213"}, True, "ok", 0.0), Step("act", {"order_id": "88214"}, True, "ok", 1.0))
    turns = (Turn("Hello."), Turn("Orders 88213 and 88214.", before_step=1))
    found = TokenEngine().ground(Trajectory(steps=steps, turns=turns), Policy()).violations
    assert [(v.step, v.argument) for v in found] == [(0, "order_id")]


def test_a_result_does_not_explain_its_own_call() -> None:
    steps = (Step("act", {"order_id": "88213"}, True, "order 88213", 0.0),)
    assert len(warned(Trajectory(steps=steps, turns=(Turn("Hi."),)))) == 1


@pytest.mark.parametrize(("ok", "second"), [(True, []), (None, []), (False, [1])])
def test_what_the_agent_wrote_with_success_is_known_afterwards(ok: bool | None, second: list[int]) -> None:
    steps = (Step("create", {"ref_id": "R-7788"}, ok, "", 0.0), Step("open", {"ref_id": "R-7788"}, True, "", 1.0))
    found = TokenEngine().ground(Trajectory(steps=steps, turns=(Turn("Hi."),)), Policy()).violations
    assert [v.step for v in found] == [0, *second]


def test_the_warning_says_what_was_searched_and_never_the_value() -> None:
    (found,) = TokenEngine().ground(run({"a": {"order_id": "88213"}}, system=("Be kind.",)), Policy()).violations
    assert found == Violation(
        rule="ground",
        clause="ground",
        severity=Severity.WARN,
        message="act.a.order_id ← nothing (this number is in none of: system, user, 1 result)",
        step=1,
        tool="act",
        argument="a.order_id",
        span="b" * 16,
    )


def test_keys_that_are_no_names_are_masked_in_paths() -> None:
    assert warned(run({"ann@shop.example": {"order_id": "88213"}})) == ["[*].order_id"]
