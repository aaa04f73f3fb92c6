"""Parts of a chat message, of every schema in use → Text, Call or Response.

Media, reasoning and unknown parts are skipped, never raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.content.arguments import arguments
from luckrate_otel.content.results import outcome, returned, tells_failure
from luckrate_otel.content.structured import REDACTED_CHARS, is_redacted, text_of
from luckrate_otel.facts import Call, Part, Response, Text


def parts(value: Any) -> tuple[Part, ...]:
    """Content of a message: a text, one part, or a list of parts."""
    if isinstance(value, (list, tuple)):
        found: list[Part] = []
        for item in value:
            if not isinstance(item, dict):
                found += parts(item)
            elif (
                len(item) == 2
                and item.get("type") == "text"
                and isinstance(content := item.get("content"), str)
                and (len(content) >= REDACTED_CHARS or (content and not is_redacted(content)))
            ):
                found.append(Text(content))  # nothing else is in it; the way through part() takes three times as long
            elif (one := part(item)) is not None:
                found.append(one)
        return tuple(found)
    if isinstance(value, str):
        return (Text(value),) if value and not is_redacted(value) else ()
    if isinstance(value, dict):
        one = part(value)
        return (one,) if one is not None else ()
    return ()


def part(value: Mapping[str, Any]) -> Part | None:
    """One part of a message; None for media, reasoning and everything unknown."""
    kind = value.get("type")
    reader = _PARTS.get(kind) if isinstance(kind, str) else None
    if reader is not None:
        return reader(value)
    if not _KEYED.keys().isdisjoint(value):
        for key, nested in _KEYED.items():
            inner = value.get(key)
            if isinstance(inner, dict):
                return nested(inner)
    if kind in (None, "text", "input_text", "output_text"):
        return text_part(value)
    return None


def text_part(value: Mapping[str, Any]) -> Text | None:
    for key in ("content", "text", "value"):
        found = value.get(key)
        if isinstance(found, str) and found and not is_redacted(found):
            return Text(found)
    return None


def call(name: Any, args: Any, call_id: Any = None) -> Call | None:
    """A call of a tool; None without a name (a cut or streamed fragment)."""
    if not isinstance(name, str) or not name:
        return None
    found, gap = arguments(args)
    return Call(name, found, text_of(call_id), gap)


def tool_call(value: Mapping[str, Any]) -> Call | None:
    function = value.get("function")
    if isinstance(function, dict):
        return call(function.get("name"), function.get("arguments"), value.get("id"))
    name, args, call_id = value.get("name"), value.get("arguments"), value.get("call_id")
    if name is None:  # as the conventions name them, which most do: half the price
        name = _first(value, "toolName", "tool_name")
    if args is None:
        args = _first(value, "args", "input", "parameters")
    if call_id is None:
        call_id = value.get("id")
    if call_id is None:
        call_id = _first(value, "toolCallId", "tool_call_id", "toolUseId")
    return call(name, args, call_id)


def _gemini_call(value: Mapping[str, Any]) -> Call | None:
    return call(value.get("name"), value.get("args") if "args" in value else {}, value.get("id"))


def response(value: Mapping[str, Any]) -> Response:
    raw = _first(value, "response", "result", "output", "content", "toolResult")
    back = returned(raw)
    flagged = value.get("is_error", value.get("isError"))
    ok = not flagged if isinstance(flagged, bool) else outcome(value.get("status"))
    if ok is None:
        ok = False if back.ok is None and tells_failure(back.text) else back.ok
    call_id = _first(value, "tool_call_id", "tool_use_id", "toolUseId", "call_id", "toolCallId", "id")
    return Response(
        text_of(call_id) or back.call_id, back.text, ok, text_of(_first(value, "name", "toolName", "tool_name"))
    )


def _server_call(value: Mapping[str, Any]) -> Call | None:
    return call(value.get("name"), value.get("server_tool_call"), value.get("id"))


def _server_response(value: Mapping[str, Any]) -> Response:
    return response({"id": value.get("id"), "response": value.get("server_tool_call_response")})


# Parts that name their kind under `type`.
_PARTS = {
    "tool_call": tool_call,
    "tool-call": tool_call,
    "tool_use": tool_call,
    "toolCall": tool_call,
    "function_call": tool_call,
    "function": tool_call,
    "tool_call_response": response,
    "tool-result": response,
    "tool_result": response,
    "tool_response": response,
    "function_call_output": response,
    "function_result": response,
    "server_tool_call": _server_call,
    "server_tool_use": tool_call,
    "server_tool_call_response": _server_response,
}
# Parts that are known by their one key: Bedrock, Gemini, OpenAI's first function calls.
_KEYED = {
    "toolUse": tool_call,
    "toolResult": response,
    "function_call": _gemini_call,
    "functionCall": _gemini_call,
    "function_response": response,
    "functionResponse": response,
}


def tool_calls(value: Any) -> tuple[Call, ...]:
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(c for item in value if isinstance(item, dict) and (c := tool_call(item)) is not None)


def are_parts(value: Any) -> bool:
    """A list of parts, not of messages: Bedrock content blocks or system instructions."""
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(v, dict) and "role" not in v and "lc" not in v and _looks_like_part(v) for v in value)
    )


def _looks_like_part(value: Mapping[str, Any]) -> bool:
    kind = text_of(value.get("type"))
    if kind in ("function_call", "function_call_output", "human", "ai", "tool", "system"):
        return False
    return kind in _PARTS or kind == "text" or "text" in value or any(k in value for k in _KEYED)


def _first(value: Mapping[str, Any], *keys: str) -> Any:
    for key in keys:
        if value.get(key) is not None:
            return value[key]
    return None
