"""LangChain messages give the same run live and in every JSON form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.payloads import from_langchain, recognise
from tests.payloads.payload_making import captured

UNKNOWN = "Error: nosuch is not a valid tool, try one of [lookup]."
FAILED = "Error: ValueError('no order 9')\n Please fix your mistakes."


@dataclass
class Live:
    """A message object as the framework has them: plain attributes."""

    type: str
    content: Any = ""
    tool_calls: list[Any] = field(default_factory=list)
    tool_call_id: str | None = None
    status: str = "success"
    name: str | None = None
    id: str | None = None


@dataclass
class Command:
    goto: str
    update: Any


@pytest.mark.parametrize("form", ["dumpd", "todict", "state"])
def test_captured_forms(form: str) -> None:
    found = from_langchain(captured(f"langgraph.{form}.json"))
    assert recognise(captured(f"langgraph.{form}.json")) == (found,)
    assert found == Trajectory(
        steps=(
            Step("lookup", {"order_id": "1"}, True, '{"order_id": "1"}', agent="clerk"),
            Step("lookup", {"order_id": "9"}, False, FAILED, agent="clerk", error=FAILED),
            Step("nosuch", {}, False, UNKNOWN, agent="clerk", error=UNKNOWN),
            Step("lookup", None, False, "not json", agent="clerk", error="not json"),
        ),
        turns=(Turn("hi"),),
        system=("be kind",),
        final_output="done",
        run_id=found.run_id,
        adapters=("langchain",),
        agent="clerk",
        gaps={(3, "args"): Gap.NOT_CAPTURED},
        call_ids=("a", "b", "c", "d"),
    )


LIVE = [
    Live("system", "be kind"),
    Live("human", [{"type": "text", "text": "hi"}]),
    Live(
        "AIMessageChunk", tool_calls=[{"name": "a", "args": {"x": 1}, "id": "1"}, {"name": "b", "args": {}, "id": "2"}]
    ),
    Live("tool", "no", tool_call_id="2", status="error", name="b"),
    Live("tool", "yes", tool_call_id="1", name="a"),
    Live("human", "more"),
    Live("ai", tool_calls=[{"name": "c", "args": {}, "id": "3"}]),
]
LIVE_STEPS = (
    Step("a", {"x": 1}, True, "yes"),
    Step("b", {}, False, "no", error="no"),
    Step("c", {}, None, None, error="no_return"),
)


def test_live_objects() -> None:
    found = from_langchain(LIVE)
    assert found.steps == LIVE_STEPS
    assert (found.turns, found.system, found.final_output) == ((Turn("hi"), Turn("more", 2)), ("be kind",), None)
    assert recognise(LIVE) == (found,)


SAME = {
    "state": {"messages": LIVE, "llm_calls": 2},
    "snapshot": {"values": {"messages": LIVE}, "next": []},
    "updates": [
        {"agent": {"messages": LIVE[:3]}},
        {"tools": {"messages": LIVE[3:5]}},
        {"agent": {"messages": LIVE[5:]}},
    ],
    "tuple": tuple(LIVE),
    "command": [*LIVE[:3], Command("x", {"messages": LIVE[3:]})],
    "commands in a list": [*LIVE[:3], [Command("x", {"messages": LIVE[3:]})]],
}


@pytest.mark.parametrize("name", SAME)
def test_what_messages_come_wrapped_in_is_seen_through(name: str) -> None:
    assert from_langchain(SAME[name]).steps == LIVE_STEPS


def test_a_snapshot_names_its_thread() -> None:
    state = {"values": {"messages": LIVE}, "config": {"configurable": {"thread_id": "t-1"}}}
    assert from_langchain(state).conversation_id == "t-1"


def test_agents_are_named_by_their_messages() -> None:
    handoff = [
        Live("human", "hi"),
        Live("ai", name="boss", tool_calls=[{"name": "transfer_to_clerk", "args": {}, "id": "1"}]),
        Live("tool", "Transferred", tool_call_id="1", name="transfer_to_clerk"),
        Live("ai", name="clerk", tool_calls=[{"name": "lookup", "args": {}, "id": "2"}]),
        Live("tool", "x", tool_call_id="2"),
        {
            "type": "ai",
            "content": "Transferring back",
            "name": "clerk",
            "tool_calls": [{"name": "transfer_back_to_boss", "args": {}, "id": "3"}],
            "response_metadata": {"__is_handoff_back": True},
        },
        {"type": "tool", "content": "ok", "tool_call_id": "3", "response_metadata": {"__is_handoff_back": True}},
        Live("ai", "done", name="boss"),
    ]
    found = from_langchain(handoff)
    assert [(s.tool, s.agent) for s in found.steps] == [("transfer_to_clerk", "boss"), ("lookup", "clerk")]
    assert (found.agent, found.final_output) == ("boss", "done")


def test_a_message_that_is_in_the_list_twice_is_said_once() -> None:
    said = [Live("human", "hi", id="m1"), Live("human", "hi", id="m1"), Live("human", "hi", id="m2")]
    assert from_langchain(said).turns == (Turn("hi"), Turn("hi"))


def test_calls_in_content_blocks_or_provider_fields_are_found_and_counted_once() -> None:
    block = {"type": "tool_use", "id": "1", "name": "a", "input": {"x": 1}}
    made = [{"name": "a", "args": {"x": 1}, "id": "1"}]
    raw = {"tool_calls": [{"id": "1", "function": {"name": "a", "arguments": '{"x": 1}'}}]}
    for message in (
        {"type": "ai", "content": [block], "tool_calls": made},
        {"type": "ai", "content": [block]},
        {"type": "ai", "content": "", "additional_kwargs": raw},
        {"type": "ai", "content": "", "tool_calls": made, "additional_kwargs": raw},
    ):
        assert [(s.tool, s.args) for s in from_langchain([message]).steps] == [("a", {"x": 1})]


def test_a_chat_message_names_its_role() -> None:
    found = from_langchain([{"type": "chat", "data": {"role": "assistant", "content": "done"}}, Live("chat", "hi")])
    assert (found.final_output, found.turns) == (None, (Turn("hi"),))


def test_calls_in_the_providers_own_form_are_read_and_nameless_ones_are_none() -> None:
    provider = {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x": 1}'}}
    message = {"type": "ai", "content": "", "tool_calls": [provider, {"id": "2", "args": {}}]}
    assert [(s.tool, s.args) for s in from_langchain([message]).steps] == [("a", {"x": 1})]


def test_removals_and_strangers_are_passed_over() -> None:
    found = from_langchain([("human", "hi"), {"type": "remove", "id": "x"}, 7, None, {"a": 1}, ("ai", "done")])
    assert (found.turns, found.final_output) == ((Turn("hi"),), "done")


def test_a_state_of_provider_messages_is_not_langchain() -> None:
    found = recognise({"messages": [{"role": "user", "content": "hi"}]})
    assert found is not None
    assert found[0].adapters == ("messages",)
