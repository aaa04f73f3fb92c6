"""Earlier turns of a conversation: what is kept, for how long, and when it is known to be missing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.conversation import CONVERSATION_AGE_NS, Conversations
from luckrate_otel.model import History, Step, Trajectory, Turn

LOOKUP = Step("lookup", {"id": "1"}, True, "total 200")
REFUND = Step("refund", {"id": "1"}, False, None, error="denied")
PENDING = Step("email", {}, None, None, error="no_return")


def said(run: str, start_ns: int, *texts: str, steps: tuple[Step, ...] = (), conversation: str = "c") -> Trajectory:
    return Trajectory(
        run_id=run,
        start_ns=start_ns,
        turns=tuple(map(Turn, texts)),
        steps=steps,
        conversation_id=conversation,
        attributes={"service.name": "shop"},
    )


def test_earlier_runs_are_told_oldest_first_whatever_the_order_they_were_judged_in() -> None:
    store = Conversations()
    store.remember(said("two", 20, "and now refund it", steps=(REFUND, PENDING)), 100)
    store.remember(said("one", 10, "look order 1 up", steps=(LOOKUP,)), 101)
    assert store.history("shop", "c", 30) == History(("look order 1 up", "and now refund it"), (LOOKUP, REFUND))
    assert store.history("shop", "c", 20) == History(("look order 1 up",), (LOOKUP,))
    assert store.history("shop", "c", 10) == History()


def test_a_conversation_belongs_to_its_service() -> None:
    store = Conversations()
    store.remember(said("one", 10, "hello"), 100)
    store.remember(replace(said("two", 10, "hi"), attributes={"service.name": "bank"}), 100)
    assert store.history("shop", "c", 30).turns == ("hello",)
    assert store.history("bank", "c", 30).turns == ("hi",)
    assert store.history("", "c", 30) == History()


def test_a_later_verdict_on_a_run_replaces_the_earlier_one() -> None:
    store = Conversations()
    store.remember(said("one", 10, "hello"), 100)
    size = store.size
    store.remember(said("one", 10, "hello", steps=(LOOKUP,)), 101)
    assert store.history("shop", "c", 30) == History(("hello",), (LOOKUP,))
    store.remember(said("one", 10, "hello"), 102)
    assert store.size == size


def test_words_that_each_turn_repeats_are_kept_once() -> None:
    store = Conversations()
    store.remember(said("one", 10, "a"), 100)
    store.remember(said("two", 20, "a", "b", "b"), 100)
    assert store.history("shop", "c", 30).turns == ("a", "b")


def test_what_an_earlier_process_saw_is_missing_to_every_later_run() -> None:
    """But not to the run that it saw first, nor to other conversations."""
    before = Conversations()
    before.remember(said("two", 20, "and now refund it"), 100)
    before.remember(said("one", 10, "look order 1 up"), 101)
    begun = before.begun(said("two", 20))
    assert begun is not None
    store = Conversations()
    store.resume([begun])
    assert store.history("shop", "c", 10) == History()
    assert store.history("shop", "c", 20) == History(missing=True)
    assert store.history("shop", "d", 20) == History()
    assert store.history("bank", "c", 20) == History()
    store.remember(said("three", 30, "thanks"), 102)
    assert store.history("shop", "c", 40) == History(("thanks",), missing=True)
    assert store.begun(said("three", 30)) == begun


def test_a_run_without_conversation_begins_none() -> None:
    assert Conversations().begun(said("one", 10, "hello", conversation="")) is None


def test_what_is_kept_of_a_conversation_holds_neither_its_id_nor_its_words() -> None:
    store = Conversations()
    store.remember(said("one", 10, "look order 1 up", conversation="customer-17"), 100)
    begun = store.begun(said("one", 10, conversation="customer-17"))
    assert begun is not None
    assert (len(begun.digest), begun.start_ns) == (16, 10)


def test_a_conversation_that_was_never_seen_looks_like_a_new_one() -> None:
    assert Conversations().history("shop", "c", 1) == History()


@pytest.mark.parametrize(("age_ns", "told"), [(CONVERSATION_AGE_NS, True), (CONVERSATION_AGE_NS + 1, False)])
def test_age_is_bounded(age_ns: int, told: bool) -> None:
    store = Conversations()
    store.remember(said("one", 0, "a"), 0)
    store.remember(said("other", 0, "x", conversation="d"), age_ns)
    assert store.history("shop", "c", 30) == (History(("a",)) if told else History(missing=True))
    old = Conversations()
    old.remember(said("one", 0, "a"), 0)
    assert old.history("shop", "c", age_ns) == (History(("a",)) if told else History(missing=True))


def test_a_run_without_conversation_is_not_kept() -> None:
    store = Conversations()
    store.remember(said("one", 0, "a", conversation=""), 0)
    assert (len(store), store.size) == (0, 0)


def test_results_go_before_the_users_words_and_the_loss_is_known() -> None:
    store = Conversations(max_bytes=3000)
    big = Step("lookup", {}, True, "x" * 2000)
    store.remember(said("one", 10, "a", steps=(big,)), 100)
    store.remember(said("two", 20, "b", steps=(big,)), 101)
    assert store.history("shop", "c", 20) == History(("a",), (), missing=True)
    assert store.history("shop", "c", 30) == History(("a", "b"), (big,), missing=True)
    store.remember(said("three", 30, "w" * 2900), 102)
    assert store.size <= 3000
    assert store.history("shop", "c", 40) == History((), (), missing=True)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz"), st.integers(0, 400), st.integers(0, 600)),
        max_size=40,
    )
)
def test_it_stays_within_its_bound_and_forgets_everything_in_the_end(runs: list[tuple[str, str, int, int]]) -> None:
    store = Conversations(max_bytes=2500, max_age_ns=10)
    for now_ns, (run, conversation, text, result) in enumerate(runs):
        steps = (Step("t", {"a": ["b"]}, True, "r" * result),)
        store.remember(said(run, now_ns, "u" * text, steps=steps, conversation=conversation), now_ns)
        assert 0 <= store.size <= 2500
    store.remember(Trajectory(), 1000)
    assert not store._by_age
    assert not store._with_steps
    assert store.size == 100 * len(store)


def test_the_memory_of_losses_is_bounded_too() -> None:
    store = Conversations(max_bytes=1600, max_age_ns=10)
    for i in range(5):
        store.remember(said("one", 0, "a", conversation=f"c{i}"), i)
    store.remember(Trajectory(), 100)
    assert [store.history("shop", f"c{i}", 50).missing for i in range(5)] == [False, False, False, True, True]
    assert (len(store), store.size) == (2, 200)


def test_a_conversation_that_lost_everything_can_go_on() -> None:
    store = Conversations(max_age_ns=10)
    store.remember(said("one", 0, "a"), 0)
    store.remember(said("two", 95, "b", steps=(Step("t", {"x": [1, {"y": "z"}]}, True, "r"),)), 100)
    assert store.history("shop", "c", 100).turns == ("b",)
    assert store.history("shop", "c", 100).missing
