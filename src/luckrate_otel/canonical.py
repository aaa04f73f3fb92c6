"""One text per value: equal values give equal texts, whatever the order of their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping

from luckrate_otel.telemetry import Value

_ENCODE = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode  # json.dumps would make one for every call


def canonical(value: Value) -> str:
    """JSON with sorted keys; tuples are lists, and what JSON has no form for is its text.

    1, 1.0 and True differ, as in JSON. Raises RecursionError on values nested past the interpreter's limit.
    """
    return _ENCODE(_plain(value))


def _plain(value: Value) -> Value:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (dict, Mapping)):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(item) for item in value)
    return str(value)


def _key(key: Value) -> str:
    """Keys as json.dumps writes them; made text first, as keys of mixed types cannot be sorted."""
    return key if isinstance(key, str) else json.dumps(key) if isinstance(key, int | float | None) else str(key)
