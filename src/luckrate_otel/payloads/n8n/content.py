"""What the items of an n8n run carry: arguments, results and errors, and why one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.facts import NO_RETURN, Gap
from luckrate_otel.payloads.fields import arguments, get, items, mapping, output, plain, render, word
from luckrate_otel.telemetry import Value

# Put by n8n in place of data that was too big to push to the editor.
_TRIMMED = "__isTrimmedManualExecutionDataItem"
# Statuses of a run that has not come to an end, or was stopped before it did.
_UNFINISHED = frozenset({"running", "waiting", "new", "canceled", "cancelled", "unknown"})
# Node parameters that turn a failure into an ordinary item with an `error` in it.
_CONTINUES = frozenset({"continueRegularOutput", "continueErrorOutput"})


def entries(data: Any, connection: str) -> tuple[Any, ...]:
    """The items of a connection type's first output that has any."""
    return next((found for output_items in items(get(data, connection)) if (found := items(output_items))), ())


def gap_of(item: Any) -> Gap | None:
    """Why an item's json is not what the node worked with, None when it is."""
    if item is None:
        return Gap.NOT_CAPTURED
    if get(item, "json", _TRIMMED) or get(item, _TRIMMED):
        return Gap.TRUNCATED
    if get(item, "redaction", "redacted"):
        return Gap.REDACTED
    copy, gap = plain(get(item, "json"))
    return Gap.REDACTED if gap is None and _any_redacted(copy) else gap


def _any_redacted(value: Value) -> bool:
    """A field replaced by n8n's marker. The rest of its item goes with it: which rule needs the field is not known."""
    if isinstance(value, Mapping):
        return value.get("__redacted") is True or any(map(_any_redacted, value.values()))
    return isinstance(value, list) and any(map(_any_redacted, value))


def input_args(item: Any) -> tuple[Mapping[str, Value] | None, Gap | None]:
    """The arguments in one input item of a tool run."""
    gap = gap_of(item)
    return (None, gap) if gap is not None else arguments(get(item, "json"))


def run_ok(run: Mapping[str, Any], node: Mapping[str, Any], given: tuple[Any, ...]) -> tuple[bool | None, str | None]:
    """Whether a tool run succeeded, and its error if it did not."""
    status = word(run.get("executionStatus"))
    if status in _UNFINISHED:
        return None, NO_RETURN
    failed = status in {"error", "crashed"} or any(get(run, key) for key in ("error", "redactedError"))
    continues = word(node.get("onError")) in _CONTINUES or node.get("continueOnFail") is True
    swallowed = any(get(item, "error") or (continues and get(item, "json", "error")) for item in given)
    if failed or swallowed:
        return False, _error(run, given)
    return (True, None) if status == "success" else (None, None)


def _error(run: Mapping[str, Any], given: tuple[Any, ...]) -> str:
    hidden = run.get("redactedError")
    named = [get(run, "error", "message"), get(run, "error", "description"), get(run, "error", "name")]
    told = [get(hidden, "message"), get(hidden, "name"), get(hidden, "type"), "redacted" if hidden else None]
    seen = [get(item, *path) for item in given for path in (("json", "error"), ("error", "message"), ("error",))]
    return next((text for value in [*named, *told, *seen] if (text := word(value))), "error")


def given_text(run: Mapping[str, Any], node_type: str, given: tuple[Any, ...]) -> tuple[str | None, Gap | None]:
    """What a tool run gave back, as its agent's model read it, or why that is not known."""
    if any(_trimmed(run, name) for name in mapping(run.get("data"))):
        return None, Gap.TRUNCATED
    gap = next((found for item in given if (found := gap_of(item))), None)
    if gap is not None or not given:
        hidden = run.get("redactedError") is not None
        return None, gap or (Gap.REDACTED if hidden else Gap.NOT_CAPTURED)
    if len(given) == 1:
        return _rendered(unwrapped(get(given[0], "json"), node_type))
    return render([get(item, "json") for item in given])


def _trimmed(run: Mapping[str, Any], connection: str) -> bool:
    return any(gap_of(item) is Gap.TRUNCATED for item in entries(run.get("data"), connection))


def unwrapped(value: Any, node_type: str) -> Any:
    """The tool's own output inside what its kind of node wraps around it.

    LangChain tools log `{"response": …}`, agent tools answer `{"output": …}`, a failure is `{"error": …}`. Nodes used
    as tools (their type ends in Tool) and sub-workflows give the item itself, in which such a key would be theirs.
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((key, inner),) = value.items()
    own_item = node_type == "toolWorkflow" or (
        node_type.endswith("Tool") and node_type not in {"agentTool", "mcpClientTool"}
    )
    if key == "error":
        return inner
    if key == "output" and node_type == "agentTool":
        return inner
    return inner if key == "response" and not own_item else value


def _rendered(value: Any) -> tuple[str | None, Gap | None]:
    text = output(value)
    return (text, None) if text is not None else render(value)
