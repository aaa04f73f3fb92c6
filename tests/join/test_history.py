"""Calls in a model's inputs are known by the id under which the model asked for them, whatever history calls them."""

from __future__ import annotations

import pytest

from luckrate_otel.adapters.results import Returned, may_tell_failure, returned
from luckrate_otel.facts import Call, Message, Part, Response, Text
from luckrate_otel.join.history import under_own_ids

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tool error: timed out", True),
        ('{"error": "no such order"}', True),
        ("Traceback (most recent call last):", True),
        ('{"error": null, "id": 1}', False),
        ("No errors were found", False),
        ("Errors: 0", False),
        (None, False),
    ],
)
def test_an_answer_that_reads_like_an_error_is_no_success(text: str | None, expected: bool) -> None:
    assert may_tell_failure(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status='failure' result=None error='timed out' images=None", Returned("timed out", False)),
        ("status='success' result='sent' error=None images=None", Returned("sent", True)),
        ("status='delivered' since='May'", Returned("status='delivered' since='May'")),
    ],
)
def test_agno_wraps_results_in_a_repr(text: str, expected: Returned) -> None:
    assert returned(text) == expected
