"""Calls of n8n's Agents feature: one run of "Message an Agent" whose output lists what the agent called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from luckrate_otel.facts import Gap
from luckrate_otel.payloads.fields import arguments, get, items, output, render, word
from luckrate_otel.payloads.n8n.calls import ToolCall
from luckrate_otel.payloads.n8n.content import entries, gap_of
from luckrate_otel.payloads.n8n.execution import Execution, NodeRun


def is_messaged(execution: Execution, run: NodeRun) -> bool:
    """Whether this is a run of the node; its output tells where the workflow is not in the payload."""
    kind = execution.node_type(run.node)
    if kind:
        return kind == "messageAnAgent"
    return any(isinstance(get(item, "json", "toolCalls"), list) for item in entries(run.raw.get("data"), "main"))


def messaged_calls(run: NodeRun) -> Iterator[ToolCall]:
    """The calls in list order. Their times and ids are not stored, and a failed call looks like one without result."""
    for item in entries(run.raw.get("data"), "main"):
        for call in items(get(item, "json", "toolCalls")) if gap_of(item) is None else ():
            if name := word(get(call, "toolName")):
                args, args_gap = arguments(get(call, "input"))
                ok, result = _outcome(get(call, "result"))
                yield ToolCall(
                    run=run,
                    tool=name,
                    args=args,
                    args_gap=args_gap,
                    ok=ok,
                    error=(result or "error") if ok is False else None,
                    result=result,
                    result_gap=Gap.NOT_CAPTURED if result is None else None,
                    duration=None,
                )


def _outcome(result: Any) -> tuple[bool | None, str | None]:
    """(ok, result) of one listed call: a node's items are unwrapped, `{}` tells neither."""
    if not isinstance(result, Mapping):
        return None, output(result)
    if not result:
        return None, None
    status = {"success": True, "error": False}.get(str(result.get("status")))
    given = [get(item, "json") for item in items(result.get("data"))]
    if not given:
        told = word(get(result, "error")) or word(get(result, "error", "message")) or word(get(result, "message"))
        return (status, told or render(result)[0]) if status is False else (None, render(result)[0])
    return status, render(given[0] if len(given) == 1 else given)[0]
