"""One text per value: equal values give equal texts, whatever the order of their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from luckrate_otel.telemetry import Value

_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # json.dumps would make one for every call


def canonical(value: Value) -> str:
    """JSON with sorted keys; tuples are lists, and what JSON has no form for is its text.

    1, 1.0 and True differ, as in JSON. Raises RecursionError on values nested past the interpreter's limit.
    """
    return _ENCODE(plain(value))


def plain(value: Value) -> Value:
    """The value in JSON's own types."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (dict, Mapping)):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    return _code(value) if callable(value) else str(value)


def _code(function: Value) -> str:
    """A function by its name and what it does, not by where in memory it lies."""
    code = getattr(function, "__code__", None)
    parts = (code.co_code, *(c for c in code.co_consts if isinstance(c, str | int | float | bytes))) if code else ()
    digest = sha256(repr((parts, code.co_names if code else ())).encode()).hexdigest()[:16]
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}.{name}:{digest}"


def _key(key: Value) -> str:
    """Keys as json.dumps writes them; made text first, as keys of mixed types cannot be sorted."""
    return key if isinstance(key, str) else json.dumps(key) if isinstance(key, int | float | None) else str(key)
