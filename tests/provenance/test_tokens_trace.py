"""`trace`: the sources of every leaf."""

from __future__ import annotations

import json

import pytest

from luckrate_otel.facts import ToolDefinition
from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.provenance.tokens import Leaf, Sighting, trace


def test_every_leaf_is_listed_with_its_sources() -> None:
    orders = json.dumps({"orders": [{"id": "ORD-8821", "total": 1250.5}]})
    steps = (
        Step("find", {"email": "Ann@Shop.example"}, True, orders),
        Step(
            "refund",
            {"order": {"id": "ord_8821"}, "amount": "1,250.50", "why": "broken", "now": True, "to": []},
            True,
            "ok",
        ),
        Step("note", {"order_id": "8821", "text": "Refunded ORD-8821 and X-99417."}, True, "ok"),
    )
    user = Sighting("user", None, None, "$", "case or separators", "strict")
    assert trace(Trajectory(steps=steps, turns=(Turn("I am ann@shop.example."),))) == (
        Leaf(0, "find", "email", "email", (user,)),
        Leaf(
            1,
            "refund",
            "order.id",
            "id",
            (Sighting("result", 0, "find", "$.orders[0].id", "case or separators", "strict"),),
        ),
        Leaf(
            1, "refund", "amount", "number", (Sighting("result", 0, "find", "$.orders[0].total", "number", "strict"),)
        ),
        Leaf(1, "refund", "why", "words", ()),
        Leaf(1, "refund", "now", "none", ()),
        Leaf(2, "note", "order_id", "number", (Sighting("result", 0, "find", "$.orders[0].id", "number", "strict"),)),
        Leaf(
            2,
            "note",
            "text",
            "prose",
            (
                Sighting("result", 0, "find", "$.orders[0].id", "same text", "strict"),
                Sighting("agent", 1, "refund", "order.id", "case or separators", "strict"),
            ),
        ),
    )


def test_what_a_definition_offers_is_a_source() -> None:
    run = Trajectory(
        steps=(Step("act", {"plan": "plan-77"}, True, ""),), definitions=(ToolDefinition("act", {"enum": ["plan-77"]}),)
    )
    sighting = Sighting("definition", None, None, "$", "case or separators", "strict")
    assert trace(run) == (Leaf(0, "act", "plan", "id", (sighting,)),)


def test_a_run_out_of_bounds_is_refused() -> None:
    steps = (Step("act", {"x": [1] * 20_001}, True, ""),)
    with pytest.raises(ValueError, match="too_large"):
        trace(Trajectory(steps=steps))
