"""Spans that never came: whatever is lost of a conversation, no call becomes two and none moves before another."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luckrate_otel.batch import trajectories
from luckrate_otel.telemetry import Span
from tests.join.test_calls_once import agent, answers, asks, chat, says, tool


@dataclass(frozen=True)
class Ids:
    """Where a convention tells call ids. Each a form of `{0}`, the call's number, and `{1}`, its place in the turn; ""
    for none.

    asked: in what the model said. listed, answered: in the history of later inputs, of the call and of its answer.
    ran: on the tool span.
    """

    asked: str
    listed: str
    answered: str
    ran: str


CONVENTIONS = {
    "everywhere": Ids("call_{0}", "call_{0}", "call_{0}", "call_{0}"),
    "in messages": Ids("call_{0}", "call_{0}", "call_{0}", ""),
    "of two kinds": Ids("call_{0}", "fc_call_{0}", "call_{0}", ""),
    "of two kinds, one on spans": Ids("call_{0}", "fc_call_{0}", "call_{0}", "call_{0}"),
    "in answers only": Ids("call_{0}", "", "", ""),
    "on spans only": Ids("", "", "", "span_{0}"),
    "by place in the turn": Ids("lookup_{1}", "lookup_{1}", "lookup_{1}", "span_{0}"),
    "nowhere": Ids("", "", "", ""),
}


def part(form: str, number: int, place: int, thing: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "tool_call", "name": "lookup", "arguments": {"id": thing}}
    return found | ({"id": form.format(number, place)} if form else {})


@dataclass(frozen=True)
class Talk:
    """turns: per turn of the model the things that it looks up. past: what was looked up in earlier runs.

    handover: the turn from which another agent has the conversation.
    """

    turns: list[list[str]]
    past: list[str]
    handover: int = 9


def conversation(talk: Talk, ids: Ids) -> tuple[list[Span], list[Span], list[Span]]:
    """The spans of the agents, the model calls and the tool calls, one after the other."""
    turns, past = talk.turns, talk.past
    history = [says("user", "Hello.")] if past else []
    for n, thing in enumerate(past):
        history.append({"role": "assistant", "parts": [part(ids.listed, 90 + n, 0, thing)]})
        history.append(answers(ids.answered.format(90 + n, 0), f"{thing} {90 + n}"))
    history.append(says("user", "Find them."))
    models: list[Span] = []
    tools: list[Span] = []
    at = number = 0
    for when, turn in enumerate(turns):
        owner = "first" if when < talk.handover else "second"
        calls = [(number + n, thing) for n, thing in enumerate(turn)]
        number += len(turn)
        said = {
            "role": "assistant",
            "parts": [part(ids.asked, n, place, thing) for place, (n, thing) in enumerate(calls)],
        }
        models.append(chat(f"m{len(models)}", owner, at + 1, at + 9, list(history), said))
        history.append(
            {
                "role": "assistant",
                "parts": [part(ids.listed, n, place, thing) for place, (n, thing) in enumerate(calls)],
            }
        )
        at += 10
        for place, (n, thing) in enumerate(calls):
            more = {"gen_ai.tool.call.id": ids.ran.format(n, place)} if ids.ran else {}
            tools.append(tool(f"t{n}", owner, at + 1, at + 9, {"id": thing}, attributes=more))
            history.append(answers(ids.answered.format(n, place), f"{thing} {n}"))
            at += 10
    models.append(chat(f"m{len(models)}", owner, at + 1, at + 9, list(history), says("assistant", "Done.")))
    agents = [
        agent(end=at + 10),
        agent("first", "agent", at + 10, "first"),
        agent("second", "agent", at + 10, "second"),
    ]
    return agents, models, tools


def told(spans: list[Span]) -> list[tuple[Any, str | None]]:
    (run,) = trajectories(spans)
    return [((step.args or {}).get("id"), step.span) for step in run.steps]


some_talk = st.builds(
    Talk,
    st.lists(st.lists(st.sampled_from("AB"), min_size=1, max_size=2), min_size=1, max_size=5),
    st.lists(st.sampled_from("AB"), max_size=2),
    st.integers(1, 9),
)
some_lost = st.sets(st.integers(0, 10))


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(talk=some_talk, lost=some_lost)
@example(talk=Talk([["A", "B"], ["A"]], []), lost={0})
@example(talk=Talk([["A"], ["A"], ["A"]], []), lost={1})
def test_a_call_that_has_a_span_is_one_step_in_its_place_whichever_model_calls_are_lost(
    convention: str, talk: Talk, lost: set[int]
) -> None:
    agents, models, tools = conversation(talk, CONVENTIONS[convention])
    left = [m for n, m in enumerate(models) if n not in lost]
    things = [thing for turn in talk.turns for thing in turn]
    assert told([*agents, *left, *tools]) == [(thing, f"t{n}") for n, thing in enumerate(things)]


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(talk=some_talk, lost=some_lost, gone=some_lost)
@example(talk=Talk([["A", "B"], ["A"]], []), lost={0}, gone={0})
@example(talk=Talk([["A"], ["A"], ["A"]], []), lost={1}, gone={1})
def test_whatever_is_lost_no_call_becomes_two(convention: str, talk: Talk, lost: set[int], gone: set[int]) -> None:
    """lost: model calls. gone: tool spans. A call of which something is left is a step if its id or its place in the
    history tells it from its repeats; one of which nothing is left is none.
    """
    agents, models, tools = conversation(talk, CONVENTIONS[convention])
    left = [m for n, m in enumerate(models) if n not in lost]
    ran = [t for n, t in enumerate(tools) if n not in gone]
    made = Counter(thing for turn in talk.turns for thing in turn)
    steps = told([*agents, *left, *ran])
    assert Counter(thing for thing, _ in steps) <= made
    assert {span for _, span in steps} >= {t.head.span_id for t in ran}


@pytest.mark.parametrize("convention", CONVENTIONS)
@given(talk=some_talk, gone=some_lost)
@example(talk=Talk([["A"], ["A"]], ["A"]), gone={0, 1})
def test_no_step_is_missed_while_all_that_the_model_said_is_there(convention: str, talk: Talk, gone: set[int]) -> None:
    agents, models, tools = conversation(talk, CONVENTIONS[convention])
    steps = told([*agents, *models, *[t for n, t in enumerate(tools) if n not in gone]])
    assert [thing for thing, _ in steps] == [thing for turn in talk.turns for thing in turn]


USER, DONE = says("user", "Find A."), says("assistant", "Done.")
CALL, ANSWER = asks(("call_1", "lookup", {"id": "A"})), answers("call_1", "A")
AGAIN, SECOND = asks(("call_2", "lookup", {"id": "B"})), answers("call_2", "B")
BARE = asks(("", "lookup", {"id": "B"}))


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param(
            [
                chat("m1", "agent", 1, 9, [USER], CALL),
                tool("t1", "agent", 11, 19, {"id": "A"}),
                chat("m2", "an id that no span has", 21, 29, [USER, CALL, ANSWER], AGAIN),
                tool("t2", "agent", 31, 39, {"id": "B"}),
                chat("m3", "agent", 41, 49, [USER, CALL, ANSWER, BARE, SECOND], DONE),
            ],
            id="a model call below a span that never came looks like another conversation",
        ),
        pytest.param(
            [
                tool("t1", "agent", 11, 19, {"id": "A"}),
                chat("m2", "agent", 21, 29, [USER, says("tool", "A")], AGAIN),
                tool("t2", "agent", 31, 39, {"id": "B"}),
                chat("m3", "agent", 41, 49, [USER, CALL, ANSWER, AGAIN, SECOND], DONE),
            ],
            id="an input without its calls looks as if they had come later",
        ),
    ],
)
def test_a_call_of_a_turn_that_is_not_whole_is_one_step(spans: list[Span]) -> None:
    assert told([agent(), *spans]) == [("A", "t1"), ("B", "t2")]
