"""What each clause of a spec says, apart from where it stands: so that findings are known again when clauses move.

A list's clause is known by its content and no longer by its number; one of a mapping by its name and what stands under
it. Keys that only name what is legal (`tools`, `handoffs`, `untrusted` …) have no clauses: a finding's own tool or
agents say what it is about, and that another name became legal changes nothing about it.

What a key's clauses are stands in its row: one of the functions below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from luckrate_otel.canonical import canonical
from luckrate_otel.rules.key import Aliases, Clause, Key
from luckrate_otel.telemetry import Value


def contents(keys: Iterable[Key[Any]], mapping: Mapping[str, Value], aliases: Aliases) -> Mapping[str, str]:
    """Clause, as findings name it (`before[1]`, `max_calls.issue_refund`) → hash of what it says, 16 hex digits.

    mapping: a spec that was read without a problem. aliases: other name → canonical name of a tool. Two clauses of one
    name, as of two names of one tool, have one hash of both.
    """
    said: dict[str, str] = {}
    for key in keys:
        if mapping.get(key.name) is not None:
            for clause, stem, value in key.clauses(key.name, mapping[key.name], aliases):
                said[clause] = f"{said.get(clause, '')}{stem}\x1f{canonical(value)}\x1e"
    return MappingProxyType(
        {clause: sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16] for clause, text in said.items()}
    )


# ---- kinds of keys -----------------------------------------------------------------------------


def each_item(key: str, value: Value, _: Aliases) -> Iterator[Clause]:
    """A list; sets in the order in which they are read."""
    members = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return ((f"{key}[{i}]", key, item) for i, item in enumerate(members))


def as_one(key: str, value: Value, _: Aliases) -> Iterator[Clause]:
    yield key, key, value


def one_or_each_item(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    """One clause, alone or in a list of one, is named by the key alone."""
    if not isinstance(value, list | tuple):
        return as_one(key, value, aliases)
    return as_one(key, value[0], aliases) if len(value) == 1 else each_item(key, value, aliases)


def by_tool(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    for tool, item in value.items():
        clause = f"{key}.{aliases.get(tool, tool)}"
        yield clause, clause, item
