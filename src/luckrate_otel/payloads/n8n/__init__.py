"""n8n executions → trajectories: one per top-level execution, sub-workflows folded into the call that started them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from luckrate_otel.facts import NO_RETURN, CloseReason, Gap
from luckrate_otel.model import Coverage, History, Step, Trajectory, Turn
from luckrate_otel.payloads.coverage import covered
from luckrate_otel.payloads.fields import get, moment_ms, nanoseconds, number, word
from luckrate_otel.payloads.n8n.calls import ToolCall, is_call, tool_calls
from luckrate_otel.payloads.n8n.content import entries
from luckrate_otel.payloads.n8n.execution import Execution, NodeRun, read_execution, unwrap
from luckrate_otel.payloads.n8n.family import Family, family, sub_execution_id
from luckrate_otel.payloads.n8n.messaged import is_messaged, messaged_calls
from luckrate_otel.payloads.n8n.texts import agent_name, conversation_id, final_output, system_texts, task_texts
from luckrate_otel.telemetry import Status

ADAPTER = "n8n-execution"

_STILL_GOING = frozenset({"new", "running", "waiting"})
_STATUS = {"success": Status.OK, "error": Status.ERROR, "crashed": Status.ERROR}
# Nodes that call tools for someone outside: no agent of this workflow asked.
_NOT_AGENTS = frozenset({"mcpTrigger"})


@dataclass(frozen=True, slots=True)
class _Placed:
    """A call with the execution it was found in."""

    call: ToolCall
    execution: Execution


def read(value: Any) -> tuple[Trajectory, ...] | None:
    """The runs in n8n executions of any form, in file order; None when value holds no execution.

    An execution in which no agent ran gives nothing; one stored without its data gives a trajectory that says so.
    """
    raw = unwrap(value)
    if raw is None:
        return None
    known = family(tuple(map(read_execution, raw)))
    return tuple(trajectory for index in known.roots for trajectory in _trajectory(known, index))


def _trajectory(known: Family, index: int) -> Iterator[Trajectory]:
    execution = known.executions[index]
    members = [known.executions[each] for each in known.descendants(index)]
    outline = _outline(execution, members)
    if all(member.runs is None for member in members):
        yield replace(outline, coverage=Coverage(False, False, False, False, False))
        return
    placed = _placed(known, index)
    owner = next((member for member in members if _agents(member)), execution)  # the outermost with an agent
    agents = _agents(owner)
    if not placed and not agents:
        return
    asked, earlier = task_texts(owner, agents[0].node) if agents else ((), ())
    final = final_output(owner, agents[-1], agent_name(owner, agents[-1].node)) if agents else None
    steps = _steps(placed, _start_ms(execution) or 0.0)
    yield replace(
        outline,
        steps=steps,
        turns=tuple(Turn(text) for text in asked),
        history=History(turns=earlier),
        system=tuple(
            text for m in members for text in system_texts(m, tuple(dict.fromkeys(r.node for r in _askers(m))))
        ),
        final_output=final,
        conversation_id=conversation_id(execution),
        agent=agent_name(owner, agents[0].node) if agents else None,
        coverage=covered(steps, task_input=bool(asked), final_output=final is not None),
        gaps=_gaps(placed),
        call_ids=tuple(each.call.call_id for each in placed),
        tokens=_tokens(members),
        has_agent=bool(agents),
    )


def _outline(execution: Execution, members: Sequence[Execution]) -> Trajectory:
    """What the envelope of an execution tells, whether or not its data was stored."""
    raw, start_ms = execution.raw, _start_ms(execution)
    status = str(raw.get("status"))
    started, stopped = moment_ms(word(raw.get("startedAt"))), moment_ms(word(raw.get("stoppedAt")))
    named = {
        "n8n.execution.id": execution.id,
        "n8n.execution.mode": word(raw.get("mode")),
        "n8n.execution.status": word(raw.get("status")),
        "n8n.workflow.id": word(raw.get("workflowId")),
        "n8n.workflow.name": word(get(raw, "workflowData", "name")),
        "n8n.traceparent": word(get(raw, "tracingContext", "traceparent")),
    }
    return Trajectory(
        # flatted data does not hold its own id; its first moment tells executions of one payload apart
        run_id=f"n8n:{execution.id}" if execution.id is not None else f"n8n:started-{start_ms or 0:.0f}",
        trace_ids=tuple(dict.fromkeys(m.trace_id for m in members if m.trace_id)),
        adapters=(ADAPTER,),
        close_reason=CloseReason.NO_ROOT if status in _STILL_GOING else CloseReason.END_OF_INPUT,
        root_status=_STATUS.get(status, Status.UNSET),
        start_ns=nanoseconds(start_ms or 0.0),
        duration=stopped - started if started is not None and stopped is not None and stopped >= started else None,
        attributes={key: value for key, value in named.items() if value is not None},
    )


def _start_ms(execution: Execution) -> float | None:
    return min((run.start_ms for run in execution.runs or () if run.start_ms is not None), default=None)


# ---- agents --------------------------------------------------------------------------------------


def _askers(execution: Execution) -> tuple[NodeRun, ...]:
    """Runs of nodes that are agents: by their type, or because a tool or its run says so."""
    callers = {run.caller for run in execution.runs or () if is_call(run)}
    return tuple(
        run
        for run in execution.runs or ()
        if execution.node_type(run.node) not in _NOT_AGENTS
        and (
            run.node in callers
            or execution.node_type(run.node) in {"agent", "agentTool"}
            or get(run.raw, "metadata", "subNodeExecutionData") is not None
            or is_messaged(execution, run)
        )
    )


def _agents(execution: Execution) -> tuple[NodeRun, ...]:
    """Runs of the outermost agents, in order: those that are not themselves a tool of another.

    An agent that died before its run was stored is still known from the calls it made.
    """
    tools = {run.node for run in execution.runs or () if is_call(run)}
    stored = tuple(run for run in _askers(execution) if run.node not in tools)
    if stored:
        return stored
    calls = [run for run in execution.runs or () if is_call(run) and run.caller and run.caller not in tools]
    return tuple(
        NodeRun(run.caller, 0, {}, run.rank)
        for run in calls[:1]
        if run.caller and execution.node_type(run.caller) not in _NOT_AGENTS
    )


# ---- steps ---------------------------------------------------------------------------------------


def _placed(known: Family, index: int) -> tuple[_Placed, ...]:
    """The calls of an execution and its sub-executions: a child's right after the call that started it."""
    execution = known.executions[index]
    children = {child: known.executions[child].id for child in known.children.get(index, ())}
    groups: list[tuple[float, tuple[_Placed, ...]]] = []
    for call in tool_calls(execution):
        started = [c for c, name in children.items() if name is not None and name == call.sub_execution]
        for child in started:
            del children[child]
        nested = (each for child in started for each in _placed(known, child))
        groups.append((call.run.rank, (_Placed(call, execution), *nested)))
    for run in execution.runs or ():
        if is_messaged(execution, run):
            _insert(groups, run.rank, tuple(_Placed(call, execution) for call in messaged_calls(run)))
    for child, name in children.items():  # started by a node of the workflow itself, or by a call that was not stored
        starters = [run.rank for run in execution.runs or () if name is not None and sub_execution_id(run) == name]
        _insert(groups, next(iter(starters), float("inf")), _placed(known, child))
    return tuple(each for _, group in groups for each in group)


def _insert(groups: list[tuple[float, tuple[_Placed, ...]]], rank: float, group: tuple[_Placed, ...]) -> None:
    """Put a group where all that follows ran later. An agent tool's own rank is later than that of its calls."""
    place = len(groups)
    while place and groups[place - 1][0] > rank:
        place -= 1
    groups.insert(place, (rank, group))


def _steps(placed: Sequence[_Placed], start_ms: float) -> tuple[Step, ...]:
    starts = [each.call.run.start_ms for each in placed]
    known = list(accumulate((s - start_ms if s is not None else 0.0 for s in starts), max))
    times = [s - start_ms if s is not None else known[i] for i, s in enumerate(starts)]
    # A call was issued no later than anything that came after it: a paused agent tool only stores its last resume.
    issued = list(accumulate(reversed(times), min))[::-1]
    return tuple(
        Step(
            tool=each.call.tool,
            args=each.call.args,
            ok=each.call.ok,
            result=each.call.result,
            t=max(time, 0.0),
            agent=_issuer(each),
            error=each.call.error,
            duration=each.call.duration,
        )
        for each, time in zip(placed, issued, strict=True)
    )


def _issuer(each: _Placed) -> str:
    if is_messaged(each.execution, each.call.run):
        return agent_name(each.execution, each.call.run.node)
    return each.call.run.caller or "main"


def _gaps(placed: Sequence[_Placed]) -> Mapping[tuple[int, str], Gap]:
    found: dict[tuple[int, str], Gap] = {}
    for index, each in enumerate(placed):
        if each.call.args_gap is not None:
            found[index, "args"] = each.call.args_gap
        if each.call.result is None:
            found[index, "result"] = each.call.result_gap or Gap.NOT_CAPTURED
        if each.call.ok is None:
            found[index, "ok"] = Gap.INCOMPLETE if each.call.error == NO_RETURN else Gap.NOT_CAPTURED
    return found


def _tokens(members: Sequence[Execution]) -> int | None:
    runs = [run for member in members for run in member.runs or ()]
    used = [
        get(i, "json", "tokenUsage", "totalTokens")
        for r in runs
        for i in entries(r.raw.get("data"), "ai_languageModel")
    ]
    used += [
        get(item, "json", "usage", "totalTokens")
        for member in members
        for run in member.runs or ()
        if is_messaged(member, run)
        for item in entries(run.raw.get("data"), "main")
    ]
    counts = [int(count) for value in used if (count := number(value)) is not None]
    return sum(counts) if counts else None
