"""Chat messages of every schema in use → Message, one reader for all.

OpenTelemetry (role + parts, 1.37 on; body form of 1.28 to 1.36), OpenAI chat and responses items, Anthropic blocks,
Bedrock Converse, Gemini contents, LangChain (live dumps, `lc` constructors, type + data, tuples), Vercel AI SDK.
Unknown parts are skipped, never raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from luckrate_otel.content import python_repr
from luckrate_otel.content.message_parts import are_parts, parts, response, text_part, tool_call, tool_calls
from luckrate_otel.content.replay import MIN_CHARS, Replay
from luckrate_otel.content.structured import is_redacted, loads, structured, text_of
from luckrate_otel.facts import Call, Message, Part, Response, Text
from luckrate_otel.telemetry import Value

ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "aimessage": "assistant",
    "humanmessage": "user",
    "systemmessage": "system",
    "toolmessage": "tool",
    "aimessagechunk": "assistant",
    "developer": "system",
    "function": "tool",
    "tool-call": "assistant",
    "tool-response": "tool",
    "tool_response": "tool",
}
# A message as the conventions have it since 1.37, which most are (role, parts, of answers a finish_reason): read at a
# third of the price, as nothing that the other schemas are known by is in it. Tool messages are read with the rest.
_CONVENTION_ROLES = ("system", "user", "assistant")
_LISTS = ("parts", "content", "contents", "blocks")
_REPR = re.compile(r"[A-Z]\w*Message(?:Chunk)?\(\w+=")
_ENUM = re.compile(r"<\w+\.\w+: '([\w-]+)'>")


def messages(value: Value, role: str = "user") -> tuple[Message, ...]:
    """All messages of an attribute or log body; role: of a bare text. Empty for what cannot be read."""
    if value is None:
        return ()
    if isinstance(value, str) and value[:2] == "[{":  # nothing but an array, whole or cut
        if len(value) >= MIN_CHARS and (replayed := _REPLAY.messages(value, _with_roles)) is not None:
            return replayed
        try:
            found = loads(value)
        except ValueError:
            return ()
        if "role" in found[0]:  # as the conventions and most others have it
            return _each(found, role)
    else:
        found, _ = structured(value)
    if isinstance(found, dict):
        inner = found.get("messages")
        return messages(inner, role) if isinstance(inner, (list, tuple)) else _some(message(found, role))
    if isinstance(found, str):
        return () if is_redacted(found) else (Message(role, (Text(found),)),)
    if not isinstance(found, (list, tuple)):
        return ()
    if not (found and isinstance(found[0], dict) and "role" in found[0]):
        if found and all(isinstance(m, (list, tuple)) for m in found) and not _is_pair(found[0]):
            found = found[0]  # LangChain callbacks batch: a list of conversations, of which there is one
        if are_parts(found):
            return _some(Message(role, parts(found)))
    return _each(found, role)


def _each(items: Iterable[Any], role: str) -> tuple[Message, ...]:
    found = []
    for item in items:
        one = message(item, role)
        if one is not None and one.parts:
            found.append(one)
    return tuple(found)


_REPLAY = Replay()


def _with_roles(found: Any) -> tuple[Message, ...] | None:
    """Messages of an array whose items all name their role: only then does none depend on another or on a default."""
    if not all(isinstance(item, dict) and isinstance(item.get("role"), str) for item in found):
        return None
    return _each(found, "user")


def message(value: Any, role: str = "user") -> Message | None:
    """One message, None if the value is none."""
    if isinstance(value, dict) and len(value) == 2 + ("finish_reason" in value) and "parts" in value:
        own = value.get("role")
        if own in _CONVENTION_ROLES:
            return Message(own, parts(value["parts"]))
    if isinstance(value, str):
        if _REPR.match(value):
            return _from_repr(value, role)
        return Message(role, (Text(value),)) if not is_redacted(value) else None
    if _is_pair(value):
        return Message(_role(value[0], role), (Text(value[1]),))
    if not isinstance(value, dict):
        return None
    inner = value.get("kwargs") if value.get("lc") else value.get("data")
    if isinstance(inner, dict) and ("content" in inner or "tool_calls" in inner):
        return message({"type": _type_of(value), **inner}, role)
    item = _item(value)
    if item is not None:
        return item
    if "message" in value and isinstance(value["message"], (dict, list)) and "role" not in value:
        return _choice(value, role)
    own = _role(value.get("role") or value.get("type"), role)
    return Message(own, _parts_of(value, own), text_of(value.get("name")) if own == "assistant" else None)


def _from_repr(text: str, role: str) -> Message | None:
    """str() of LlamaIndex's and smolagents' ChatMessage, LangChain's AIMessage; nothing where it was cut."""
    try:
        found = python_repr.read(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    return message({"type": text.partition("(")[0], **found}, role)


# ---- messages ----------------------------------------------------------------------------------


def _item(value: Mapping[str, Any]) -> Message | None:
    """An item of OpenAI's responses API, where calls and outputs stand beside messages."""
    kind = value.get("type")
    if kind == "function_call":
        found = tool_call(value)
        return Message("assistant", (found,) if found else ())
    if kind == "function_call_output":
        return Message("tool", (response(value),))
    return None


def _choice(value: Mapping[str, Any], role: str) -> Message | None:
    """`gen_ai.choice` body and OpenAI choices: the message is one level down, tool calls may stand beside it."""
    inner = value["message"]
    found = message(inner if isinstance(inner, dict) else {"content": inner}, role)
    beside = tool_calls(value.get("tool_calls"))
    own = found.parts if found else ()
    return Message("assistant" if found is None else found.role, (*own, *beside))


def _parts_of(value: Mapping[str, Any], role: str) -> tuple[Part, ...]:
    calls = tool_calls(value.get("tool_calls")) or tool_calls(value.get("toolCalls"))
    if role == "tool" and (answer := _tool_message(value)) is not None:
        return (answer,)
    if isinstance(old := value.get("function_call"), dict) and not calls:
        calls = tool_calls([old])
    for key in _LISTS:
        content = value.get(key)
        if isinstance(content, str) and content[:1] == "[" and key != "parts":
            inner, _ = structured(content)
            content = inner if are_parts(inner) else content
        if content:
            found = parts(content)
            if calls:  # LangChain keeps Anthropic's tool_use blocks beside its own tool_calls
                found = tuple(p for p in found if not isinstance(p, Call))
            return (*found, *calls)
    text = text_part(value)
    return (text, *calls) if text else calls


def _tool_message(value: Mapping[str, Any]) -> Response | None:
    content = value.get("parts", value.get("content"))
    if isinstance(content, (list, tuple)) and any(isinstance(p, (Response, Call)) for p in parts(content)):
        return None
    if "content" not in value and "parts" not in value and "output" not in value and "result" not in value:
        return None
    flat = {k: v for k, v in value.items() if k not in ("role", "type", "parts")}
    return response({"content": content, **flat})


def _role(value: Any, default: str) -> str:
    if not isinstance(value, str):
        return default
    lowered = value.lower()
    if enum := _ENUM.fullmatch(lowered):
        lowered = enum[1]
    if lowered.startswith("messagerole."):
        lowered = lowered[12:].replace("_", "-")
    return ROLES.get(lowered, lowered if lowered in ("system", "user", "assistant", "tool") else default)


def _type_of(value: Mapping[str, Any]) -> Any:
    ids = value.get("id")
    if value.get("lc") and isinstance(ids, (list, tuple)) and ids:
        return ids[-1]
    return value.get("type")


def _is_pair(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(v, str) for v in value)


def _some(value: Message | None) -> tuple[Message, ...]:
    return (value,) if value is not None and value.parts else ()


# ---- looking into messages ---------------------------------------------------------------------


def texts(value: Iterable[Message], role: str) -> tuple[str, ...]:
    """The text of each message of this role that has one."""
    return tuple(t for m in value if m.role == role and (t := text_in(m)))


def without_system(value: Iterable[Message]) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """The messages but the system's, and the texts of those."""
    told = tuple(value)
    return tuple(m for m in told if m.role != "system"), texts(told, "system")


def text_in(value: Message) -> str:
    if len(value.parts) == 1:  # most messages
        (only,) = value.parts
        return only.content.strip() if isinstance(only, Text) else ""
    return "\n".join(p.content for p in value.parts if isinstance(p, Text)).strip()


def calls_in(value: Iterable[Message]) -> tuple[Call, ...]:
    return tuple(p for m in value for p in m.parts if isinstance(p, Call))


def instructions(value: Value) -> tuple[str, ...]:
    """`gen_ai.system_instructions`: parts, or (OpenLLMetry's create_agent) a plain text."""
    return tuple(t for m in messages(value, "system") if (t := text_in(m)))
