"""Provider messages: a step where the call was made, with the answer that came to it."""

from __future__ import annotations

from typing import Any

import pytest

from luckrate_otel.facts import Gap, ToolDefinition
from luckrate_otel.model import Coverage, Step, Trajectory, Turn
from luckrate_otel.payloads import from_messages, recognise

USER = {"role": "user", "content": "Refund 88213"}


def call(call_id: str | None, name: str, arguments: Any) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return made if call_id is None else {"id": call_id, **made}


def asks(*calls: Any, text: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "tool_calls": list(calls)}


def tells(call_id: str | None, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def steps(*messages: Any) -> list[tuple[Any, ...]]:
    return [(s.tool, s.args, s.ok, s.result, s.error) for s in from_messages(list(messages)).steps]


def test_a_chat_completion_conversation() -> None:
    messages = [
        {"role": "developer", "content": "Be kind."},
        USER,
        asks(call("a", "lookup", '{"id": "88213"}'), call("b", "policy", ""), text="let me see"),
        tells("b", "fifty"),
        tells("a", [{"type": "text", "text": "found"}, {"type": "text", "text": "it"}]),
        asks(call("c", "refund", '{"id": "88213"}')),
        {"role": "user", "content": [{"type": "text", "text": "hurry"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": "I could not."},
    ]
    found = from_messages(messages)
    assert recognise(messages) == (found,)
    assert found == Trajectory(
        steps=(
            Step("lookup", {"id": "88213"}, None, "found\nit"),
            Step("policy", {}, None, "fifty"),
            Step("refund", {"id": "88213"}, None, None, error="no_return"),
        ),
        turns=(Turn("Refund 88213"), Turn("hurry", 3)),
        system=("Be kind.",),
        final_output="I could not.",
        run_id=found.run_id,
        adapters=("messages",),
        coverage=Coverage(),
        gaps={
            (0, "ok"): Gap.NOT_CAPTURED,
            (1, "ok"): Gap.NOT_CAPTURED,
            (2, "ok"): Gap.INCOMPLETE,
            (2, "result"): Gap.INCOMPLETE,
        },
        call_ids=("a", "b", "c"),
    )
    assert found.run_id.startswith("messages:")


def test_history_repeated_counts_once_and_real_repeats_stay() -> None:
    first = [USER, asks(call("a", "lookup", "{}")), tells("a", "x")]
    again = [asks(call("a", "lookup", "{}")), tells("a", "x"), asks(call("b", "lookup", "{}")), tells("b", "y")]
    assert [s[3] for s in steps(*first, *again)] == ["x", "y"]


def test_an_id_used_anew_for_another_call_is_another_call() -> None:
    found = steps(
        USER,
        asks(call("call_0", "lookup", '{"id": 1}')),
        tells("call_0", "one"),
        asks(call("call_0", "lookup", '{"id": 2}')),
        tells("call_0", "two"),
    )
    assert [(args, result) for _, args, _, result, _ in found] == [({"id": 1}, "one"), ({"id": 2}, "two")]


def test_calls_without_id_are_answered_in_order() -> None:
    found = steps(USER, asks(call(None, "a", "{}"), call(None, "b", "{}")), tells(None, "1"), tells(None, "2"))
    assert [(tool, result) for tool, _, _, result, _ in found] == [("a", "1"), ("b", "2")]
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "a", "arguments": "{}"}}
    assert steps(USER, legacy, {"role": "function", "name": "a", "content": "1"}) == [("a", {}, None, "1", None)]


def test_an_answer_whose_call_was_cut_away_proves_that_there_was_one() -> None:
    found = from_messages(
        [
            tells("z", "x", name="lookup"),
            tells("z", "x", name="lookup"),
            tells("y", "of whom?"),
            tells(None, "y", name="mail"),
        ]
    )
    assert found.steps == (Step("lookup", None, None, "x"), Step("mail", None, None, "y"))
    assert found.gaps == {(i, field): Gap.NOT_CAPTURED for i in (0, 1) for field in ("args", "ok")}


def test_content_may_be_a_list_of_plain_texts() -> None:
    assert from_messages([{"role": "user", "content": ["a", "b", 7]}]).turns == (Turn("a\nb"),)


@pytest.mark.parametrize("given", ['{"id": "882', "[1]", "null", 7, None])
def test_arguments_that_are_no_object_are_not_captured(given: Any) -> None:
    found = from_messages([USER, asks(call("a", "lookup", given)), tells("a", "x")])
    assert (found.steps[0].args, found.gaps[0, "args"]) == (None, Gap.NOT_CAPTURED)
    assert found.coverage.args is False


def test_a_custom_tool_takes_free_text() -> None:
    custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert steps(USER, asks(custom), tells("a", "1")) == [("sql", {"input": "select 1"}, None, "1", None)]


def test_anthropic_blocks_say_whether_a_tool_failed() -> None:
    request = {
        "system": [{"type": "text", "text": "Be kind."}],
        "tools": [{"type": "web_search"}, {"name": "lookup", "input_schema": {"type": "object"}}],
        "messages": [
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "let me see"},
                    {"type": "tool_use", "id": "a", "name": "lookup", "input": {"id": 1}},
                    {"type": "tool_use", "id": "b", "name": "lookup", "input": {"id": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "b", "content": "gone", "is_error": True},
                    {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "found"}]},
                    {"type": "text", "text": "go on"},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        ],
    }
    found = from_messages(request)
    assert recognise(request) == (found,)
    assert found.steps == (
        Step("lookup", {"id": 1}, True, "found"),
        Step("lookup", {"id": 2}, False, "gone", error="gone"),
    )
    assert found.turns == (Turn("Refund 88213"), Turn("go on", 2))
    assert (found.system, found.final_output, found.gaps) == (("Be kind.",), "done", {})
    assert found.definitions == (ToolDefinition("lookup", {"type": "object"}),)


def test_responses_items() -> None:
    exchange = {
        "conversation": {"id": "conv_1"},
        "instructions": "Be kind.",
        "input": "Refund 88213",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "a", "name": "lookup", "arguments": '{"id":1}', "status": "completed"},
            {"type": "function_call_output", "call_id": "a", "output": "found", "status": "completed"},
            {"type": "mcp_call", "id": "m", "name": "refund", "arguments": "{}", "error": "denied", "output": None},
            {"type": "file_search_call", "id": "f", "status": "in_progress"},
            {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "x"}},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        ],
    }
    found = from_messages(exchange)
    assert recognise(exchange) == (found,)
    assert found.steps == (
        Step("lookup", {"id": 1}, None, "found"),
        Step("refund", {}, False, "denied", error="denied"),
        Step("file_search", None, None, None, error="no_return"),
        Step("web_search", {"query": "x"}, True, None),
    )
    assert (found.turns, found.system, found.final_output) == ((Turn("Refund 88213"),), ("Be kind.",), "done")
    assert found.conversation_id == "conv_1"


def test_a_chat_completion_answer_ends_its_request() -> None:
    both = {"messages": [USER], "choices": [{"message": asks(call("a", "lookup", "{}"))}]}
    assert from_messages(both).steps == (Step("lookup", {}, None, None, error="no_return"),)


def test_vercel_and_opentelemetry_parts() -> None:
    vercel = [
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "a", "toolName": "t", "input": {"x": 1}}],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "a",
                    "toolName": "t",
                    "output": {"type": "error-text", "value": "no"},
                }
            ],
        },
    ]
    assert steps(*vercel) == [("t", {"x": 1}, False, "no", "no")]
    otel = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "a", "name": "t", "arguments": {"x": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "a", "response": "yes"}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "done"}]},
    ]
    assert steps(*otel) == [("t", {"x": 1}, None, "yes", None)]
    assert from_messages(otel).final_output == "done"


def test_an_array_of_conversations_gives_one_run_each() -> None:
    one, two = [USER, asks(call("a", "x", "{}"))], [USER, asks(call("a", "y", "{}"))]
    found = recognise([{"messages": one}, {"messages": two}])
    assert found is not None
    assert [t.steps[0].tool for t in found] == ["x", "y"]
    assert found == recognise([one, two])
    assert found[0].run_id != found[1].run_id
