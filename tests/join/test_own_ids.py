"""Calls in a model's inputs are known by the id under which the model asked for them, whatever history calls them."""

from __future__ import annotations

import pytest

from luckrate_otel.facts import Call, Message, Part, Response, Text
from luckrate_otel.join.own_ids import under_own_ids

LOOKUP = {"order_id": "88213"}
POLICY = {"amount": 200}


def said(*parts: Part) -> tuple[Message, ...]:
    return (Message("user", (Text("hello"),)), Message("assistant", parts))


@pytest.mark.parametrize(
    ("asked", "history", "expected"),
    [
        pytest.param(
            (Call("lookup_order", LOOKUP, "call_1"),),
            (Call("lookup_order", LOOKUP, "fc_1"), Response("call_1", "delivered")),
            (Call("lookup_order", LOOKUP, "call_1"), Response("call_1", "delivered")),
            id="the-item-id",
        ),
        pytest.param(
            (Call("lookup_order", LOOKUP, "call_1"),),
            (Call("lookup_order", LOOKUP, "fc_1"), Response("fc_1", "delivered")),
            (Call("lookup_order", LOOKUP, "call_1"), Response("call_1", "delivered")),
            id="its-answer-too",
        ),
        pytest.param(
            (Call("lookup_order", LOOKUP, "call_1"), Call("lookup_order", LOOKUP, "call_2")),
            (Call("lookup_order", LOOKUP, "fc_1"), Call("lookup_order", LOOKUP, "fc_2")),
            (Call("lookup_order", LOOKUP, "call_1"), Call("lookup_order", LOOKUP, "call_2")),
            id="repeats-in-order",
        ),
        pytest.param(
            (Call("lookup_order", LOOKUP, "call_1"),),
            (Call("lookup_order", LOOKUP, "call_0"), Call("lookup_order", LOOKUP, "call_1")),
            (Call("lookup_order", LOOKUP, "call_0"), Call("lookup_order", LOOKUP, "call_1")),
            id="a-real-repeat-of-an-earlier-turn",
        ),
        pytest.param(
            (Call("lookup_order", LOOKUP, "call_1"),),
            (Call("check_policy", POLICY, "fc_1"),),
            (Call("check_policy", POLICY, "fc_1"),),
            id="another-call",
        ),
        pytest.param(
            (Call("lookup_order", LOOKUP, "call_1"),),
            (Call("lookup_order", LOOKUP),),
            (Call("lookup_order", LOOKUP, "call_1"),),
            id="history-without-ids",
        ),
        pytest.param(
            (Call("lookup_order", LOOKUP),),
            (Call("lookup_order", LOOKUP, "fc_1"),),
            (Call("lookup_order", LOOKUP),),
            id="answers-without-ids",
        ),
    ],
)
def test_one_id_each(asked: tuple[Call, ...], history: tuple[Part, ...], expected: tuple[Part, ...]) -> None:
    assert under_own_ids(said(*history), asked) == said(*expected)
