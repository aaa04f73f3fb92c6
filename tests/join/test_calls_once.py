"""Each call counts once, however many spans and messages show it; real repeats stay."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest

from luckrate_otel.batch import trajectories
from luckrate_otel.model import Turn
from luckrate_otel.telemetry import Head, Span, Status

TRACE = "1" * 32
MS = 1_000_000


def span(
    span_id: str,
    parent: str,
    start: int,
    end: int,
    attributes: dict[str, Any],
    *,
    name: str = "span",
    scope: str = "acme",
    status: Status = Status.UNSET,
    trace: str = TRACE,
) -> Span:
    return Span(Head(trace, span_id, parent, name, 1, start * MS, end * MS, status, scope), attributes)


def agent(span_id: str = "agent", parent: str = "", end: int = 100, name: str = "desk", trace: str = TRACE) -> Span:
    return span(
        span_id, parent, 0, end, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}, trace=trace
    )


def tool(span_id: str, parent: str, start: int, end: int, args: dict[str, Any] | None = None, **more: Any) -> Span:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": more.pop("tool", "lookup")}
    if args is not None:
        attributes["gen_ai.tool.call.arguments"] = json.dumps(args)
    attributes |= more.pop("attributes", {})
    return span(span_id, parent, start, end, attributes, **more)


def openinference(span_id: str, parent: str, start: int, end: int, args: dict[str, Any]) -> Span:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "lookup",
        "input.value": json.dumps(args),
        "input.mime_type": "application/json",
        "output.value": "found",
    }
    return span(span_id, parent, start, end, attributes, scope="openinference.instrumentation.acme", status=Status.OK)


def chat(span_id: str, parent: str, start: int, end: int, *messages: Any, trace: str = TRACE, **more: Any) -> Span:
    """messages: the input messages as one list, then the output message."""
    inputs, output = messages
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps([output]),
    }
    return span(span_id, parent, start, end, attributes | more, trace=trace)


def says(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def asks(*calls: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
    parts = [{"type": "tool_call", "id": i, "name": name, "arguments": args} for i, name, args in calls]
    return {"role": "assistant", "parts": parts}


def answers(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": text}]}


def shown(spans: list[Span]) -> list[tuple[str, object, str | None]]:
    (run,) = trajectories(spans)
    return [(s.tool, s.args, s.span) for s in run.steps]


A, B = {"id": "A"}, {"id": "B"}


def test_two_instrumentations_side_by_side() -> None:
    spans = [agent(), openinference("o1", "agent", 10, 20, A), tool("g1", "agent", 11, 19, A)]
    assert shown(spans) == [("lookup", A, "o1")]


def test_two_instrumentations_keep_parallel_calls_apart() -> None:
    """Two identical calls at once, each shown twice: two steps."""
    spans = [
        agent(),
        openinference("o1", "agent", 10, 30, A),
        tool("g1", "agent", 11, 29, A),
        openinference("o2", "agent", 12, 30, A),
        tool("g2", "agent", 13, 29, A),
    ]
    assert len(shown(spans)) == 2


def test_an_identical_later_call_is_a_real_repeat() -> None:
    spans = [
        agent(),
        openinference("o1", "agent", 10, 20, A),
        tool("g1", "agent", 11, 19, A),
        openinference("o2", "agent", 30, 40, A),
        tool("g2", "agent", 31, 39, A),
    ]
    assert shown(spans) == [("lookup", A, "o1"), ("lookup", A, "o2")]


def test_other_arguments_are_another_call() -> None:
    spans = [agent(), openinference("o1", "agent", 10, 20, A), tool("g1", "agent", 11, 19, B)]
    assert shown(spans) == [("lookup", A, "o1"), ("lookup", B, "g1")]


def test_one_scope_never_shows_a_call_twice_side_by_side() -> None:
    spans = [agent(), tool("g1", "agent", 10, 20, A), tool("g2", "agent", 11, 19, A)]
    assert shown(spans) == [("lookup", A, "g1"), ("lookup", A, "g2")]


def test_mcp_client_and_server_are_the_agents_own_call_and_its_failure() -> None:
    mcp = {"mcp.method.name": "tools/call"}
    spans = [
        agent(),
        tool("outer", "agent", 10, 40, A, attributes={"gen_ai.tool.call.result": "sorry"}),
        span("client", "outer", 12, 38, mcp, name="MCP send tools/call lookup", scope="mcp-python-sdk"),
        tool(
            "server",
            "client",
            14,
            36,
            attributes=mcp | {"error.type": "tool_error"},
            status=Status.ERROR,
            scope="mcp-python-sdk",
        ),
    ]
    (run,) = trajectories(spans)
    (step,) = run.steps
    assert (step.args, step.ok, step.error, step.result, step.span) == (A, False, "sorry", "sorry", "outer")


def test_a_sub_agents_call_of_a_tool_of_the_same_name_is_its_own() -> None:
    spans = [
        agent(),
        tool("outer", "agent", 10, 60, A),
        agent("inner", "outer", 55, "helper"),
        tool("nested", "inner", 20, 30, A),
    ]
    (run,) = trajectories(spans)
    assert [(s.agent, s.span) for s in run.steps] == [("desk", "outer"), ("helper", "nested")]


def test_a_call_that_only_the_history_shows_counts_once() -> None:
    user, call = says("user", "Find A."), asks(("c1", "lookup", A))
    spans = [
        agent(),
        chat("m1", "agent", 1, 10, [user], call),
        chat("m2", "agent", 20, 30, [user, call, answers("c1", "found")], asks(("c2", "lookup", B))),
        chat(
            "m3",
            "agent",
            40,
            50,
            [user, call, answers("c1", "found"), asks(("c2", "lookup", B)), answers("c2", "none")],
            says("assistant", "Done."),
        ),
    ]
    (run,) = trajectories(spans)
    assert [(s.args, s.ok, s.result, s.t) for s in run.steps] == [(A, True, "found", 10.0), (B, True, "none", 30.0)]
    assert run.final_output == "Done."


def test_identical_calls_without_ids_get_their_own_answers() -> None:
    """Gemini gives calls no id: answers belong to calls by name and order."""
    user, call = says("user", "Try twice."), asks(("", "lookup", A))
    first, second = answers("", "busy"), answers("", "found")
    spans = [
        agent(),
        chat("m1", "agent", 1, 10, [user], call),
        chat("m2", "agent", 20, 30, [user, call, first], call),
        chat("m3", "agent", 40, 50, [user, call, first, call, second], says("assistant", "Done.")),
    ]
    (run,) = trajectories(spans)
    assert [(s.args, s.result) for s in run.steps] == [(A, "busy"), (A, "found")]


def test_history_of_an_earlier_turn_is_no_step_of_this_run() -> None:
    past = [says("user", "Find A."), asks(("c1", "lookup", A)), answers("c1", "found"), says("assistant", "Found.")]
    spans = [agent(), chat("m1", "agent", 1, 10, [*past, says("user", "And B?")], asks(("c2", "lookup", B)))]
    (run,) = trajectories(spans)
    assert [(s.args, s.error) for s in run.steps] == [(B, "no_return")]
    assert run.turns == (Turn("And B?"),)
    assert run.history.turns == ("Find A.",)
    assert [(s.tool, s.args, s.result) for s in run.history.steps] == [("lookup", A, "found")]


def test_a_second_trace_of_the_conversation_repeats_no_call() -> None:
    """A model call per trace and no agent spans: the second trace's input repeats the first one's call."""
    user, call, conv = says("user", "Find A."), asks(("c1", "lookup", A)), {"gen_ai.conversation.id": "conv-1"}
    other = "2" * 32
    spans = [
        chat("m1", "", 1, 10, [user], call, **conv),
        chat("m2", "", 20, 30, [user, call, answers("c1", "found")], asks(("c2", "lookup", B)), trace=other, **conv),
    ]
    runs = trajectories(spans)
    assert [[(s.args, s.error) for s in run.steps] for run in runs] == [[(A, "no_return")], [(B, "no_return")]]


def test_a_user_turn_in_the_middle_counts_from_its_own_moment() -> None:
    user, call, more = says("user", "Find A."), asks(("c1", "lookup", A)), says("user", "Take B instead.")
    spans = [
        agent(),
        chat("m1", "agent", 1, 10, [user], call),
        chat("m2", "agent", 20, 30, [user, call, answers("c1", "found"), more], asks(("c2", "lookup", B))),
    ]
    (run,) = trajectories(spans)
    assert run.turns == (Turn("Find A."), Turn("Take B instead.", 1))


def test_what_a_sub_agent_is_told_is_not_the_users_word() -> None:
    spans = [
        agent(),
        chat("m1", "agent", 1, 9, [says("user", "Find A.")], asks(("c1", "helper", {"task": "find A"}))),
        tool("outer", "agent", 10, 60, {"task": "find A"}, tool="helper"),
        agent("inner", "outer", 55, "helper"),
        chat("m2", "inner", 12, 20, [says("user", "find A, says the boss")], says("assistant", "It is here.")),
    ]
    (run,) = trajectories(spans)
    assert run.turns == (Turn("Find A."),)
    assert run.final_output is None


def test_parallel_calls_stand_in_the_models_order() -> None:
    """The second call's thread started first; only the model's output tells which was asked for first."""
    both = asks(("c1", "lookup", A), ("c2", "lookup", B))
    spans = [
        agent(),
        chat("m1", "agent", 1, 10, [says("user", "Both.")], both),
        tool("t1", "agent", 22, 30, A),
        tool("t2", "agent", 12, 31, B),
    ]
    assert shown(spans) == [("lookup", A, "t1"), ("lookup", B, "t2")]


@pytest.mark.parametrize("scopes", [1, 2], ids=["one instrumentation", "two"])
def test_calls_that_all_overlap_cost_no_more_than_their_number(scopes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: a burst of parallel calls must not hold up the processor."""
    asked = 0
    executions = import_module("luckrate_otel.join.executions")
    are_twins = executions._are_twins

    def counting(*args: Any) -> bool:
        nonlocal asked
        asked += 1
        return bool(are_twins(*args))

    monkeypatch.setattr(executions, "_are_twins", counting)
    calls = [tool(f"c{n}", "agent", 1, 90, {"id": n}, scope=f"scope {n % scopes}") for n in range(1000)]
    (run,) = trajectories([agent(), *calls])
    assert len(run.steps) == 1000
    assert asked <= 1000 * executions.MAX_PARALLEL
