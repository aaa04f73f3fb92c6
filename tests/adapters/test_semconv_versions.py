"""A library nobody has met, following the GenAI conventions of any version from 1.28 on, is read right."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import pytest

from luckrate_otel.batch import trajectories
from luckrate_otel.model import Step, Turn
from luckrate_otel.otlp.any_value import TRUNCATED
from luckrate_otel.telemetry import LogRecord, Span
from tests.adapters import semconv as told

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"}

VERSIONS: dict[str, tuple[list[Span], list[LogRecord]]] = {
    "1.31 span events": (
        [
            told.agent({"gen_ai.system": "acme", "gen_ai.agent.name": "desk"}),
            *told.models(told.as_old_events, attributes={"gen_ai.system": "acme"}),
            *told.tools(arguments=False, results=False, operation=False),
        ],
        [],
    ),
    "1.36 log events": (
        [told.agent(AGENT), *told.models(told.without), *told.tools(arguments=False, results=False)],
        told.old_logs(),
    ),
    "1.37 messages as JSON": (
        [told.agent(AGENT), *told.models(told.as_json), *told.tools(arguments=False, results=False)],
        [],
    ),
    "1.37 messages in a span event": (
        [told.agent(AGENT), *told.models(told.as_details_event), *told.tools(arguments=False, results=False)],
        [],
    ),
    "1.38 arguments and results, no call ids": (
        [told.agent(AGENT), *told.models(told.as_json), *told.tools(arguments=True, results=True, ids=False)],
        [],
    ),
    "1.41 structured values": (
        [told.agent(AGENT), *told.models(told.as_values), *told.tools(arguments=True, results=True, structured=True)],
        [],
    ),
    "1.41 workflow": (
        [
            told.agent({"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "desk"}),
            *told.models(told.as_json),
            *told.tools(arguments=True, results=True),
        ],
        [],
    ),
    "0.1.0 workflow with an agent name": (
        [
            told.agent({"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "desk"}),
            *told.models(told.as_json),
            *told.tools(arguments=True, results=True),
        ],
        [],
    ),
    "content in log events only": (
        [told.agent(AGENT), *told.models(told.without), *told.tools(arguments=False, results=False, ids=False)],
        told.details_logs(),
    ),
}


def expected(*, spans: bool) -> tuple[Step, ...]:
    issued = (20.0, 20.0, 55.0)
    return tuple(
        Step(
            tool=tool,
            args=args,
            ok=tool != "pay",
            result=result,
            t=issued[n],
            agent="desk",
            error="card declined" if tool == "pay" else None,
            duration=5.0 if spans else None,
            span=f"{20 + n:016x}" if spans else None,
        )
        for n, (tool, args, _, result, _) in enumerate(told.CALLS)
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_version(version: str) -> None:
    spans, logs = VERSIONS[version]
    (run,) = trajectories(spans, logs)
    assert run.steps == expected(spans=True)
    assert run.turns == (Turn(told.TASK),)
    assert run.system == (told.SYSTEM,)
    assert run.final_output == told.FINAL
    assert run.agent == "desk"
    assert run.call_ids == ("call_1", "call_2", "call_3")


@pytest.mark.parametrize("form", [told.as_json, told.as_values, told.as_old_events], ids=["json", "values", "events"])
def test_steps_from_messages_alone(form: object) -> None:
    """No tool spans: the same steps, in the model's order, with results from later inputs, repeated history once."""
    (run,) = trajectories([told.agent(AGENT), *told.models(form)])
    assert [(s.tool, s.args, s.ok, s.result, s.t, s.agent, s.span) for s in run.steps] == [
        (s.tool, s.args, True, s.result, s.t, s.agent, None) for s in expected(spans=False)
    ]


def test_steps_from_log_events_alone() -> None:
    """Even without any span: the log records carry the ids of theirs."""
    (run,) = trajectories([], told.details_logs())
    assert [(s.tool, s.args, s.result) for s in run.steps] == [(t, a, r) for t, a, _, r, _ in told.CALLS]


def test_last_unanswered_call_never_returned() -> None:
    """A process killed during its third call: no answer, no agent span, no span of the call."""
    models = told.models(told.as_json)[:2]
    (run,) = trajectories(models)
    last = run.steps[-1]
    assert (last.tool, last.args, last.ok, last.result, last.error) == ("pay", {"amount": 40}, None, None, "no_return")
    assert run.final_output is None


def test_spans_and_logs_in_any_order() -> None:
    spans, logs = VERSIONS["content in log events only"]
    first, *_ = trajectories(spans, logs)
    for order in list(permutations(range(len(logs))))[1:]:
        assert trajectories(reversed(spans), [logs[i] for i in order]) == (first,)


def test_truncated_json_is_not_captured() -> None:
    """A size limit cuts a string without keeping it valid: the call stays, what it held is said to be cut."""
    tool = told.tools(arguments=True, results=True)[0]
    cut = json.dumps({"order": "A-17" * 50})[:40]
    span = replace(tool, attributes={**tool.attributes, "gen_ai.tool.call.arguments": cut})
    (run,) = trajectories([told.agent(AGENT), span])
    assert (run.steps[0].tool, run.steps[0].args) == ("lookup", None)
    assert run.gaps == {(0, "args"): "truncated"}
    assert run.coverage.args is False


def test_no_content_is_not_an_empty_call() -> None:
    (run,) = trajectories([told.agent(AGENT), *told.tools(arguments=False, results=False)])
    assert {(s.args, s.result) for s in run.steps} == {(None, None)}
    assert (run.coverage.tools, run.coverage.args, run.coverage.results) == (True, False, False)


def test_agent_without_any_sign_of_tools_says_so() -> None:
    """An unknown library whose agent span stands alone: not "no calls", but nothing that could show one."""
    (run,) = trajectories([told.agent(AGENT)])
    assert run.steps == ()
    assert run.coverage.tools is False


def test_what_the_decoder_cut_is_not_captured() -> None:
    """Values beyond the decoder's bounds are marked by it, as a value or as one more key."""
    tool = told.tools(arguments=True, results=True, structured=True)[0]
    for cut in (TRUNCATED, {"order": "A-17", TRUNCATED: TRUNCATED}):
        attributes = {**tool.attributes, "gen_ai.tool.call.arguments": cut, "gen_ai.tool.call.result": TRUNCATED}
        (run,) = trajectories([told.agent(AGENT), replace(tool, attributes=attributes)])
        assert run.gaps == {(0, "args"): "truncated", (0, "result"): "truncated"}
