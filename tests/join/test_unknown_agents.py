"""Whose call it was when a span above it never came: told where messages tell it, else unknown, never made up."""

from __future__ import annotations

from typing import Any

import pytest

from luckrate_otel.batch import trajectories
from luckrate_otel.facts import Gap
from luckrate_otel.telemetry import Span
from tests.join.test_calls_once import agent, answers, asks, chat, says, span, tool

A, B = {"id": "A"}, {"id": "B"}
USER = says("user", "Find A.")
CALL = asks(("c1", "lookup", A))
ANSWER = answers("c1", "found")
DONE = says("assistant", "Done.")
OVER = asks(("c0", "transfer_to_billing", {}))
LOST = "an id that no span has"


def starts(at: int, sub: Span) -> Span:
    """The same span, begun later."""
    return span(sub.head.span_id, sub.head.parent_id, at, 90, dict(sub.attributes))


def workflow(name: str | None = None) -> Span:
    named = {"gen_ai.workflow.name": name} if name else {}
    conversation = {"gen_ai.input.messages": "[]"}
    return span("flow", "", 0, 100, {"gen_ai.operation.name": "invoke_workflow"} | named | conversation)


RUNS: dict[str, tuple[list[Span], str | None, list[str | None]]] = {
    "a turn of the agent that is then given the answer": (
        [
            agent(name="desk"),
            chat("m1", LOST, 1, 9, [USER], CALL),
            tool("t1", LOST, 10, 20, A),
            chat("m2", "agent", 21, 30, [USER, CALL, ANSWER], DONE),
        ],
        "desk",
        ["desk"],
    ),
    "a turn that no later model call tells of": (
        [agent(name="desk"), chat("m1", LOST, 1, 9, [USER], CALL), tool("t1", LOST, 10, 20, A)],
        "desk",
        [None],
    ),
    "a sub-agent, which an agent had called": (
        [
            agent(name="desk"),
            chat("m1", "agent", 1, 9, [USER], asks(("c0", "billing", {"task": "A"}))),
            tool("t0", "agent", 10, 80, {"task": "A"}, tool="billing"),
            chat("m2", LOST, 11, 19, [says("user", "A")], CALL),
            tool("t1", LOST, 20, 30, A),
            chat("m3", LOST, 31, 39, [says("user", "A"), CALL, ANSWER], DONE),
        ],
        "desk",
        ["desk", None],
    ),
    "an agent that handed over to the one that is given its answer": (
        [
            workflow("shop"),
            chat("m1", LOST, 1, 9, [USER], OVER),
            tool("t0", LOST, 10, 11, {}, tool="transfer_to_billing"),
            starts(20, agent("sub", "flow", name="billing")),
            chat("m2", "sub", 21, 29, [USER, OVER, answers("c0", "billing")], CALL),
            tool("t1", "sub", 30, 40, A),
        ],
        None,
        [None, "billing"],
    ),
    "the only agent of a workflow, whose name is not the agent's": (
        [workflow("order support"), chat("m1", LOST, 1, 9, [USER], CALL), tool("t1", LOST, 10, 20, A)],
        None,
        [None],
    ),
    "the first of two in a row, which its tools name": (
        [
            workflow(),
            tool("t1", LOST, 10, 20, A, attributes={"gen_ai.agent.name": "clerk"}),
            starts(30, agent("sub", "flow", name="officer")),
            tool("t2", "sub", 40, 50, B),
        ],
        "clerk",
        ["clerk", "officer"],
    ),
    "somebody above an agent without name": (
        [
            span("agent", LOST, 0, 100, {"gen_ai.operation.name": "invoke_agent"}),
            tool("t1", "agent", 10, 20, A),
            tool("t0", "agent", 30, 60, {}, tool="billing"),
            starts(31, agent("sub", "t0", name="billing")),
        ],
        "billing",
        ["main", "main"],
    ),
    "somebody, in a run that names no agent": (
        [chat("m1", LOST, 1, 9, [USER], CALL), tool("t1", LOST, 10, 20, A)],
        None,
        ["main"],
    ),
}


@pytest.mark.parametrize(("spans", "run_agent", "expected"), RUNS.values(), ids=RUNS)
def test_whose_call_it_was_below_a_span_that_never_came(
    spans: list[Span], run_agent: str | None, expected: list[str | None]
) -> None:
    """The missing span is that of the case's name. expected: per step the agent, None where it is unknown."""
    (run,) = trajectories(spans)
    unknown = {at for (at, part), gap in run.gaps.items() if part == "agent" and gap is Gap.INCOMPLETE}
    assert [None if at in unknown else step.agent for at, step in enumerate(run.steps)] == expected
    assert {run.steps[at].agent for at in unknown} <= {"main"}
    assert run.agent == run_agent


@pytest.mark.parametrize(("end", "expected"), [(40, "Desk"), (15, None)])
def test_an_agent_beside_its_tools_is_the_one_at_work(end: int, expected: str | None) -> None:
    """n8n: nodes stand beside each other. A tool that ran while no agent did is of one that never came."""

    def node(span_id: str, start: int, end: int, kind: str, name: str) -> Span:
        attributes: dict[str, Any] = {"n8n.node.type": f"@n8n/n8n-nodes-langchain.{kind}", "n8n.node.name": name}
        return span(span_id, "flow", start, end, attributes, name="node.execute", scope="n8n-workflow")

    flow = span("flow", "", 0, 100, {"n8n.workflow.name": "shop"}, name="workflow.execute", scope="n8n-workflow")
    spans = [flow, node("a", 1, end, "agent", "Desk"), node("t", 10, 20, "toolWorkflow", "lookup")]
    (run,) = trajectories(spans)
    (step,) = run.steps
    assert (None if (0, "agent") in run.gaps else step.agent) == expected


def test_the_name_of_a_tool_is_the_models_even_if_its_model_call_never_came() -> None:
    """CrewAI's span says `Delegate work`; the history of a later model call has what the model called."""
    call = asks(("c1", "delegate_work", A))
    spans = [
        agent(),
        tool("t1", "agent", 10, 20, A, tool="Delegate work"),
        chat("m2", "agent", 21, 30, [USER, call, ANSWER], DONE),
    ]
    (run,) = trajectories(spans)
    assert [step.tool for step in run.steps] == ["delegate_work"]


@pytest.mark.parametrize(("spanned", "ok"), [(True, None), (False, True)])
def test_what_a_span_would_have_told_its_absence_does_not(spanned: bool, ok: bool | None) -> None:
    """An answer that no text marks as a failure: a success where messages are all there is, unknown where the tool's
    other calls have spans that say how they ended.
    """
    again = asks(("c2", "lookup", B))
    history = [USER, CALL, answers("c1", "no route to host"), again, answers("c2", "no route to host")]
    spans = [
        agent(),
        chat("m1", "agent", 1, 9, [USER], CALL),
        chat("m2", "agent", 21, 30, history[:3], again),
        chat("m3", "agent", 51, 60, history, DONE),
    ]
    other = [tool("t2", "agent", 31, 40, B, attributes={"error.type": "NetworkError"})] if spanned else []
    (run,) = trajectories([*spans, *other])
    assert run.steps[0].ok is ok
