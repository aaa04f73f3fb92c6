"""Calls in a model's inputs are known by the id under which the model asked for them, whatever history calls them."""

from __future__ import annotations

import pytest

from luckrate_otel.facts import Call, Message, Part, Response, Text
from luckrate_otel.join.own_ids import Asked, Listed, under_own_ids

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
    """Nothing was listed before any of them was asked for."""
    inputs = said(*history)
    assert under_own_ids(inputs, Listed(inputs), [Asked(call, Listed(())) for call in asked]) == said(*expected)


ANSWER = Response("call_2", "delivered")
FIRST, SECOND, THIRD = (Call("lookup_order", LOOKUP, f"fc_{n}") for n in (1, 2, 3))
BARE = Call("lookup_order", LOOKUP)


@pytest.mark.parametrize(
    ("asked", "history", "expected"),
    [
        pytest.param(
            [("call_2", (FIRST,))],
            (FIRST, Response("call_1", "late"), SECOND, ANSWER),
            (FIRST, Response("call_1", "late"), Call("lookup_order", LOOKUP, "call_2"), ANSWER),
            id="the-first-one",
        ),
        pytest.param(
            [("call_1", ()), ("call_3", (FIRST, SECOND))],
            (FIRST, SECOND, THIRD),
            (Call("lookup_order", LOOKUP, "call_1"), SECOND, Call("lookup_order", LOOKUP, "call_3")),
            id="one-in-the-middle",
        ),
        pytest.param(
            [("call_2", (BARE,))],
            (BARE, BARE),
            (BARE, Call("lookup_order", LOOKUP, "call_2")),
            id="the-first-of-a-history-without-ids",
        ),
        pytest.param(
            [("call_1", ()), ("call_3", (BARE, BARE))],
            (BARE, BARE, BARE),
            (Call("lookup_order", LOOKUP, "call_1"), BARE, Call("lookup_order", LOOKUP, "call_3")),
            id="one-in-the-middle-without-ids",
        ),
    ],
)
def test_a_call_that_was_listed_before_another_was_asked_for_is_not_that_one(
    asked: list[tuple[str, tuple[Part, ...]]], history: tuple[Part, ...], expected: tuple[Part, ...]
) -> None:
    """The model call that asked for it never came. asked: each id with what its own model call had listed."""
    inputs = said(*history)
    known = [Asked(Call("lookup_order", LOOKUP, call_id), Listed(said(*before))) for call_id, before in asked]
    assert under_own_ids(inputs, Listed(inputs), known) == said(*expected)
