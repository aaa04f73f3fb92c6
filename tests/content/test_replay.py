"""A history that was seen in part before is read as if it had not been."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.content import messages as reader
from luckrate_otel.content.replay import KEPT, MIN_CHARS, Replay
from luckrate_otel.facts import Message, Text

PAD = "x" * MIN_CHARS

roles = st.sampled_from(("user", "assistant", "tool", "odd"))
items: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"role": roles, "content": st.text(max_size=4)}
) | st.sampled_from(
    ([], {"content": "no role"}, "text", {"role": 1}, {"role": "user", "parts": [{"type": "text", "content": "]"}]})
)


def history(found: list[Any]) -> str:
    return json.dumps([{"role": "user", "content": PAD}, *found])


@given(st.lists(st.lists(items, max_size=3), min_size=1, max_size=5), st.booleans())
def test_growing_histories(growth: list[list[Any]], compact: bool) -> None:
    whole: list[Any] = []
    shared = Replay()
    for more in growth:
        whole += more
        text = history(whole)
        text = text.replace(", ", ",") if compact else text
        assert shared.messages(text, reader._with_roles) == Replay().messages(text, reader._with_roles)


def test_a_history_that_only_begins_alike() -> None:
    """The shorter text ends inside the longer one's last message: nothing of it may be taken over."""
    shared = Replay()
    first = json.dumps([{"role": "user", "content": PAD}])
    second = json.dumps([{"role": "user", "content": PAD, "name": "a"}, {"role": "user", "content": "b"}])
    expected = (Message("user", (Text(PAD),)),)
    assert shared.messages(first, reader._with_roles) == expected
    assert shared.messages(second, reader._with_roles) == (*expected, Message("user", (Text("b"),)))
    assert shared.messages(first, reader._with_roles) == expected


def test_what_is_no_array_of_messages_is_left_to_the_caller() -> None:
    for text in ("", "[]", "[1]", PAD, "[{" + PAD, "[{" + PAD + "]", json.dumps([{"no": PAD}]), json.dumps([PAD])):
        assert Replay().messages(text, reader._with_roles) is None


def test_the_memory_is_bounded() -> None:
    shared = Replay()
    for n in range(2 * KEPT):
        shared.messages(json.dumps([{"role": "user", "content": f"{n}{PAD}"}]), reader._with_roles)
    assert len(shared._entries) == KEPT
