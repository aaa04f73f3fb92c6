"""An n8n execution as plain values: its node runs in the order they happened, and what surrounds them.

Written against n8n 2.41 (`GET /api/v1/executions/{id}?includeData=true` and the flatted database column).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from re import compile as pattern
from typing import Any

from luckrate_otel.payloads.fields import first, get, items, mapping, moment_ms, number, parse, word
from luckrate_otel.payloads.n8n.flatted import is_flatted, unflatten, unflatten_text
from luckrate_otel.telemetry import nothing

# An array of database rows inside an endpoint's envelope is two deep; nothing n8n writes is deeper.
_MAX_WRAPPING = 4
_TRACEPARENT = pattern(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One run of one node.

    rank: place among all runs of the execution. index: which run of its node. start_ms: milliseconds since the epoch.
    caller: the node that asked for this run, for a tool or model the agent. raw: the entry itself.
    """

    node: str
    index: int
    raw: Mapping[str, Any]
    rank: int = 0
    start_ms: float | None = None
    caller: str | None = None
    caller_run: int | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution. id None: the flatted form does not tell it. runs None: stored without data.

    carried: runs of an earlier execution that a retry or a partial manual run starts from; they did not happen here.
    nodes: workflow node name → its definition; empty when the workflow is not in the payload.
    """

    id: str | None
    raw: Mapping[str, Any]
    runs: tuple[NodeRun, ...] | None = None
    carried: tuple[NodeRun, ...] = ()
    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=nothing)
    parent_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None

    def node_type(self, node: str) -> str:
        """The node's type without its package, "" if not known."""
        return str(get(self.nodes, node, "type") or "").rpartition(".")[2]


def unwrap(value: Any, depth: int = _MAX_WRAPPING) -> tuple[Mapping[str, Any], ...] | None:
    """The executions in a parsed file, or None when it holds none.

    Taken: one execution, an array of them, the list endpoint's `{"data": […]}`, the editor's `{"data": {…}}`,
    a database row whose data is flatted text, and bare flatted data.
    """
    if is_flatted(value):
        return ({"data": unflatten(value)},)
    if depth == 0:
        return None
    if isinstance(value, list):
        found = [unwrap(member, depth - 1) for member in value]
        return tuple(execution for part in found for execution in part or ()) if found and all(found) else None
    if not isinstance(value, Mapping):
        return None
    data = value.get("data")
    if isinstance(data, Mapping | list) and not is_flatted(data) and "resultData" not in data and "id" not in value:
        return unwrap(data, depth - 1)
    inflated = {**value, "data": unflatten_text(data)} if isinstance(data, str | list) else value
    return (inflated,) if _is_execution(inflated) else None


def _is_execution(value: Mapping[str, Any]) -> bool:
    if isinstance(get(value, "data", "resultData"), Mapping):
        return True
    # without includeData there is no `data`; these three together are n8n's own
    return value.get("data") is None and {"id", "mode", "workflowId"} <= value.keys()


def read_execution(raw: Mapping[str, Any]) -> Execution:
    """One unwrapped execution as values. Never raises, whatever it holds."""
    run_data = get(raw, "data", "resultData", "runData")
    workflow = raw.get("workflowData")
    workflow = parse(workflow) if isinstance(workflow, str) else workflow
    named = {name: node for node in items(get(workflow, "nodes")) if (name := word(get(node, "name")))}
    identity = first((raw.get("id"), raw.get("executionId")))
    trace = _TRACEPARENT.match(str(get(raw, "tracingContext", "traceparent") or ""))
    every = _runs(run_data) if isinstance(run_data, Mapping) else None
    carried, runs = _split(every or (), _carried_before_ms(raw))
    return Execution(
        id=str(identity) if isinstance(identity, str | int) else None,
        raw=raw,
        runs=None if every is None else _ordered(runs),
        carried=carried,
        nodes={name: mapping(node) for name, node in named.items()},
        parent_id=_parent_id(raw, every or ()),
        trace_id=trace[1] if trace else None,
        span_id=trace[2] if trace else None,
    )


def _runs(run_data: Mapping[str, Any]) -> tuple[NodeRun, ...]:
    return tuple(
        _run(str(node), index, entry)
        for node, entries in run_data.items()
        for index, entry in enumerate(items(entries))
        if isinstance(entry, Mapping)
    )


def _split(runs: tuple[NodeRun, ...], before_ms: float | None) -> tuple[tuple[NodeRun, ...], tuple[NodeRun, ...]]:
    """Runs carried in from an earlier execution, and those of this one."""
    old = tuple(run for run in runs if before_ms and run.start_ms is not None and run.start_ms < before_ms)
    return old, tuple(run for run in runs if run not in old) if old else runs


def _ordered(runs: tuple[NodeRun, ...]) -> tuple[NodeRun, ...]:
    """All runs in the order they happened. Keys of runData are in order of first finish, which says nothing."""
    name = _order_field(runs)
    places = sorted(range(len(runs)), key=lambda place: _order_key(runs[place], place, name))
    return tuple(replace(runs[place], rank=rank) for rank, place in enumerate(places))


def _order_field(runs: tuple[NodeRun, ...]) -> str | None:
    """executionIndex, if every run has one, else startTime, if every run has one: the two are different number
    spaces, so that choosing per run would scramble the order."""
    for name in ("executionIndex", "startTime"):
        if all(number(run.raw.get(name)) is not None for run in runs):
            return name
    return None


def _order_key(run: NodeRun, place: int, name: str | None) -> tuple[float, float, int, int]:
    main = number(run.raw.get(name)) if name else None
    return (main or 0.0, (run.start_ms or 0.0) if name else 0.0, run.index if name else 0, place)


def _run(node: str, index: int, entry: Mapping[str, Any]) -> NodeRun:
    source = next(iter(items(entry.get("source"))), None)
    caller_run = get(source, "previousNodeRun")
    return NodeRun(
        node=node,
        index=index,
        raw=entry,
        start_ms=number(entry.get("startTime")),
        caller=word(get(source, "previousNode")),
        caller_run=caller_run if isinstance(caller_run, int) else None,
    )


def _carried_before_ms(raw: Mapping[str, Any]) -> float | None:
    """Runs that started earlier were copied in from another execution and did not happen in this one.

    Only manual (partial) runs and retries carry any. createdAt, not startedAt: the latter moves when an execution that
    waited for a human resumes. In other modes nothing is dropped, as clocks of a queue's machines may differ.
    """
    if word(raw.get("mode")) not in {"manual", "retry"} and raw.get("retryOf") is None:
        return None
    return moment_ms(first((raw.get("createdAt"), raw.get("startedAt"))))


def _parent_id(raw: Mapping[str, Any], runs: tuple[NodeRun, ...]) -> str | None:
    named = [get(run.raw, "metadata", "parentExecution", "executionId") for run in runs]
    named += [
        get(raw, "data", "parentExecution", "executionId"),
        get(raw, "data", "executionData", "runtimeData", "parentExecutionId"),
    ]
    found = first(named)
    return str(found) if isinstance(found, str | int) else None
