"""The leaves of a call's arguments, with their paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from json import loads
from typing import Any

from luckrate_otel.provenance.tokens.naming import is_content

MAX_DEPTH = 64  # JSON parsers of model providers stop well before; deeper nesting is an attack, not an argument
MAX_LEAVES = (
    20_000  # of one run; a call with thousands of list items is rare, a run with more than this is data transfer
)
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_SHOWN_KEY = 60


class TooMuch(Exception):
    """A run beyond the bounds of this engine: not judged, and said so."""


def leaves(args: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (path, name, value) of every leaf, in order: `("to[0].email", "email", "a@b.example")`.

    A JSON text is opened: what it holds are the leaves. name: the innermost key above the leaf; list items share their
    list's. Empty containers have no leaves.
    TooMuch: deeper than MAX_DEPTH.
    """
    for key, given in args.items():
        name = str(key)
        value = _parsed(name, given)
        if not isinstance(value, str) and isinstance(value, (Mapping, list, tuple)):
            yield from _inner(value, _step("", name), name, 1)
        else:
            yield _step("", name), name, value


def _inner(value: Any, path: str, name: str, depth: int) -> Iterator[tuple[str, str, Any]]:
    if depth > MAX_DEPTH:
        raise TooMuch
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    keyed = isinstance(value, Mapping)
    for key, given in items:
        label = str(key) if keyed else name
        where = _step(path, label) if keyed else f"{path}[{key}]"
        item = _parsed(label, given)
        if isinstance(item, (Mapping, list, tuple)):
            yield from _inner(item, where, label, depth + 1)
        else:
            yield where, label, item


def _parsed(name: str, value: Any) -> Any:
    """What a JSON text holds (agents often get to pass one text, `input`), unless it is content; else the value."""
    if not isinstance(value, str) or value[:1] not in ("{", "[") or value[-1:] not in ("}", "]") or is_content(name):
        return value
    try:
        found = loads(value)
    except (ValueError, RecursionError):
        return value
    return found or value


def _step(path: str, key: str) -> str:
    """A key that is no plain name may be a value in disguise (a table of people, say): it is masked in paths."""
    plain = (key.isascii() and key.isidentifier()) or _NAME.fullmatch(key)
    if not plain or len(key) > _SHOWN_KEY:
        return f"{path}[*]"
    return f"{path}.{key}" if path else key
