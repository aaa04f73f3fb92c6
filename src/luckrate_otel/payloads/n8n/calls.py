"""The tool calls of one n8n execution, in the order their agents issued them.

A run with `inputOverride.ai_tool` is a call, whatever its node is. Agents keep the requests they made (earlier turns in
`previousRequests`, the last one in `actions`): the same calls again, so they only lend names, call ids and order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from re import compile as pattern
from typing import Any

from luckrate_otel.facts import Gap
from luckrate_otel.payloads.fields import get, items, number, plain, word
from luckrate_otel.payloads.n8n.content import entries, given_text, input_args, run_ok
from luckrate_otel.payloads.n8n.execution import Execution, NodeRun
from luckrate_otel.payloads.n8n.family import sub_execution_id
from luckrate_otel.telemetry import Value

_CALL_ID = pattern(r"(?:call|toolu|tooluse|fc|chatcmpl-tool)[_-][A-Za-z0-9_-]{6,}")
_NOT_NAME = pattern(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Request:
    """A call as its agent asked for it. tool: the name the model used. node: of the tool, where told."""

    tool: str | None
    node: str | None
    args: Value
    call_id: str | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call. run: of the tool's node. sub_execution: id of the execution it started.

    place: of its request among those of its agent, None if none was found for it.
    """

    run: NodeRun
    tool: str
    args: Mapping[str, Value] | None
    args_gap: Gap | None
    ok: bool | None
    error: str | None
    result: str | None
    result_gap: Gap | None
    duration: float | None
    call_id: str | None = None
    place: int | None = None
    sub_execution: str | None = None


def normal(name: str) -> str:
    """A tool name as n8n shows it to the model, near enough to compare: "Lookup Order" is lookup_order."""
    return _NOT_NAME.sub("_", name.lower()).strip("_")


def resumed(run: NodeRun) -> bool:
    """An agent that was paused for its tools: its stored times and index are those of its last resume."""
    metadata = get(run.raw, "metadata")
    return get(metadata, "nodeWasResumed") is True or get(metadata, "subNodeExecutionData") is not None


def is_call(run: NodeRun) -> bool:
    return get(run.raw, "inputOverride", "ai_tool") is not None


def tool_calls(execution: Execution) -> tuple[ToolCall, ...]:
    """Every tool call of the execution, callers before what they called, each agent's in the order it asked."""
    calls = [call for run in execution.runs or () if is_call(run) for call in _of_run(execution, run)]
    calls = [_with_late_error(execution, call) for call in calls]
    calls = _named(execution, calls)
    return tuple(calls[index] for index in _issue_order(calls))


def _of_run(execution: Execution, run: NodeRun) -> Iterator[ToolCall]:
    """One call per input item; a run without any still is a call, whose arguments are not known."""
    inputs = entries(run.raw.get("inputOverride"), "ai_tool") or (None,)
    outputs = entries(run.raw.get("data"), "ai_tool")
    node = execution.nodes.get(run.node, {})
    for index, item in enumerate(inputs):
        given = _given(outputs, index, len(inputs))
        args, args_gap = input_args(item)
        ok, error = run_ok(run.raw, node, given)
        result, result_gap = given_text(run.raw, execution.node_type(run.node), given)
        yield ToolCall(
            run=run,
            tool=run.node,
            args=args,
            args_gap=args_gap,
            ok=ok,
            error=error,
            result=result,
            result_gap=result_gap,
            # what a paused agent tool stores is the time of its last turn only
            duration=None if resumed(run) or ok is None else number(run.raw.get("executionTime")),
            sub_execution=sub_execution_id(run) if index == len(inputs) - 1 else None,
        )


def _given(outputs: tuple[Any, ...], index: int, inputs: int) -> tuple[Any, ...]:
    """What one of the inputs gave: an only one all of it, else one each; where counts differ, nobody can tell."""
    if inputs == 1:
        return outputs
    return outputs[index : index + 1] if inputs == len(outputs) else ()


def _with_late_error(execution: Execution, call: ToolCall) -> ToolCall:
    """Before December 2025 a failing sub-workflow tool left two runs: the call, and the error without input."""
    if call.run.raw.get("data") is not None:
        return call
    later = [r for r in execution.runs or () if r.node == call.run.node and r.index == call.run.index + 1]
    if not later or is_call(later[0]) or not later[0].raw.get("error"):
        return call
    ok, error = run_ok(later[0].raw, {}, ())
    return replace(call, ok=ok, error=error)


# ---- requests ------------------------------------------------------------------------------------


def requests_of(run: NodeRun) -> tuple[Request, ...]:
    """What one agent run asked for, earlier turns first."""
    stored = get(run.raw, "metadata", "subNodeExecutionData")
    earlier = [get(each, "action") for each in items(get(stored, "metadata", "previousRequests"))]
    last = [get(each, "action") for each in items(get(stored, "actions"))]
    return (
        *(_request(get(a, "tool"), None, get(a, "toolInput"), get(a, "toolCallId")) for a in earlier),
        *(_request(get(a, "metadata", "toolName"), get(a, "nodeName"), get(a, "input"), get(a, "id")) for a in last),
    )


def _request(tool: Any, node: Any, args: Any, call_id: Any) -> Request:
    return Request(tool=word(tool), node=word(node), args=plain(args)[0], call_id=word(call_id))


def _named(execution: Execution, calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The calls with what their requests tell: the model's name for the tool, the call id, the place."""
    runs = execution.runs or ()
    known: dict[str, list[Request]] = {}
    for run in runs:
        known.setdefault(run.node, []).extend(requests_of(run))
    ids = {request.call_id for requests in known.values() for request in requests if request.call_id}
    free = {caller: list(range(len(requests))) for caller, requests in known.items()}
    named = []
    for call in calls:
        caller = call.run.caller or ""
        named.append(_with_request(_clean(execution, call, ids), known.get(caller, []), free.get(caller, [])))
    return named


def _clean(execution: Execution, call: ToolCall, call_ids: set[str]) -> ToolCall:
    """Take out of the arguments what the engine put in: the call id, and a toolkit's choice of tool.

    An `id` that is not a call id is the tool's own argument and stays.
    """
    if call.args is None:
        return call
    args = dict(call.args)
    call_id = word(args.get("id"))
    if call_id and (call_id in call_ids or _CALL_ID.fullmatch(call_id)):
        del args["id"]
        call = replace(call, call_id=call_id)
    if execution.node_type(call.run.node) == "mcpClientTool" and word(args.get("tool")):
        call = replace(call, tool=str(args.pop("tool")))
    return replace(call, args=args)


def _with_request(call: ToolCall, requests: Sequence[Request], free: list[int]) -> ToolCall:
    """The call with its request's name, id and place; of equally likely requests the first one. It is free no more."""
    best, likeness, enough = None, 0, 4 if call.call_id else 3
    for place in free:
        found = _likeness(call, requests[place])
        if found > likeness:
            best, likeness = place, found
        if likeness >= enough:
            break
    if best is None:
        return call
    free.remove(best)
    request = requests[best]
    args = call.args
    if request.tool and args is not None and args.get("tool") == request.tool and request.args != args:
        args = {key: value for key, value in args.items() if key != "tool"}  # one node, many tools: the engine's key
    return replace(call, tool=request.tool or call.tool, args=args, call_id=request.call_id or call.call_id, place=best)


def _likeness(call: ToolCall, request: Request) -> int:
    """How well a request fits a call, 0 for not at all. Equal ids settle it, else name and arguments together."""
    if call.call_id and call.call_id == request.call_id:
        return 4
    args = call.args or {}
    same_node = request.node == call.run.node
    same_name = request.tool is not None and normal(request.tool) in {normal(call.tool), normal(call.run.node)}
    toolkit = request.tool is not None and args.get("tool") == request.tool
    same_args = call.args == request.args or (
        toolkit and {k: v for k, v in args.items() if k != "tool"} == request.args
    )
    if same_node or same_name or toolkit:
        return 3 if same_args else 2 if call.args is None else 0
    return 1 if same_args and request.node is None and args else 0


# ---- order ---------------------------------------------------------------------------------------


def _issue_order(calls: Sequence[ToolCall]) -> list[int]:
    """Indices of the calls: an agent tool before its own calls, although its stored run is later than they are."""
    of_node: dict[str | None, list[int]] = {}
    for index, call in enumerate(calls):
        of_node.setdefault(call.run.node, []).append(index)
    children: dict[int | None, list[int]] = {}
    for index, call in enumerate(calls):
        children.setdefault(_asker(calls, index, of_node.get(call.run.caller, [])), []).append(index)
    ranks = _first_ranks(calls, children)
    ordered: list[int] = []
    stack = _siblings(calls, children.get(None, []), ranks)[::-1]
    while stack:
        ordered.append(stack.pop())
        stack += _siblings(calls, children.get(ordered[-1], []), ranks)[::-1]
    left = set(range(len(calls))) - set(ordered)  # agents that claim to have called each other
    return ordered + sorted(left)


def _asker(calls: Sequence[ToolCall], index: int, asking: Sequence[int]) -> int | None:
    """The agent-tool call inside which a call was issued, None for a call of an outer agent.

    asking: the calls whose tool is the node that issued this one.
    """
    call = calls[index]
    after = [i for i in asking if resumed(calls[i].run) and calls[i].run.rank > call.run.rank]
    before = [i for i in asking if not resumed(calls[i].run) and calls[i].run.rank < call.run.rank]
    named = [i for i in asking if calls[i].run.index == call.run.caller_run and i != index]
    return next(iter(after or before[::-1] or named), None)


def _first_ranks(calls: Sequence[ToolCall], children: Mapping[int | None, Sequence[int]]) -> list[int]:
    """Per call the lowest rank among it and all it led to: where it really began."""
    parents = {child: parent for parent, members in children.items() if parent is not None for child in members}
    ranks = [call.run.rank for call in calls]
    for index, call in enumerate(calls):
        seen, parent = {index}, parents.get(index)
        while parent is not None and parent not in seen:
            ranks[parent] = min(ranks[parent], call.run.rank)
            seen.add(parent)
            parent = parents.get(parent)
    return ranks


def _siblings(calls: Sequence[ToolCall], indices: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """Calls of one level in issue order: as run, and those of one agent as it asked, if every request is known."""
    as_run = sorted(indices, key=lambda i: (ranks[i], i))
    by_caller: dict[str | None, list[int]] = {}
    for index in as_run:
        by_caller.setdefault(calls[index].run.caller, []).append(index)
    asked = {
        caller: iter(sorted(group, key=lambda i: calls[i].place or 0))
        if all(calls[i].place is not None for i in group)
        else iter(group)
        for caller, group in by_caller.items()
    }
    return [next(asked[calls[index].run.caller]) for index in as_run]
