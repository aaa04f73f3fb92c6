"""n8n executions give the run they hold, whatever form they were stored in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from luckrate_otel.errors import InputError
from luckrate_otel.facts import CloseReason, Gap
from luckrate_otel.model import Coverage, History, Step, Trajectory, Turn
from luckrate_otel.payloads import from_n8n, recognise
from luckrate_otel.telemetry import Status
from tests.payloads.payload_making import AGENT, agent_run, captured, execution, tool_run, trigger_run

DOWN = (
    "Service unavailable - try again later or consider setting this node to retry automatically (in the node settings)"
)
POLICY = '{"amount": 200, "auto_approve_limit": 100, "allowed": false, "note": "refunds above 100 USD need a human"}'
RULE = "You are a support agent for a shop. Never refund more than 100 USD without a human."


def only(value: Any) -> Trajectory:
    (trajectory,) = from_n8n(value)
    return trajectory


def tools(value: Any) -> list[str]:
    return [step.tool for step in only(value).steps]


# ---- captured -------------------------------------------------------------------------------------

S1 = (
    Step(
        "lookup_order",
        {"order_id": "88213"},
        True,
        '{"order_id":"88213","amount":200,"status":"delivered"}',
        229.0,
        "Order Support Agent",
        None,
        189.0,
    ),
    Step("check_policy", {"amount": 200}, True, POLICY, 458.0, "Order Support Agent", None, 383.0),
    Step(
        "escalate_to_human",
        {"order_id": "88213", "reason": "refund of 200 USD is above the auto-approve limit"},
        True,
        '{"ticket": "T-1042", "order_id": "88213", "reason": "refund of 200 USD is above the auto-approve limit", '
        '"status": "escalated"}',
        1072.0,
        "Order Support Agent",
        None,
        228.0,
    ),
)


def test_a_captured_execution_gives_the_whole_trajectory() -> None:
    assert only(captured("s1.execution.json")) == Trajectory(
        steps=S1,
        turns=(Turn("Please refund order 88213 (200 USD). [s1]"),),
        system=(RULE,),
        final_output="Your refund for order 88213 needs a human; I have escalated it.",
        run_id="n8n:2",
        trace_ids=("4db132829c6e05866f75a17d87dcd2e9",),
        adapters=("n8n-execution",),
        agent="Order Support Agent",
        call_ids=("call_0_e3051ec182", "call_1_399c50720a", "call_2_1fa1945948"),
        root_status=Status.OK,
        start_ns=1796096768265000000,
        duration=1529.0,
        tokens=240,
        attributes={
            "n8n.execution.id": "2",
            "n8n.execution.mode": "webhook",
            "n8n.execution.status": "success",
            "n8n.workflow.id": "IJQyYVMuX1QDf3pC",
            "n8n.workflow.name": "Order Support",
            "n8n.traceparent": "00-4db132829c6e05866f75a17d87dcd2e9-1e7ce15212e546e3-01",
        },
    )


def test_the_flatted_form_gives_the_same_without_what_the_envelope_told() -> None:
    assert only(captured("s1.flatted.json")) == Trajectory(
        steps=S1,
        turns=(Turn("Please refund order 88213 (200 USD). [s1]"),),
        system=(RULE,),
        final_output="Your refund for order 88213 needs a human; I have escalated it.",
        run_id="n8n:started-1796096768265",
        adapters=("n8n-execution",),
        agent="Order Support Agent",
        call_ids=("call_0_e3051ec182", "call_1_399c50720a", "call_2_1fa1945948"),
        start_ns=1796096768265000000,
        tokens=240,
    )


def test_calls_of_a_sub_workflow_belong_to_the_call_that_started_it() -> None:
    found = only(captured("s8b.execution.json"))
    assert found.steps == (
        Step(
            "refund_desk",
            {"request": "Please handle the 200 USD refund for order 88213"},
            True,
            '{"output": "Specialist: refunded 200 USD on order 88213."}',
            37.0,
            "Triage Agent",
            None,
            311.0,
        ),
        Step("check_policy", {"amount": 200}, True, POLICY, 182.0, "Refund Desk Agent", None, 22.0),
        Step(
            "issue_refund",
            {"order_id": "88213", "amount": 200},
            True,
            '{"refund_id": "rf_88213", "order_id": "88213", "amount": 200, "status": "refunded"}',
            256.0,
            "Refund Desk Agent",
            None,
            25.0,
        ),
    )
    assert found.turns == (Turn("Refund order 88213 please. [s8b]"),)
    assert found.final_output == "The refund desk refunded order 88213."


def test_the_order_of_parent_and_child_in_the_array_does_not_matter() -> None:
    parent, child = captured("s8b.execution.json")
    assert from_n8n([child, parent]) == from_n8n([parent, child])


def test_a_child_alone_is_a_run_of_its_own() -> None:
    child = captured("s8b.execution.json")[1]
    assert tools(child) == ["check_policy", "issue_refund"]
    assert only(child).run_id == "n8n:13"


def flat(value: Any) -> list[Any]:
    """The flatted form of a value, as n8n stores it: texts and containers become entries."""
    table: list[Any] = []

    def entry(member: Any) -> Any:
        if not isinstance(member, dict | list | str):
            return member
        place = len(table)
        table.append(member)
        if isinstance(member, dict):
            table[place] = {key: entry(each) for key, each in member.items()}
        elif isinstance(member, list):
            table[place] = [entry(each) for each in member]
        return str(place)

    entry(value)
    return table


def test_flatted_parent_and_child_find_each_other_by_the_ids_they_name() -> None:
    parent, child = captured("s8b.execution.json")
    found = only([flat(parent["data"]), flat(child["data"])])
    assert found.steps == only([parent, child]).steps
    assert found.run_id == "n8n:12"


def test_which_flatted_parent_is_meant_may_not_be_told() -> None:
    parent, child = captured("s8b.execution.json")
    flatted = [flat(parent["data"]), flat(parent["data"]), flat(child["data"])]
    assert [len(t.steps) for t in from_n8n(flatted)] == [1, 1, 2]


def test_a_sub_workflow_that_a_node_started_stands_where_that_node_ran() -> None:
    child = execution({"inner": [tool_run({}, startTime=20)]}, id="8")
    child["data"]["parentExecution"] = {"executionId": "7"}
    runs = {
        "before": [tool_run({}, startTime=10)],
        "Execute": [{"startTime": 15, "source": [], "metadata": {"subExecution": {"executionId": "8"}}}],
        "after": [tool_run({}, startTime=30)],
    }
    found = only([execution(runs), child])
    assert [(step.tool, step.t) for step in found.steps] == [("before", 0.0), ("inner", 10.0), ("after", 20.0)]


def test_both_kinds_of_agent_in_one_workflow_stand_in_order() -> None:
    listed: Any = {"main": [[{"json": {"toolCalls": [{"toolName": "m", "input": {}, "result": "x"}], "text": "done"}}]]}
    runs = {
        "Message": [agent_run(startTime=20, data=listed)],
        "a": [tool_run({}, startTime=10)],
        "b": [tool_run({}, startTime=30)],
        "Agent": [agent_run(startTime=40)],
    }
    found = only(execution(runs, ()))
    assert [(step.tool, step.agent) for step in found.steps] == [("a", "Agent"), ("m", "Message"), ("b", "Agent")]
    assert found.final_output == "done"


def test_a_listed_call_without_a_name_is_no_call() -> None:
    listed: Any = {"main": [[{"json": {"toolCalls": [{"input": {}}, None, "x"]}}]]}
    assert tools(execution({"Message": [agent_run(data=listed)]}, ())) == []


LISTED = {
    "error with words": ({"status": "error", "error": "denied"}, False, "denied"),
    "error without": ({"status": "error"}, False, '{"status": "error"}'),
    "several items": ({"status": "success", "data": [{"json": 1}, {"json": 2}]}, True, "[1, 2]"),
    "no status": ({"x": 1}, None, '{"x": 1}'),
    "text": ("x", None, "x"),
}


@pytest.mark.parametrize("name", LISTED)
def test_results_as_the_agents_feature_lists_them(name: str) -> None:
    result, ok, text = LISTED[name]
    listed: Any = {"main": [[{"json": {"toolCalls": [{"toolName": "m", "input": {}, "result": result}]}}]]}
    (step,) = only(execution({"Message": [agent_run(data=listed)]}, ())).steps
    assert (step.ok, step.result, step.error) == (ok, text, text if ok is False else None)


def test_failed_calls_keep_what_the_model_was_told() -> None:
    for form in ("s5.execution.json", "s5.flatted.json"):
        steps = only(captured(form)).steps
        assert [(s.tool, s.args, s.ok, s.error, s.result) for s in steps] == [
            ("check_warehouse", {"sku": "A-1"}, False, DOWN, DOWN)
        ] * 5


def test_calls_come_in_order_of_execution_not_of_first_finish() -> None:
    assert tools(captured("s6.execution.json")) == [
        "lookup_order",
        "check_policy",
        "lookup_order",
        "lookup_order",
        "lookup_order",
    ]


def test_the_agents_feature_does_not_tell_whether_an_empty_result_was_a_failure() -> None:
    found = only(captured("agents-s5.execution.json"))
    assert found.steps == (Step("check_warehouse", {"sku": "A-1"}, None, None, 2.0, "Order Support"),) * 5
    assert found.gaps == {(i, name): Gap.NOT_CAPTURED for i in range(5) for name in ("result", "ok")}
    assert (found.final_output, found.task_input) == (
        "Sorry, the warehouse service is down.",
        "Is sku A-1 in the warehouse? [s5]",
    )


def test_the_agents_feature_unwraps_items() -> None:
    assert [(s.tool, s.ok, s.result) for s in only(captured("agents-s1.execution.json")).steps][:2] == [
        ("lookup_order", True, '{"order_id": "88213", "amount": 200, "status": "delivered"}'),
        ("check_policy", True, POLICY),
    ]


# ---- order ----------------------------------------------------------------------------------------


def test_gaps_in_the_execution_index_do_not_matter() -> None:
    runs = {
        "b": [tool_run({}, executionIndex=40, startTime=1)],
        "a": [tool_run({}, executionIndex=7, startTime=9), tool_run({}, executionIndex=41, startTime=0)],
    }
    assert tools(execution(runs)) == ["a", "b", "a"]


def test_one_run_without_execution_index_puts_all_of_them_in_order_of_time() -> None:
    runs = {
        "b": [tool_run({}, executionIndex=1, startTime=30)],
        "a": [tool_run({}, startTime=10), tool_run({}, executionIndex=0, startTime=40)],
    }
    assert tools(execution(runs)) == ["a", "b", "a"]


def test_ties_of_time_keep_the_runs_of_a_node_in_order() -> None:
    runs = {"b": [tool_run({"n": 1}), tool_run({"n": 3})], "a": [tool_run({"n": 2})]}
    assert [step.args for step in only(execution(runs)).steps] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_without_any_times_the_order_is_that_of_the_file() -> None:
    runs = {"b": [tool_run({}, startTime=None)], "a": [tool_run({}, startTime=None)]}
    found = only(execution(runs))
    assert [(step.tool, step.t) for step in found.steps] == [("b", 0.0), ("a", 0.0)]


def test_an_agent_tool_comes_before_the_calls_it_made_although_its_run_is_stored_later() -> None:
    by_specialist = {"source": [{"previousNode": "specialist"}]}
    paused = {"metadata": {"nodeWasResumed": True}}
    runs = {
        "lookup": [tool_run({}, executionIndex=3, startTime=100)],
        "check": [tool_run({}, executionIndex=8, startTime=300, **by_specialist)],
        "pay": [tool_run({}, executionIndex=11, startTime=400, **by_specialist)],
        "specialist": [tool_run({"ask": "x"}, {"output": "paid"}, executionIndex=12, startTime=450, **paused)],
        "Agent": [agent_run(executionIndex=13, startTime=500)],
    }
    nodes = (AGENT, {"name": "specialist", "type": "@n8n/n8n-nodes-langchain.agentTool"})
    found = only(execution(runs, nodes))
    assert [(s.tool, s.agent, s.t, s.duration) for s in found.steps] == [
        ("lookup", "Agent", 0.0, 5.0),
        ("specialist", "Agent", 200.0, None),
        ("check", "specialist", 200.0, 5.0),
        ("pay", "specialist", 300.0, 5.0),
    ]
    assert found.steps[1].result == "paid"
    assert (found.agent, found.final_output) == ("Agent", "done")


def test_an_agent_tool_called_twice_has_its_own_calls_each_time() -> None:
    by_specialist = {"source": [{"previousNode": "specialist"}]}
    paused = {"metadata": {"nodeWasResumed": True}}
    runs = {
        "check": [tool_run({}, executionIndex=i, **by_specialist) for i in (2, 7)],
        "specialist": [tool_run({"n": i}, executionIndex=i, **paused) for i in (3, 8)],
        "lookup": [tool_run({}, executionIndex=5)],
    }
    assert tools(execution(runs)) == ["specialist", "check", "lookup", "specialist", "check"]


def test_before_engine_requests_an_agent_tool_was_stored_before_its_calls() -> None:
    runs = {
        "specialist": [tool_run({}, executionIndex=2), tool_run({}, executionIndex=5)],
        "check": [tool_run({}, executionIndex=i, source=[{"previousNode": "specialist"}]) for i in (3, 6)],
    }
    assert tools(execution(runs)) == ["specialist", "check", "specialist", "check"]


def test_agents_that_claim_to_have_called_each_other_are_kept() -> None:
    runs = {"a": [tool_run({}, source=[{"previousNode": "b"}])], "b": [tool_run({}, source=[{"previousNode": "a"}])]}
    assert sorted(tools(execution(runs))) == ["a", "b"]


# ---- what the agent remembers of its requests ----------------------------------------------------


def requests(earlier: list[Any], last: list[Any]) -> dict[str, Any]:
    return {"subNodeExecutionData": {"actions": last, "metadata": {"previousRequests": earlier}}}


def test_requests_lend_names_and_ids_and_are_no_calls_of_their_own() -> None:
    runs = {
        "Lookup Order": [tool_run({"order_id": "1"}, executionIndex=1)],
        "Mail": [tool_run({"to": "a", "id": "m-1"}, executionIndex=4)],
        "Agent": [
            agent_run(
                executionIndex=6,
                metadata=requests(
                    [{"action": {"tool": "Lookup_Order", "toolInput": {"order_id": "1"}, "toolCallId": "c1"}}],
                    [
                        {
                            "action": {
                                "nodeName": "Mail",
                                "input": {"to": "a", "id": "m-1"},
                                "id": "c2",
                                "metadata": {"toolName": "send_mail"},
                            }
                        }
                    ],
                ),
            )
        ],
    }
    found = only(execution(runs))
    assert [(s.tool, s.args) for s in found.steps] == [
        ("Lookup_Order", {"order_id": "1"}),
        ("send_mail", {"to": "a", "id": "m-1"}),
    ]
    assert found.call_ids == ("c1", "c2")


def test_the_call_id_that_the_engine_adds_is_no_argument() -> None:
    runs = {"a": [tool_run({"x": 1, "id": "call_abcdef12"})], "b": [tool_run({"id": "order-7"}, startTime=1001)]}
    found = only(execution(runs))
    assert [step.args for step in found.steps] == [{"x": 1}, {"id": "order-7"}]
    assert found.call_ids == ("call_abcdef12", None)


def test_the_call_id_settles_which_request_is_meant() -> None:
    asked: list[Any] = [
        {"action": {"tool": name, "toolInput": {}, "toolCallId": name}} for name in ("call_bbbbbb", "call_aaaaaa")
    ]
    runs = {
        "t": [tool_run({"id": "call_aaaaaa"}), tool_run({"id": "call_bbbbbb"}, startTime=1001)],
        "Agent": [agent_run(metadata=requests(asked, []))],
    }
    found = only(execution(runs))
    assert found.call_ids == ("call_bbbbbb", "call_aaaaaa")  # in the order the model asked, whatever ran first
    assert [step.t for step in found.steps] == [0.0, 0.0]


def test_a_toolkit_of_an_unknown_kind_is_known_by_its_requests() -> None:
    asked: list[Any] = [{"action": {"tool": "lookup", "toolInput": {"x": 1}, "toolCallId": "c1"}}]
    runs = {"Kit": [tool_run({"tool": "lookup", "x": 1})], "Agent": [agent_run(metadata=requests(asked, []))]}
    (step,) = only(execution(runs)).steps
    assert (step.tool, step.args) == ("lookup", {"x": 1})


def test_a_toolkit_node_gives_each_of_its_tools_its_own_name() -> None:
    nodes = (AGENT, {"name": "Shop MCP", "type": "@n8n/n8n-nodes-langchain.mcpClientTool"})
    runs = {"Shop MCP": [tool_run({"tool": "lookup", "order_id": "1"}, {"response": [{"type": "text", "text": "ok"}]})]}
    (step,) = only(execution(runs, nodes)).steps
    assert (step.tool, step.args, step.result) == ("lookup", {"order_id": "1"}, "ok")


# ---- outcome -------------------------------------------------------------------------------------

OUTCOMES = {
    "error": (
        tool_run({}, {"error": "boom"}, executionStatus="error", error={"message": "boom"}),
        False,
        "boom",
        "boom",
    ),
    "error without output": (tool_run({}, executionStatus="error", error={"message": "boom"}), False, "boom", None),
    "error without words": (tool_run({}, executionStatus="crashed"), False, "error", None),
    "continue on fail": (
        tool_run({}, data={"ai_tool": [[{"json": {"x": 1}, "error": "no"}]]}),
        False,
        "no",
        '{"x": 1}',
    ),
    "still running": (tool_run({}, executionStatus="running"), None, "no_return", None),
    "cancelled": (tool_run({}, executionStatus="canceled"), None, "no_return", None),
    "no status": (tool_run({}, {"response": "x"}, executionStatus=None), None, None, "x"),
    "an error key is the tool's own": (
        tool_run({}, {"error": "none", "code": 0}),
        True,
        None,
        '{"error": "none", "code": 0}',
    ),
    "code tool": (tool_run({}, {"response": '{"a":1}'}), True, None, '{"a":1}'),
    "several items": (tool_run({}, data={"ai_tool": [[{"json": 1}, {"json": {"a": 2}}]]}), True, None, '[1, {"a": 2}]'),
    "empty": (tool_run({}, {"response": ""}), True, None, ""),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_outcome(name: str) -> None:
    run, ok, error, result = OUTCOMES[name]
    (step,) = only(execution({"t": [run]})).steps
    assert (step.ok, step.error, step.result) == (ok, error, result)


def test_a_node_used_as_tool_keeps_its_own_response_key() -> None:
    nodes = (AGENT, {"name": "t", "type": "n8n-nodes-base.httpRequestTool"})
    (step,) = only(execution({"t": [tool_run({}, {"response": "x"})]}, nodes)).steps
    assert step.result == '{"response": "x"}'


def test_several_input_items_are_several_calls() -> None:
    run = tool_run(
        {},
        inputOverride={"ai_tool": [[{"json": {"n": 1}}, {"json": {"n": 2}}]]},
        data={"ai_tool": [[{"json": {"response": "one"}}, {"json": {"response": "two"}}]]},
    )
    assert [(s.args, s.result) for s in only(execution({"t": [run]})).steps] == [({"n": 1}, "one"), ({"n": 2}, "two")]


def test_a_retried_node_is_the_one_call_that_was_stored() -> None:
    nodes = (AGENT, {"name": "t", "type": "n8n-nodes-base.httpRequestTool", "retryOnFail": True, "maxTries": 3})
    run = tool_run({"sku": "A"}, {"error": "503"}, executionStatus="error", error={"message": "503"}, executionTime=171)
    assert [(s.ok, s.duration) for s in only(execution({"t": [run]}, nodes)).steps] == [(False, 171.0)]


def test_the_second_run_that_only_holds_the_error_belongs_to_the_call_before() -> None:
    call = {k: v for k, v in tool_run({"x": 1}).items() if k != "executionStatus"}
    error = {"executionStatus": "error", "error": {"message": "child failed"}, "source": [], "startTime": 1001}
    (step,) = only(execution({"t": [call, error]})).steps
    assert (step.args, step.ok, step.error) == ({"x": 1}, False, "child failed")


# ---- not captured --------------------------------------------------------------------------------

TRIMMED = {"__isTrimmedManualExecutionDataItem": True}
HIDDEN = {"json": {}, "redaction": {"redacted": True, "reason": "workflow_redaction_policy"}}
MISSING = {
    "redacted item": (
        tool_run({}, inputOverride={"ai_tool": [[HIDDEN]]}, data={"ai_tool": [[HIDDEN]]}),
        {"args": Gap.REDACTED, "result": Gap.REDACTED},
    ),
    "redacted field": (
        tool_run({"to": "a", "body": {"__redacted": True}}, {"deep": [{"__redacted": True}]}),
        {"args": Gap.REDACTED, "result": Gap.REDACTED},
    ),
    "trimmed": (
        tool_run(TRIMMED, data={"main": [[{"json": TRIMMED}]]}),
        {"args": Gap.TRUNCATED, "result": Gap.TRUNCATED},
    ),
    "nothing": (
        tool_run({}, inputOverride={"ai_tool": None}, data={}) | {"inputOverride": {"ai_tool": []}},
        {"args": Gap.NOT_CAPTURED, "result": Gap.NOT_CAPTURED},
    ),
    "args of another kind": (tool_run("text", {"response": "x"}), {"args": Gap.NOT_CAPTURED}),
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_hidden_or_cut_is_not_captured_and_says_why(name: str) -> None:
    run, gaps = MISSING[name]
    found = only(execution({"t": [run]}))
    assert found.gaps == {(0, field): gap for field, gap in gaps.items()}
    assert [name for name in ("args", "result") if getattr(found.steps[0], name) is None] == list(gaps)


def test_a_redacted_error_still_is_an_error() -> None:
    run = tool_run({"x": 1}, executionStatus="error", redactedError={"type": "NodeApiError"})
    found = only(execution({"t": [run]}))
    assert found.steps == (Step("t", {"x": 1}, False, None, 0.0, "Agent", "NodeApiError", 5.0),)
    assert found.gaps == {(0, "result"): Gap.REDACTED}


def test_a_redacted_trigger_and_answer_are_no_task_and_no_output() -> None:
    runs = {
        "Trigger": [trigger_run({}, data={"main": [[HIDDEN]]})],
        "Agent": [agent_run(data={"main": [[HIDDEN]]})],
    }
    found = only(execution(runs))
    assert (found.turns, found.final_output) == ((), None)
    assert found.coverage == Coverage(task_input=False, final_output=False)


def test_an_execution_stored_without_data_says_that_nothing_can_be_seen() -> None:
    stored = {"id": "9", "mode": "webhook", "workflowId": "w", "status": "success", "finished": True}
    found = only(stored)
    assert (found.run_id, found.steps) == ("n8n:9", ())
    assert found.coverage == Coverage(False, False, False, False, False)


# ---- which executions are runs -------------------------------------------------------------------


def test_a_workflow_in_which_no_agent_ran_is_no_run() -> None:
    assert from_n8n(execution({"Set": [trigger_run({"a": 1})]})) == ()


def test_tools_called_from_outside_have_no_agent() -> None:
    nodes = ({"name": "Agent", "type": "@n8n/n8n-nodes-langchain.mcpTrigger"},)
    found = only(execution({"t": [tool_run({"x": 1})]}, nodes))
    assert (found.has_agent, found.agent, len(found.steps)) == (False, None, 1)


def test_an_agent_that_died_is_known_from_its_calls() -> None:
    found = only(execution({"t": [tool_run({"x": 1})]}, status="crashed"))
    assert (found.agent, found.final_output, found.root_status) == ("Agent", None, Status.ERROR)


def test_an_unfinished_execution_is_incomplete() -> None:
    assert only(execution({"t": [tool_run({})]}, status="waiting")).close_reason is CloseReason.NO_ROOT


@pytest.mark.parametrize("mode", ["manual", "retry"])
def test_runs_carried_in_from_an_earlier_execution_did_not_happen_here(mode: str) -> None:
    runs = {
        "Trigger": [trigger_run({"chatInput": "hello"}, startTime=1_000)],
        "t": [tool_run({"n": 1}, startTime=2_000), tool_run({"n": 2}, startTime=1_000_000)],
        "Agent": [agent_run(startTime=1_000_001)],
    }
    found = only(execution(runs, mode=mode, createdAt="1970-01-01T00:16:40.000Z"))
    assert [step.args for step in found.steps] == [{"n": 2}]
    assert found.turns == (Turn("hello"),)


def test_a_production_run_drops_nothing() -> None:
    runs = {"t": [tool_run({"n": 1}, startTime=2_000)]}
    assert tools(execution(runs, mode="webhook", createdAt="1970-01-01T00:16:40.000Z")) == ["t"]


def test_a_pinned_tool_result_still_is_a_call() -> None:
    runs = {"t": [tool_run({"n": 1}, {"response": "pinned"})], "Agent": [agent_run()]}
    value = execution(runs, mode="manual")
    value["data"]["resultData"]["pinData"] = {"t": [{"json": {"response": "pinned"}}]}
    assert [(s.tool, s.result) for s in only(value).steps] == [("t", "pinned")]


def test_executions_that_start_each_other_in_a_circle_are_read_once_each() -> None:
    def linked(own: str, other: str) -> dict[str, Any]:
        run = tool_run({"own": own}, metadata={"subExecution": {"executionId": other}})
        value = execution({"t": [run]}, id=own)
        value["data"]["parentExecution"] = {"executionId": other}
        return value

    assert [(t.run_id, len(t.steps)) for t in from_n8n([linked("1", "2"), linked("2", "1")])] == [
        ("n8n:1", 1),
        ("n8n:2", 1),
    ]


def test_an_agent_in_a_sub_workflow_is_the_agent_of_a_workflow_without_one() -> None:
    child = execution({"Trigger": [trigger_run({"chatInput": "go"})], "Agent": [agent_run("ok")]}, id="8")
    child["data"]["parentExecution"] = {"executionId": "7"}
    found = only([execution({"Execute": [trigger_run({})]}, nodes=()), child])
    assert (found.run_id, found.agent, found.task_input, found.final_output) == ("n8n:7", "Agent", "go", "ok")


def test_executions_nested_beyond_the_bound_are_runs_of_their_own() -> None:
    def nested(level: int) -> dict[str, Any]:
        value = execution({"t": [tool_run({"level": level})]}, id=str(level))
        value["data"]["parentExecution"] = {"executionId": str(level - 1)}
        return value

    assert [len(t.steps) for t in from_n8n([nested(i) for i in range(51)])] == [51]
    assert [len(t.steps) for t in from_n8n([nested(i) for i in range(52)])] == [51, 1]
    assert len(from_n8n([nested(i) for i in range(3000)])) == 2950


# ---- task ----------------------------------------------------------------------------------------


def agent_node(**parameters: Any) -> dict[str, Any]:
    return {**AGENT, "parameters": parameters}


HUMAN = {
    "executionStatus": "success",
    "startTime": 1500,
    "source": [{"previousNode": "Agent"}],
    "inputOverride": {
        "ai_languageModel": [[{"json": {"messages": ["System: Be kind.\nHuman: old\nAI: yes\nHuman: two\nlines"]}}]]
    },
}
CHAT = {"chatInput": "from chat", "sessionId": "s-1", "body": {"message": "from body", "list": [{"t": 5}]}}
TASKS = {
    "prompt setting": (agent_node(promptType="define", text="={{ $json.body.message }}"), "from body"),
    "mixed template": (agent_node(text="=Say: {{ $json.body.list[0]['t'] }}!"), "Say: 5!"),
    "named node": (agent_node(text="={{ $('Trigger').item.json.chatInput }}"), "from chat"),
    "fixed text": (agent_node(text="Tidy up."), "Tidy up."),
    "chat trigger": (agent_node(promptType="auto", text="stale"), "from chat"),
    "expression beyond us": (agent_node(text="={{ $json.body.message.toUpperCase() }}"), "two\nlines"),
}


@pytest.mark.parametrize("name", TASKS)
def test_task(name: str) -> None:
    node, text = TASKS[name]
    runs = {"Trigger": [trigger_run(CHAT)], "Model": [HUMAN], "Agent": [agent_run()]}
    found = only(execution(runs, (node,)))
    assert found.turns == (Turn(text),)
    assert found.history == History(turns=("old",))
    assert found.conversation_id == "s-1"


def test_without_settings_or_model_the_trigger_tells_the_task() -> None:
    runs = {"Trigger": [trigger_run({"body": {"query": "where?"}})], "Agent": [agent_run()]}
    assert only(execution(runs)).turns == (Turn("where?"),)


def test_each_input_item_is_asked_for_itself() -> None:
    trigger = trigger_run({}, data={"main": [[{"json": {"chatInput": "one"}}, {"json": {"chatInput": "two"}}]]})
    answers = agent_run(data={"main": [[{"json": {"output": "1"}}, {"json": {"output": "2"}}]]})
    found = only(execution({"Trigger": [trigger], "Agent": [answers]}))
    assert (found.turns, found.final_output) == ((Turn("one"), Turn("two")), "1\n2")


# ---- forms ---------------------------------------------------------------------------------------


def test_a_database_row_and_the_endpoints_envelopes_are_seen_through() -> None:
    flat = captured("s1.flatted.json")
    row = {"executionId": 2, "workflowData": json.dumps({"nodes": []}), "data": json.dumps(flat)}
    assert only(row).steps == S1
    assert only(row).run_id == "n8n:2"
    whole = captured("s1.execution.json")
    assert from_n8n({"data": whole, "nextCursor": None}) == from_n8n(whole)
    assert from_n8n({"data": whole[0]}) == from_n8n(whole[0])


@pytest.mark.parametrize("value", [None, 1, "x", [], {}, [1], {"data": []}, {"data": {"a": 1}}, {"id": 1}])
def test_anything_else_is_no_execution(value: Any) -> None:
    with pytest.raises(InputError):
        from_n8n(value)
    assert recognise(value) is None
