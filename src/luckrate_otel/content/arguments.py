"""A call's arguments: a mapping, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.content import python_repr
from luckrate_otel.content.structured import CUT, fits, is_redacted, loads
from luckrate_otel.facts import Gap
from luckrate_otel.telemetry import Value

# Values that reached us without their names (Python *args, LangChain's single string argument) stand under this key
# until join finds the names in the model's own call. No JSON Schema property of a real tool is called "".
POSITIONAL = ""

# No schema of a real tool nests this deep; comparing deeper values would exhaust the interpreter's stack.
MAX_DEPTH = 64

_SCALARS = frozenset({str, int, float, bool, type(None)})

Arguments = tuple[Mapping[str, Value] | None, Gap | None]


def arguments(value: Value) -> Arguments:
    """Arguments as the model sent them: an object, or its JSON (once or twice encoded) or Python text."""
    if value is None:
        return None, Gap.NOT_CAPTURED
    if isinstance(value, dict):
        if CUT in value:
            return None, Gap.TRUNCATED
        flat = _SCALARS.issuperset(map(type, value.values()))  # as most are: half the price of fits()
        return (value, None) if flat or fits(value, MAX_DEPTH) else (None, Gap.TOO_LARGE)
    if not isinstance(value, str):
        return None, Gap.NOT_CAPTURED
    if value == CUT:
        return None, Gap.TRUNCATED
    if not value.strip():
        return {}, None  # OpenAI streams "" for a call without arguments
    if is_redacted(value):
        return None, Gap.REDACTED
    return _from_text(value, 2)


def _from_text(text: str, levels: int) -> Arguments:
    try:
        found: Any = loads(text)
    except ValueError:
        return _from_repr(text)
    if isinstance(found, dict):
        nested = text.count("{") + text.count("[") > MAX_DEPTH and not fits(found, MAX_DEPTH)
        return (None, Gap.TOO_LARGE) if nested else (found, None)
    if found is None:
        return {}, None
    if isinstance(found, str) and levels:
        return _from_text(found, levels - 1) if found.lstrip()[:1] == "{" else (None, Gap.NOT_CAPTURED)
    return None, Gap.NOT_CAPTURED


def _from_repr(text: str) -> Arguments:
    if text.lstrip()[:1] != "{":
        return None, Gap.NOT_CAPTURED
    try:
        found = python_repr.read(text)
    except ValueError:
        return None, Gap.TRUNCATED
    return (found, None) if isinstance(found, dict) else (None, Gap.TRUNCATED)


def from_signature(value: Mapping[str, Any], names: tuple[str, ...] = ()) -> Arguments:
    """`{"args": [..], "kwargs": {..}}` of a decorated Python function; names: its parameters in order, if known."""
    keywords, positional = value.get("kwargs"), value.get("args")
    named: dict[str, Any] = dict(keywords) if isinstance(keywords, dict) else {}
    if not isinstance(positional, (list, tuple)) or not positional:
        return named, None
    if len(names) >= len(positional):
        return dict(zip(names, positional, strict=False)) | named, None
    if len(positional) == 1 and isinstance(positional[0], dict) and not named:
        return positional[0], None
    return {POSITIONAL: tuple(positional), **named}, None


def is_signature(value: Any) -> bool:
    return isinstance(value, dict) and "kwargs" in value and isinstance(value.get("args", ()), (list, tuple))


def named(args: Mapping[str, Value], asked: Mapping[str, Value]) -> Mapping[str, Value] | None:
    """The names for values that came without them, from the model's own call; None if these are not its values."""
    loose = args.get(POSITIONAL)
    values = loose if isinstance(loose, (list, tuple)) else (loose,)
    rest = {k: v for k, v in args.items() if k != POSITIONAL}
    left = [v for k, v in asked.items() if k not in rest]
    if any(k not in asked or asked[k] != v for k, v in rest.items()) or len(left) < len(values):
        return None
    return asked if all(v in left or str(v) in map(str, left) for v in values) else None
