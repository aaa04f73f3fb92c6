"""LangChain and LangGraph messages → trajectory, without importing either.

Live objects, the three JSON forms (`dumpd`'s constructor form, `messages_to_dict`, plain dicts), graph states, state
snapshots, streamed updates and tool `Command`s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from luckrate_otel.facts import Call, Gap, Message, Part, Response, Text
from luckrate_otel.model import Trajectory
from luckrate_otel.payloads.fields import arguments, first, get, items, output, texts, word
from luckrate_otel.payloads.messages import ROLES, message_parts, openai_calls, role_of
from luckrate_otel.payloads.transcript import Said, retold

ADAPTER = "langchain"

_KINDS = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
# A framework's nesting of states in updates in commands is shallow; a deeper one is no conversation.
_MAX_NESTING = 8


def read(value: Any) -> tuple[Trajectory, ...] | None:
    """One trajectory from messages in any LangChain form; None when there is none or something else among them."""
    found = tuple(_unfolded(value, _MAX_NESTING))
    known = [_role(each) is not None or _is_removal(each) for each in found]
    langchain = any(role_of(_body(each)) is None for each in found)
    if not found or not all(known) or not langchain:
        return None
    return (from_langchain(value),)


def from_langchain(value: Any) -> Trajectory:
    """The run that messages, a graph state or streamed updates tell of; anything else in them is passed over.

    A tool message says whether its tool failed: `status`, "success" where it is left out, as in the framework itself.
    """
    found = [each for each in _unfolded(value, _MAX_NESTING) if not _is_handoff_back(each)]
    thread = (("config", "configurable", "thread_id"), ("metadata", "thread_id"), ("thread_id",))
    return retold(
        [said for each in found for said in _said(each)],
        ADAPTER,
        conversation_id=first(word(get(value, *path)) for path in thread),
    )


# ---- unfolding -----------------------------------------------------------------------------------


def _unfolded(value: Any, depth: int) -> Iterator[Any]:
    """The messages inside lists, states, snapshots, updates and commands, in order."""
    if depth == 0 or value is None or isinstance(value, str):
        return
    if _role(value) is not None or _is_removal(value):
        yield value
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _unfolded(member, depth - 1) if _may_unfold(member) else iter((member,))
    else:
        for inner in _inside(value):
            yield from _unfolded(inner, depth - 1)


def _may_unfold(member: Any) -> bool:
    return _role(member) is None and (isinstance(member, list | tuple) or any(True for _ in _inside(member)))


def _inside(value: Any) -> Iterator[Any]:
    """What holds messages in a state, a snapshot (`values`), a command (`update`) or one node's update."""
    for key in ("messages", "values", "update"):
        inner = get(value, key)
        if inner is not None and not callable(inner):  # a mapping-like state has methods of these names
            yield inner
            return
    if isinstance(value, Mapping):
        updates = tuple(value.values())
        if updates and all(isinstance(get(update, "messages"), list | tuple) for update in updates):
            yield from updates


# ---- one message ---------------------------------------------------------------------------------


def _body(raw: Any) -> Any:
    """Where a message's fields are: `kwargs`, `data` or the message itself."""
    if get(raw, "lc") is not None and get(raw, "kwargs") is not None:
        return get(raw, "kwargs")
    inner = get(raw, "data")
    return inner if isinstance(inner, Mapping) and isinstance(get(raw, "type"), str) else raw


def _kind(raw: Any) -> str | None:
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], str | list):
        return word(raw[0])  # ("human", "hello")
    if get(raw, "lc") is not None:
        return word(next(iter(items(get(raw, "id"))[-1:]), None))
    return word(get(raw, "type")) or word(get(raw, "role"))


def _role(raw: Any) -> str | None:
    kind = _kind(raw)
    if kind is None:
        return None
    if (role := role_of(raw)) is not None:
        return role
    short = kind.removesuffix("Chunk").removesuffix("Message").lower()
    if short == "chat":
        return role_of(_body(raw)) or "user"
    named = _KINDS.get(short) or (ROLES.get(short) if isinstance(raw, tuple) else None)
    has_content = isinstance(raw, tuple) or get(_body(raw), "content") is not None or get(_body(raw), "tool_calls")
    return named if has_content else None


def _is_removal(raw: Any) -> bool:
    """`RemoveMessage`: an operation on the state, nothing anyone said."""
    return _kind(raw) in {"remove", "RemoveMessage"}


def _is_handoff_back(raw: Any) -> bool:
    """A supervisor library writes this pair itself when a sub-agent is done; no model asked for such a call."""
    return get(_body(raw), "response_metadata", "__is_handoff_back") is True


def _said(raw: Any) -> Iterator[Said]:
    role = _role(raw)
    if role is None:
        return
    if isinstance(raw, tuple):
        words = texts(raw[1])
        yield Said(Message(role, (Text(words),) if words else ()))
        return
    body = _body(raw)
    agent = word(get(body, "name")) if role == "assistant" else None
    parts = _result(body) if role == "tool" else _parts(body)
    yield Said(Message(role, tuple(parts)), agent, word(get(body, "id")))


def _result(body: Any) -> Iterator[Part]:
    call_id = word(get(body, "tool_call_id"))
    yield Response(call_id, output(get(body, "content")), get(body, "status") != "error", word(get(body, "name")))


def _parts(body: Any) -> Iterator[Part]:
    """Words and calls. Calls are in `tool_calls`; content blocks and `additional_kwargs` may hold them once more."""
    blocks = message_parts(body)
    yield from (part for part in blocks if isinstance(part, Text))
    called = items(get(body, "tool_calls"))
    calls = [call for raw in called for call in _call(raw)] or [part for part in blocks if isinstance(part, Call)]
    yield from calls or openai_calls(get(body, "additional_kwargs"))
    for raw in items(get(body, "invalid_tool_calls")):
        yield from _invalid(raw)


def _call(raw: Any) -> Iterator[Call]:
    name = word(get(raw, "name"))
    if name is None:
        yield from openai_calls({"tool_calls": [raw]})
    else:
        args, gap = arguments(get(raw, "args"))
        yield Call(name, args, word(get(raw, "id")), gap)


def _invalid(raw: Any) -> Iterator[Part]:
    """A call whose arguments would not parse never reached a tool, yet the model made it."""
    name, call_id = word(get(raw, "name")) or "", word(get(raw, "id"))
    yield Call(name, None, call_id, Gap.NOT_CAPTURED)
    yield Response(call_id, word(get(raw, "error")) or "invalid_tool_call", ok=False, tool=name)
