"""What a tool gave back, out of the wrappings that frameworks put around it.

The result is the text that the model saw. Wrappings carry more: whether the call failed, its id, and in a LangGraph
handoff the whole conversation, which must not pass for the tool's output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from luckrate_otel.content import python_repr
from luckrate_otel.content.structured import CUT, dumps, is_redacted, loads, text_of
from luckrate_otel.facts import Gap
from luckrate_otel.record import record
from luckrate_otel.telemetry import Value

# How frameworks tell the model of a failed call where nothing else marks it: CrewAI, LangGraph's ToolNode,
# OpenAI Agents SDK, MCP servers in Python.
FAILURE_TEXTS = (
    "Error executing tool",
    "Error invoking tool",
    "Error calling tool",
    "An error occurred while running the tool",
    "Tool execution failed",
)
_LIKE_FAILURE = re.compile(
    r"""\s*(?:[{]\s*["']error["']\s*:(?!\s*(?:null|None|false|""|''))"""
    r"""|(?:\w+ )?(?:error|exception)\s*[:(]|traceback \()""",
    re.IGNORECASE,
)
_OUTCOMES = {"error": False, "failed": False, "failure": False, "success": True, "ok": True, "completed": True}
_REPRS = ("content=", "Command(", "status='")
_DEPTH = 6


@record(frozen=True, slots=True)
class Returned:
    """text None: not captured, gap tells why. ok None: the wrapping does not tell."""

    text: str | None
    ok: bool | None = None
    call_id: str | None = None
    gap: Gap | None = None


def outcome(status: Any) -> bool | None:
    return _OUTCOMES.get(status.lower()) if isinstance(status, str) else None


def tells_failure(text: str | None) -> bool:
    return text is not None and text.startswith(FAILURE_TEXTS)


def may_tell_failure(text: str | None) -> bool:
    """The answer reads like an error, in words that programs use for it: alone no proof, as a tool may well return
    them; enough not to call the call a success where nothing else tells.
    """
    return text is not None and _LIKE_FAILURE.match(text) is not None


def returned(value: Value) -> Returned:
    """The result inside an attribute, log value or message part."""
    if value is None:
        return Returned(None, gap=Gap.NOT_CAPTURED)
    if is_redacted(value):
        return Returned(None, gap=Gap.REDACTED)
    if value == CUT:
        return Returned(None, gap=Gap.TRUNCATED)
    return _unwrap(value, _DEPTH)


def _unwrap(value: Value, depth: int) -> Returned:
    if isinstance(value, str):
        return _from_text(value, depth)
    return _opened(value, depth) or Returned(dumps(value))


def _opened(value: Value, depth: int) -> Returned | None:
    """What is inside a wrapping; None if this is the tool's own data."""
    if depth and isinstance(value, dict):
        return _from_mapping(value, depth - 1)
    if depth and isinstance(value, (list, tuple)) and value:
        return _from_blocks(value, depth - 1)
    return None


def _from_text(text: str, depth: int) -> Returned:
    start = text[:1]
    if not depth or start not in ("{", "[", '"') or not start:
        return _from_repr(text) if text.startswith(_REPRS) else Returned(text)
    if start != '"' and not any(key in text for key in _WRAPPING_KEYS):
        return Returned(text)  # most results: the tool's own JSON, which need not be parsed at all
    try:
        found = loads(text)
    except ValueError:
        # Plain text may begin with a bracket too; only a wrapping that was cut hides where the output begins.
        return Returned(None, gap=Gap.TRUNCATED) if _begins_wrapping(text) else Returned(text)
    if isinstance(found, str):
        return _from_repr(found) if found.startswith(_REPRS) else Returned(found)
    return _opened(found, depth) or Returned(text)


# One of these is in every wrapping that _from_mapping and _from_blocks know.
_WRAPPING_KEYS = (
    '"content"',
    '"text"',
    '"kwargs"',
    '"update"',
    '"output"',
    '"toolResult"',
    '"functionResponse"',
    '"value"',
    '"json"',
)


def _begins_wrapping(text: str) -> bool:
    return text.startswith(('{"output":', '{"lc":', '{"type": "tool"', '{"type":"tool"', '[{"text":', '{"graph":'))


def _from_mapping(value: Mapping[str, Any], depth: int) -> Returned | None:
    if value.get("lc") and isinstance(value.get("kwargs"), dict):
        return _tool_message(value["kwargs"], depth)
    if value.get("type") == "tool" and isinstance(value.get("data"), dict):
        return _tool_message(value["data"], depth)
    if "tool_call_id" in value and "content" in value:
        return _tool_message(value, depth)
    if "graph" in value and "update" in value:
        return _command(value.get("update"), depth)
    if "toolResult" in value or "functionResponse" in value:
        return _unwrap(value.get("toolResult", value.get("functionResponse")), depth)
    if "toolUseId" in value and "content" in value:
        return _tool_message(value, depth)
    if value.get("type") == "text" and isinstance(value.get("text"), str):
        return Returned(value["text"])
    if isinstance(value.get("content"), (list, tuple)) and (
        "isError" in value or "is_error" in value or len(value) == 1
    ):
        flagged = value.get("isError", value.get("is_error"))
        inner = _unwrap(value["content"], depth)
        return Returned(inner.text, (not flagged) if isinstance(flagged, bool) else None)
    if (
        "output" in value
        and set(value) <= {"output", "kwargs", "tags", "metadata"}
        and isinstance(value["output"], dict)
    ):
        return _from_mapping(value["output"], depth) or Returned(dumps(value["output"]))
    if value.get("type") in ("json", "error-text", "error-json", "content") and "value" in value:  # Vercel tool outputs
        inner = _unwrap(value["value"], depth)
        return Returned(inner.text, False if value["type"].startswith("error") else None)
    return None


def _tool_message(value: Mapping[str, Any], depth: int) -> Returned:
    inner = _unwrap(value.get("content"), depth) if value.get("content") is not None else Returned("")
    call_id = text_of(value.get("tool_call_id")) or text_of(value.get("toolUseId"))
    return Returned(inner.text, outcome(value.get("status")), call_id)


def _command(update: Any, depth: int) -> Returned:
    """LangGraph's Command: the answer to this call is the last tool message of the state update."""
    told = update.get("messages") if isinstance(update, dict) else None
    for item in reversed(told if isinstance(told, (list, tuple)) else ()):
        if isinstance(item, dict):
            body = item.get("kwargs") or item.get("data") or item
            if isinstance(body, dict) and "tool_call_id" in body:
                return _tool_message(body, depth)
    return Returned(None, gap=Gap.NOT_CAPTURED)


def _from_blocks(value: list[Any] | tuple[Any, ...], depth: int) -> Returned | None:
    """Content blocks, `[{"text": …}]` or `[{"type": "text", "text": …}]`; None if these are the tool's own data."""
    found = []
    for item in value:
        if not isinstance(item, dict) or not ("text" in item or item.get("type") == "text" or "json" in item):
            return None
        if set(item) - {"type", "text", "json", "annotations", "meta", "_meta", "content", "id"}:
            return None
        body = item.get("text", item.get("content", item.get("json")))
        inner = _unwrap(body, depth) if body is not None else Returned("")
        found.append(inner.text or "")
    return Returned("\n".join(found).strip())


def _from_repr(text: str) -> Returned:
    """str() of a LangChain ToolMessage or Command, or of Agno's FunctionExecutionResult."""
    if text.startswith("status="):
        fields = python_repr.read_fields(text)
        ok = outcome(fields.get("status"))
        told = fields.get("error") if ok is False else fields.get("result")
        if ok is None or "result" not in fields or "error" not in fields:
            return Returned(text)
        return Returned(told if isinstance(told, str) else dumps(told), ok)
    if text.startswith("Command("):
        try:
            found = python_repr.read(text)
        except ValueError:
            return Returned(None, gap=Gap.TRUNCATED)
        return _command(found.get("update") if isinstance(found, dict) else None, 2)
    fields = python_repr.read_fields(text)
    if "tool_call_id" not in fields or not isinstance(fields.get("content"), str):
        return Returned(text)
    return _tool_message(fields, 0)
