"""What each clause of a spec says, apart from where it stands: so that findings are known again when clauses move.

A list's clause is known by its content and no longer by its number; one of a mapping by its name and what stands under
it. Keys that only name what is legal (`tools`, `handoffs`, `untrusted` …) have no clauses: a finding's own tool or
agents say what it is about, and that another name became legal changes nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType

from luckrate_otel.canonical import canonical
from luckrate_otel.rules.finding import named
from luckrate_otel.telemetry import NOTHING, Value

Aliases = Mapping[str, str]

# Name of the clause as findings have it, what of that name does not depend on its place, what it says.
Clause = tuple[str, str, Value]


def contents(mapping: Mapping[str, Value], aliases: Aliases) -> Mapping[str, str]:
    """Clause, as findings name it (`before[1]`, `max_calls.issue_refund`) → hash of what it says, 16 hex digits.

    mapping: a spec that was read without a problem. aliases: other name → canonical name of a tool. Two clauses of one
    name, as of two names of one tool, have one hash of both.
    """
    said: dict[str, str] = {}
    for key, clauses in CLAUSES.items():
        if mapping.get(key) is not None:
            for clause, stem, value in clauses(key, mapping[key], aliases):
                said[clause] = f"{said.get(clause, '')}{stem}\x1f{canonical(value)}\x1e"
    return MappingProxyType(
        {clause: sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16] for clause, text in said.items()}
    )


# ---- kinds of keys -----------------------------------------------------------------------------


def _each(key: str, value: Value, _: Aliases) -> Iterator[Clause]:
    """A list; sets in the order in which they are read."""
    members = sorted(value, key=str) if isinstance(value, set | frozenset) else value
    return ((f"{key}[{i}]", key, item) for i, item in enumerate(members))


def _whole(key: str, value: Value, _: Aliases) -> Iterator[Clause]:
    yield key, key, value


def _one_or_each(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    """One clause, alone or in a list of one, is named by the key alone."""
    if not isinstance(value, list | tuple):
        return _whole(key, value, aliases)
    return _whole(key, value[0], aliases) if len(value) == 1 else _each(key, value, aliases)


def _by_tool(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    for tool, item in value.items():
        clause = f"{key}.{aliases.get(tool, tool)}"
        yield clause, clause, item


def _durations(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    """A budget for all tools, or by tool, `*` for the others."""
    by_tool = dict(value) if isinstance(value, Mapping) else {"*": value}
    if "*" in by_tool:
        yield key, key, by_tool.pop("*")
    yield from _by_tool(key, by_tool, aliases)


def _schemas(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    """`from` is no part of them: the rule that reads it tells its findings apart by argument and sources."""
    for tool, item in value.items():
        clause = f"{key}.{named(aliases.get(tool, tool))}"
        yield clause, clause, {name: part for name, part in item.items() if name != "from"}


def _agents(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    for agent, item in value.items():
        if item.get("max_steps") is not None:
            yield from _whole(f"{key}.{agent}.max_steps", item["max_steps"], aliases)
        yield from _by_tool(f"{key}.{agent}.max_calls", item.get("max_calls", NOTHING), aliases)


CLAUSES: Mapping[str, Callable[[str, Value, Aliases], Iterator[Clause]]] = MappingProxyType(
    {
        **dict.fromkeys(("required", "forbidden", "any_of", "relations"), _each),
        **dict.fromkeys(("before", "each_before", "leads_to", "next", "not_after", "not_both"), _each),
        **dict.fromkeys(("starts_with", "ends_with", "exactly"), _whole),
        **dict.fromkeys(("max_steps", "max_duration", "max_tokens"), _whole),
        "max_retries": _one_or_each,
        "max_calls": _by_tool,
        "max_step_duration": _durations,
        "args": _schemas,
        "agents": _agents,
    }
)
