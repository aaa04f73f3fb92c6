"""Paths into arguments and results: `order_id`, `order.lines[0].price`, `lines[*].price`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from luckrate_otel.rules.key import Place
from luckrate_otel.telemetry import Value

# Names and list indexes, outermost first; -1 stands for every member of a list.
Path = tuple[str | int, ...]
EVERY = -1

# A list of this many members is data transfer, and no rule about one call means each of them.
MAX_FOUND = 1000

# At most 300 digits, which a float still holds.
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_PART = re.compile(r"(?:^|\.)([^.\[\]]+)|\[([0-9]+|\*)\]")


class Unreadable(ValueError):
    """A result that is no JSON has no parts."""


def parse_path(value: str, place: Place) -> Path:
    """`a.b[0]`, with or without a leading `$`."""
    parts = parts_of(value)
    if parts is None:
        place.problem(f"not a path like order.lines[0].price: {value!r}")
    return parts or ()


def parts_of(value: str) -> Path | None:
    """The parts of a written path, None if it is none."""
    rest = value.removeprefix("$").removeprefix(".")
    parts: list[str | int] = []
    at = 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or (at == 0 and match[0].startswith(".")):
            return None
        parts.append(match[1] if match[1] is not None else EVERY if match[2] == "*" else int(match[2]))
        at = match.end()
    return tuple(parts)


def follow(value: Value, path: Path) -> list[Value]:
    """Every value at a path, in order; none where it leads nowhere."""
    found = [value]
    for part in path:
        found = [item for inner in found for item in _members(inner, part)][:MAX_FOUND]
    return found


def _members(value: Value, part: str | int) -> list[Value]:
    if isinstance(part, str):
        return [value[part]] if isinstance(value, Mapping) and part in value else []
    if not isinstance(value, list | tuple):
        return []
    return list(value) if part == EVERY else list(value[part : part + 1])


@lru_cache(maxsize=64)
def result_value(result: str) -> Value:
    """A result as JSON. Raises Unreadable for any other text. The same results are asked about by several clauses."""
    try:
        return json.loads(result)
    except (ValueError, RecursionError):
        raise Unreadable from None


def number(value: Value) -> float | int | None:
    """A number, or a text that is one; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            return None
        value = float(value) if match[1] or match[2] else int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value - value == 0:  # neither infinite nor NaN
        return int(value) if value.is_integer() else value
    return None
