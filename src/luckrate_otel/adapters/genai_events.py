"""GenAI messages that are no 1.37 attribute: events of every version, and OpenLLMetry's flattened attributes.

An event is a span event (its body's fields as attributes) or a log record (a body, or attributes).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.content.messages import message, messages
from luckrate_otel.content.structured import mapping, structured
from luckrate_otel.facts import Message
from luckrate_otel.telemetry import Value

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
DETAILS = "gen_ai.client.inference.operation.details"
MESSAGE_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def event_inputs(name: str, attributes: Mapping[str, Value], body: Value) -> tuple[Message, ...]:
    """Messages that went to the model, from a span event or log record of any version."""
    if name == DETAILS:
        return messages(either(attributes, body, INPUT))
    if name == "gen_ai.content.prompt":  # until 1.27
        return messages(either(attributes, body, "gen_ai.prompt"))
    if name in MESSAGE_ROLES:
        return _event_message(MESSAGE_ROLES[name], _content(attributes, body))
    return ()


def event_outputs(name: str, attributes: Mapping[str, Value], body: Value) -> tuple[Message, ...]:
    """Messages that the model answered, from a span event or log record of any version."""
    if name == DETAILS:
        return messages(either(attributes, body, OUTPUT), "assistant")
    if name == "gen_ai.content.completion":
        return messages(either(attributes, body, "gen_ai.completion"), "assistant")
    if name == "gen_ai.choice":
        return _event_message("assistant", _content(attributes, body))
    return ()


def either(attributes: Mapping[str, Value], body: Value, key: str) -> Value:
    found = attributes.get(key)
    return found if found is not None else mapping(body).get(key)


def _content(attributes: Mapping[str, Value], body: Value) -> Mapping[str, Any]:
    """The body of an old event: the log body, or its fields as attributes where it became a span event."""
    found, _ = structured(body)
    if isinstance(found, dict):
        return found
    if isinstance(found, str):
        return {"content": found}
    return {k: v for k, v in attributes.items() if not k.startswith("gen_ai.") or k == "gen_ai.event.content"}


def _event_message(role: str, body: Mapping[str, Any]) -> tuple[Message, ...]:
    opened = {k: _opened(v) for k, v in body.items() if k not in ("finish_reason", "index")}
    if "gen_ai.event.content" in opened:  # Azure's and older emitters' single attribute
        whole = opened["gen_ai.event.content"]
        opened = dict(whole) if isinstance(whole, dict) else {"content": whole}
    if role == "tool" and "content" in opened:
        opened.setdefault("tool_call_id", opened.pop("id", None))
    if role == "assistant" and isinstance(opened.get("message"), (str, list, tuple)):
        opened["content"] = opened.pop("message")
    if isinstance(inner := opened.get("message"), dict):  # a choice: tool calls inside the message or beside it
        opened = {**opened, **inner}
    found = message({"role": role, **opened}, role)
    return (found,) if found is not None and found.parts else ()


def _opened(value: Value) -> Value:
    if isinstance(value, str) and value[:1] in ("[", "{"):
        found, gap = structured(value)
        return value if gap else found
    return value


# ---- OpenLLMetry's flattened messages, which other emitters copied ------------------------------


def indexed(attributes: Mapping[str, Value], prefix: str, role: str = "user") -> tuple[Message, ...]:
    """`gen_ai.prompt.N.role`, `.content`, `.tool_calls.M.name`, … and the like for completions."""
    if f"{prefix}.0.role" not in attributes and f"{prefix}.0.content" not in attributes:
        return messages(attributes.get(prefix), role) if prefix in attributes else ()
    found = []
    for n in range(_MAX_INDEX):
        at = f"{prefix}.{n}."
        own = attributes.get(at + "role")
        content = attributes.get(at + "content")
        calls = [
            {k: attributes.get(f"{at}tool_calls.{m}.{k}") for k in ("id", "name", "arguments")}
            for m in range(_MAX_INDEX)
            if f"{at}tool_calls.{m}.name" in attributes
        ]
        if own is None and content is None and not calls:
            break
        call_id = attributes.get(at + "tool_call_id")
        one = message({"role": own or role, "content": content, "tool_calls": calls, "tool_call_id": call_id}, role)
        if one is not None and one.parts:
            found.append(one)
    return tuple(found)


# Messages of one call, and calls of one message: a bound against hostile attribute names, no limit in practice.
_MAX_INDEX = 512
