"""Facts written by hand, short enough for a table. Times are in milliseconds here, nanoseconds in the facts."""

from __future__ import annotations

from typing import Any

from luckrate_otel.facts import Call, Facts, Message, Role, Text
from luckrate_otel.telemetry import Head

TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER_TRACE = "1bf7651916cd43dd8448eb211c80319d"
MS = 1_000_000


def sid(name: str) -> str:
    """A span id that shows its short name: `a1` → `00000000000000a1` for hex names, else the name's bytes."""
    try:
        return f"{int(name, 16):016x}"
    except ValueError:
        return name.encode().hex().rjust(16, "0")[:16]


def head(span: str, parent: str = "", start: float = 0, end: float | None = None, **kw: Any) -> Head:
    """span, parent: short names, see sid(); end: start + 1 if not given."""
    return Head(
        trace_id=kw.pop("trace", TRACE),
        span_id=sid(span) if span else "",
        parent_id=sid(parent) if parent else "",
        start_ns=int(start * MS),
        end_ns=int((start + 1 if end is None else end) * MS),
        **kw,
    )


_HEAD_FIELDS = frozenset({"trace", "name", "kind", "status", "scope", "service"})


def fact(role: Role, span: str, parent: str = "", start: float = 0, end: float | None = None, **kw: Any) -> Facts:
    of_head = {k: kw.pop(k) for k in list(kw) if k in _HEAD_FIELDS}
    return Facts(role=role, adapter="test", head=head(span, parent, start, end, **of_head), **kw)


def agent(span: str, parent: str = "", start: float = 0, end: float | None = None, **kw: Any) -> Facts:
    return fact(Role.AGENT, span, parent, start, end, **{"agent": span, **kw})


def tool(span: str, parent: str = "", start: float = 0, end: float | None = None, **kw: Any) -> Facts:
    return fact(Role.TOOL, span, parent, start, end, **{"tool": "lookup", "ok": True, **kw})


def model(span: str, parent: str = "", start: float = 0, end: float | None = None, **kw: Any) -> Facts:
    return fact(Role.MODEL, span, parent, start, end, **kw)


def wrapper(span: str, parent: str = "", start: float = 0, end: float | None = None, **kw: Any) -> Facts:
    return fact(Role.WRAPPER, span, parent, start, end, **kw)


def log(role: Role, span: str, start: float = 0, **kw: Any) -> Facts:
    """Facts of a log record that belongs to the span."""
    return fact(role, span, "", start, start, log=True, **kw)


def asks(*tools: str) -> Message:
    """What a model says when it asks for tool calls."""
    return Message("assistant", tuple(Call(name, {}) for name in tools))


def says(text: str, role: str = "user") -> Message:
    return Message(role, (Text(text),))


def links(**parents: str) -> dict[str, str]:
    """Parent links of spans that no adapter claimed, by short name."""
    return {sid(span): sid(parent) if parent else "" for span, parent in parents.items()}
