"""Chat messages as model providers exchange them → trajectory.

Read per item, so that a list may mix them: OpenAI chat completions, OpenAI Responses items, Anthropic content blocks,
Vercel AI SDK parts and OpenTelemetry GenAI parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from luckrate_otel.facts import Call, Gap, Message, Part, Response, Text, ToolDefinition
from luckrate_otel.model import Trajectory
from luckrate_otel.payloads.fields import arguments, first, get, items, output, plain, texts, word
from luckrate_otel.payloads.transcript import Said, retold

ADAPTER = "messages"

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}


def read(value: Any) -> tuple[Trajectory, ...] | None:
    """One trajectory from a list of messages or the request or response that holds them, else None."""
    found = _enveloped(value)
    if not found or not all(is_message(item) for item in found):
        return None
    return (from_messages(value),)


def from_messages(value: Any) -> Trajectory:
    """The run that a list of messages tells of; items that are no messages are passed over.

    ok: None in the OpenAI forms, which do not say whether a tool failed. conversation_id, tools: from the envelope.
    """
    said = [Said(message, agent=_agent(item, message)) for item in _enveloped(value) for message in _message(item)]
    return retold(
        said,
        ADAPTER,
        conversation_id=first(word(get(value, *path)) for path in (("conversation_id",), ("conversation", "id"))),
        definitions=tuple(_definitions(get(value, "tools"))),
    )


def is_message(item: Any) -> bool:
    """Whether an item is a message or a Responses item."""
    return role_of(item) is not None or (isinstance(item, Mapping) and _item_reader(get(item, "type")) is not None)


def role_of(item: Any) -> str | None:
    """The role a message names, in our four words."""
    return ROLES.get(word(get(item, "role")) or "")


def _agent(item: Any, message: Message) -> str | None:
    return word(get(item, "name")) if message.role == "assistant" and get(item, "role") else None


def _enveloped(value: Any) -> tuple[Any, ...]:
    """The messages inside a bare list, a request, a response, or both in one object, in the order they were said."""
    if isinstance(value, list | tuple):
        return tuple(value)
    if not isinstance(value, Mapping):
        return ()
    system = get(value, "system") or get(value, "instructions")
    given = value.get("input")
    return (
        *([{"role": "system", "content": system}] if texts(system) else []),
        *items(value.get("messages")),
        *([{"role": "user", "content": given}] if isinstance(given, str) else items(given)),
        *items(value.get("output")),
        *(message for choice in items(value.get("choices")) if (message := get(choice, "message")) is not None),
    )


def _message(item: Any) -> Iterator[Message]:
    role = role_of(item)
    if role is None:
        reader = _item_reader(get(item, "type"))
        parts = tuple(reader(item)) if reader and isinstance(item, Mapping) else ()
        if parts:
            yield Message("assistant" if any(isinstance(part, Call) for part in parts) else "tool", parts)
    elif role == "tool" and not _has_results(item):
        call_id, tool = word(get(item, "tool_call_id")), word(get(item, "name"))
        yield Message("tool", (Response(call_id, output(get(item, "content")), tool=tool),))
    else:
        yield Message(role, (*message_parts(item), *openai_calls(item)))


def _has_results(item: Any) -> bool:
    return any(isinstance(part, Response) for part in message_parts(item))


def message_parts(item: Any) -> tuple[Part, ...]:
    """The parts in a message's content: its words first as one text, then calls and results in order."""
    content = first((get(item, "content"), get(item, "parts")))
    words = texts(content)
    parts = [part for raw in items(content) if (reader := PARTS.get(str(get(raw, "type")))) for part in reader(raw)]
    return (*([Text(words)] if words else []), *parts)


def openai_calls(item: Any) -> Iterator[Call]:
    """`tool_calls` of a chat completion message, and `function_call` of its predecessor."""
    for raw in items(get(item, "tool_calls")):
        yield from _call(first((get(raw, "function"), get(raw, "custom"), raw)), word(get(raw, "id")))
    if get(item, "function_call") is not None:
        yield from _call(get(item, "function_call"), None)


def _call(raw: Any, call_id: str | None) -> Iterator[Call]:
    name = first(word(get(raw, key)) for key in ("name", "toolName", "tool_name"))
    if name is None:
        return
    given = first(get(raw, key) for key in ("arguments", "args", "input"))
    args, gap = arguments(given)
    if gap is Gap.NOT_CAPTURED and isinstance(given, str) and get(raw, "arguments") is None:
        args, gap = {"input": given}, None  # a custom tool takes free text, not JSON
    yield Call(name, args, call_id, gap)


def _definitions(raw: Any) -> Iterator[ToolDefinition]:
    for each in items(raw):
        definition = first((get(each, "function"), each))
        if name := word(get(definition, "name")):
            schema = first(get(definition, key) for key in ("parameters", "input_schema", "inputSchema"))
            copy, _ = plain(schema)
            yield ToolDefinition(name, copy if isinstance(copy, Mapping) else None)


# ---- content parts -------------------------------------------------------------------------------

Reader = Callable[[Any], Iterator[Part]]


def _part_call(raw: Any) -> Iterator[Part]:
    yield from _call(raw, first(word(get(raw, key)) for key in ("id", "toolCallId")))


def _anthropic_result(raw: Any) -> Iterator[Part]:
    """`is_error` is left out where it is false, so its absence does tell."""
    content = get(raw, "content")
    failed = bool(get(raw, "is_error")) or str(get(content, "type")).endswith("_error")
    yield Response(word(get(raw, "tool_use_id")), output(content) if content is not None else "", ok=not failed)


def _vercel_result(raw: Any) -> Iterator[Part]:
    """`output` is typed since AI SDK 5; before, a failure is flagged beside a bare `result`."""
    given = first((get(raw, "output"), get(raw, "result")))
    kind = str(get(given, "type"))
    typed = kind in {"text", "json", "content", "error-text", "error-json"}
    if typed:
        ok: bool | None = not kind.startswith("error")
    else:
        ok = False if get(raw, "isError") is True else None
    result = output(get(given, "value") if typed else given)
    yield Response(word(get(raw, "toolCallId")), result, ok, word(get(raw, "toolName")))


def _otel_result(raw: Any) -> Iterator[Part]:
    given = first(get(raw, key) for key in ("response", "result", "content"))
    yield Response(word(get(raw, "id")), output(given), tool=word(get(raw, "name")))


PARTS: Mapping[str, Reader] = {
    "tool_use": _part_call,
    "server_tool_use": _part_call,
    "mcp_tool_use": _part_call,
    "tool_result": _anthropic_result,
    "mcp_tool_result": _anthropic_result,
    "web_search_tool_result": _anthropic_result,
    "web_fetch_tool_result": _anthropic_result,
    "tool-call": _part_call,
    "tool-result": _vercel_result,
    "tool_call": _part_call,
    "tool_call_response": _otel_result,
}

# ---- Responses items -----------------------------------------------------------------------------


def _item_call(raw: Any) -> Iterator[Part]:
    yield from _call(raw, word(get(raw, "call_id")))


def _item_result(raw: Any) -> Iterator[Part]:
    """The item's `status` says that the item is complete, not that the tool succeeded."""
    yield Response(word(get(raw, "call_id")), output(get(raw, "output")))


def _item_hosted(raw: Any) -> Iterator[Part]:
    """A tool the provider ran itself: call and outcome in one item."""
    tool = word(get(raw, "name")) or str(get(raw, "type")).removesuffix("_call")
    given = first(get(raw, key) for key in ("arguments", "action"))
    args, gap = arguments(given)
    yield Call(tool, args, word(get(raw, "id")), gap)
    error, status = get(raw, "error"), get(raw, "status")
    if error is not None or status == "failed":
        yield Response(word(get(raw, "id")), output(error), ok=False)
    elif status == "completed" or get(raw, "output") is not None:
        yield Response(word(get(raw, "id")), output(first(get(raw, k) for k in ("output", "results"))), ok=True)


def _item_nothing(_raw: Any) -> Iterator[Part]:
    return iter(())


ITEMS: Mapping[str, Reader] = {
    "function_call": _item_call,
    "function_call_output": _item_result,
    "custom_tool_call": _item_call,
    "custom_tool_call_output": _item_result,
    "local_shell_call_output": _item_result,
    "computer_call_output": _item_result,
    "mcp_call": _item_hosted,
    "web_search_call": _item_hosted,
    "file_search_call": _item_hosted,
    "code_interpreter_call": _item_hosted,
    "image_generation_call": _item_hosted,
    "computer_call": _item_call,
    "local_shell_call": _item_call,
    "reasoning": _item_nothing,
    "mcp_list_tools": _item_nothing,
    "item_reference": _item_nothing,
}


def _item_reader(kind: Any) -> Reader | None:
    return ITEMS.get(kind) if isinstance(kind, str) else None
