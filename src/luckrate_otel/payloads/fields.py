"""Reading values of any shape without raising: parsed JSON and live objects alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, TypeVar

from luckrate_otel.facts import Gap
from luckrate_otel.surrogates import mended
from luckrate_otel.telemetry import Value

# A call's arguments and results are shallow in practice; the bounds stop cycles (flatted data may hold them) and
# shared references that would unfold exponentially. 64 is twice what JSON Schema validators nest to by default.
MAX_DEPTH = 64
MAX_NODES = 200_000

T = TypeVar("T")

_ATOMS = (str, bytes, bytearray, int, float, bool, type(None), list, tuple, set, frozenset)
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "refusal"})


class _TooLarge(Exception):
    """Control flow of plain(); never seen outside."""


def get(value: Any, *keys: str) -> Any:
    """What lies under keys, in mappings or attributes of live objects; None where a key is absent."""
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, _ATOMS):
            return None
        else:
            value = getattr(value, key, None)
    return value


def items(value: Any) -> tuple[Any, ...]:
    """The members of a list or tuple; nothing for anything else."""
    return tuple(value) if isinstance(value, list | tuple) else ()


def mapping(value: Any) -> Mapping[str, Any]:
    """The mapping itself, or an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def word(value: Any) -> str | None:
    """A non-empty string, or None for anything else."""
    return value if isinstance(value, str) and value else None


def number(value: Any) -> float | None:
    """A finite number, or None for anything else; numerals in strings are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if isfinite(result) else None


def moment_ms(value: Any) -> float | None:
    """Milliseconds since the epoch of a datetime, an ISO 8601 text or seconds; a time without zone counts as UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        seconds = number(value)
        return None if seconds is None else seconds * 1000
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000


def nanoseconds(moment_ms: float) -> int:
    """Whole nanoseconds; by way of microseconds, the finest that a float of today's date in milliseconds holds."""
    return round(moment_ms * 1000) * 1000


def plain(value: Any) -> tuple[Value, Gap | None]:
    """A bounded copy made of JSON types, or (None, TOO_LARGE) when it nests or unfolds too far."""
    try:
        return _copy(value, MAX_DEPTH, iter(range(MAX_NODES))), None
    except _TooLarge:
        return None, Gap.TOO_LARGE


def _copy(value: Any, depth: int, budget: Iterator[int]) -> Value:
    if depth == 0 or next(budget, None) is None:
        raise _TooLarge
    if isinstance(value, Mapping):
        return {str(key): _copy(member, depth - 1, budget) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_copy(member, depth - 1, budget) for member in value]
    if isinstance(value, str | int | float | bool | type(None)):
        return value
    return str(value)


def parse(text: str) -> Any:
    """Parsed JSON, None when it is none (or nests too far)."""
    try:
        return mended(json.loads(text), text)
    except (ValueError, RecursionError):
        return None


def render(value: Any) -> tuple[str | None, Gap | None]:
    """A value as text: a string as it is, anything else as JSON; (None, reason) when it is absent or too large."""
    if isinstance(value, str):
        return value, None
    if value is None:
        return None, Gap.NOT_CAPTURED
    copy, gap = plain(value)
    if gap is not None:
        return None, gap
    try:
        return json.dumps(copy, ensure_ascii=False), None
    except ValueError:  # an integer of more digits than Python prints
        return None, Gap.TOO_LARGE


def arguments(value: Any) -> tuple[Mapping[str, Value] | None, Gap | None]:
    """Call arguments from a mapping or its JSON text; an empty text is a call without arguments.

    Text that is not a JSON object was cut, or never was one: not captured, rather than a made-up mapping.
    """
    if isinstance(value, str):
        value = parse(value) if value.strip() else {}
    if not isinstance(value, Mapping):
        return None, Gap.NOT_CAPTURED
    copy, gap = plain(value)
    return (copy, None) if gap is None else (None, gap)


def texts(content: Any) -> str | None:
    """The words of a message's content: a string, or the text parts of a list, one per line."""
    if isinstance(content, str):
        return content
    found = [word for part in items(content) if (word := _part_text(part)) is not None]
    return "\n".join(found) if found else None


def _part_text(part: Any) -> str | None:
    if isinstance(part, str):
        return part
    if word(get(part, "type")) not in _TEXT_PARTS:
        return None
    found = get(part, "text")
    found = get(part, "content") if found is None else found
    found = get(part, "refusal") if found is None else found
    return found if isinstance(found, str) else None


def output(content: Any) -> str | None:
    """What a tool gave back, as text: the text parts where there are only such, else JSON."""
    if isinstance(content, list | tuple) and content and all(_part_text(part) is not None for part in content):
        return texts(content)
    return render(content)[0]


def first(values: Iterable[T | None]) -> T | None:
    """The first value that is not None."""
    return next((value for value in values if value is not None), None)
