"""Keys of a spec: a name, how its value is read, and what it means when absent.

A parser is `parse(value, place) -> T`. It never raises: what is wrong is noted at its place, so that one load tells
every problem, and some T is returned all the same (the spec is refused later).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

from luckrate_otel.errors import Problem
from luckrate_otel.known import suggestion, unknown_keys
from luckrate_otel.rules.shapes import Shape
from luckrate_otel.telemetry import NOTHING, Value, nothing

T_co = TypeVar("T_co", covariant=True)

# Seconds; there are integers, and digits in texts, beyond every float.
_TOO_LONG = 1e300
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)?", re.ASCII)
# Of a text that is quoted in a message. It stands in the spec itself, so that no secret is told.
MAX_SHOWN = 40

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


Aliases = Mapping[str, str]

# Name of a clause as findings have it, what of that name does not depend on its place, what the clause says.
Clause = tuple[str, str, Value]


def no_clauses(_key: str, _value: Value, _aliases: Aliases) -> Iterator[Clause]:
    """Of a key that only names what is legal, or is on or off."""
    return iter(())


@dataclass(frozen=True, slots=True)
class Key(Generic[T_co]):
    """One key of a spec.

    default: the value of a spec that does not write it. shape: its JSON Schema, for editors. clauses: the clauses of a
    value that was read without a problem, by which findings are known again (contents.py).
    """

    name: str
    parse: Callable[[Value, Place], T_co]
    default: T_co
    shape: Shape
    clauses: Callable[[str, Value, Aliases], Iterator[Clause]] = no_clauses


@dataclass(frozen=True, slots=True)
class Mention:
    """A tool that the spec names, by its canonical name. instead: words that could stand in its place."""

    place: Place
    name: str
    instead: tuple[str, ...] = ()


@dataclass(slots=True)
class Notes:
    """What one reading of a spec gathers: problems, warnings, and the tools that rules name, each with its path.

    lines: path → 1-based line of the source file. aliases: other name → canonical name of a tool.
    """

    lines: Mapping[str, int] = field(default_factory=nothing)
    aliases: Mapping[str, str] = field(default_factory=nothing)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the spec a value stands, e.g. `before[1][0]`."""

    path: str
    notes: Notes

    def at(self, key: str | int) -> Place:
        if isinstance(key, int):
            return Place(f"{self.path}[{key}]", self.notes)
        return Place(f"{self.path}.{key}" if self.path else key, self.notes)

    def problem(self, message: str) -> None:
        self.notes.problems.append(Problem(self.path, message, self._line()))

    def warning(self, message: str) -> None:
        """Of what can be used as it is, and is seldom meant so."""
        self.notes.warnings.append(Problem(self.path, message, self._line()))

    def _line(self) -> int | None:
        """The line of this value, or of the nearest part around it that has one."""
        path = self.path
        while path and path not in self.notes.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.notes.lines.get(path)


# ---- words -------------------------------------------------------------------------------------


def shown(value: Value) -> str:
    """What stands there, in a spec author's words: short texts and numbers as they are, all else by its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and len(value) <= MAX_SHOWN:
        return repr(value)
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < 10**18):
        return str(value)
    names = {str: "text", int: "a number", float: "a number", dict: "a mapping", list: "a list", tuple: "a list"}
    return next((name for type_, name in names.items() if isinstance(value, type_)), type(value).__name__)


# ---- parsers -----------------------------------------------------------------------------------


def flag(value: Value, place: Place) -> bool:
    """true or false; nothing is false."""
    if value is not None and not isinstance(value, bool):
        place.problem(f"expected true or false, got {shown(value)}")
    return value is True


def count(minimum: int) -> Callable[[Value, Place], int | None]:
    """A whole number from minimum on; nothing is no limit."""

    def parse(value: Value, place: Place) -> int | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
            place.problem(f"expected a whole number from {minimum} on, got {shown(value)}")
            return None
        return value

    return parse


def whole(minimum: int) -> Callable[[Value, Place], int]:
    """A whole number from minimum on, which must be given."""

    def parse(value: Value, place: Place) -> int:
        if value is None:
            place.problem(f"expected a whole number from {minimum} on, got nothing")
        read = count(minimum)(value, place)
        return minimum if read is None else read

    return parse


def seconds(value: Value, place: Place) -> float | None:
    """A duration in seconds: 10, 2.5, "10s", "2m", "1h". Nothing is no limit."""
    read = duration(value)
    if read is None and value is not None:
        place.problem(f'expected seconds or a duration like "10s" or "2m", got {shown(value)}')
    return read


def duration(value: Value) -> float | None:
    """The same, None for what is no duration."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        read = value
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        read = float(match[1]) * _SECONDS[match[2] or "s"]
    else:
        return None
    return float(read) if 0 <= read < _TOO_LONG else None


def choice(*options: str) -> Callable[[Value, Place], str]:
    """One of the given words; the first when it is something else."""

    def parse(value: Value, place: Place) -> str:
        if isinstance(value, str) and value in options:
            return value
        place.problem(f"expected one of {', '.join(options)}, got {shown(value)}{suggestion(value, options)}")
        return options[0]

    return parse


def text(value: Value, place: Place) -> str:
    """A text that is not empty."""
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, str):
        place.problem("expected a text that is not empty")
    else:
        hint = "; put it in quotes" if isinstance(value, int | float) else ""  # bool is one too
        place.problem(f"expected a text, got {shown(value)}{hint}")
    return ""


def texts(value: Value, place: Place) -> tuple[str, ...]:
    """One text or a list of texts."""
    if isinstance(value, str):
        return (text(value, place),)
    return tuple(text(item, place.at(i)) for i, item in enumerate(items(value, place, "a text or a list of texts")))


def items(value: Value, place: Place, expected: str) -> tuple[Value, ...]:
    """The members of a list, tuple or set; sets sorted, so that two loads of one spec agree."""
    if isinstance(value, list | tuple):
        return tuple(value)
    if isinstance(value, set | frozenset):
        return tuple(sorted(value, key=str))
    place.problem(f"expected {expected}, got {shown(value)}")
    return ()


def entries(value: Value, place: Place, expected: str) -> tuple[tuple[str, Value], ...]:
    """The pairs of a mapping whose keys are texts."""
    if not isinstance(value, Mapping):
        place.problem(f"expected {expected}, got {shown(value)}")
        return ()
    for key in value:
        if not isinstance(key, str):
            place.problem(f"expected texts as keys, got {shown(key)}")
    return tuple((key, item) for key, item in value.items() if isinstance(key, str))


def block(value: Value, place: Place, known: tuple[str, ...], expected: str = "") -> dict[str, Value]:
    """A mapping that has these keys and no others. expected: where it may be something else, too."""
    read = dict(entries(value, place, expected or f"a mapping with {', '.join(known)}"))
    for key, message in unknown_keys(read, known):
        place.at(key).problem(message)
    return read


def tool(value: Value, place: Place, instead: tuple[str, ...] = ()) -> str:
    """The name of a tool, by its canonical name; noted, to be compared with the vocabulary.

    instead: words that are no tools, but could stand here.
    """
    name = tool_name(value, place)
    name = place.notes.aliases.get(name, name)
    if name and "*" not in name:  # which is told already
        place.notes.mentions.append(Mention(place, name, instead))
    return name


def tool_name(value: Value, place: Place) -> str:
    """A name as it is written. `delete_*` would be a tool that is never called, and its rule one that never fires."""
    name = text(value, place)
    if "*" in name:
        place.problem("tools are named in full; a * stands for nothing here")
    return name


def tool_names(value: Value, place: Place) -> tuple[str, ...]:
    """A list of tool names."""
    return tuple(tool(item, place.at(i)) for i, item in enumerate(_names(value, place)))


def _names(value: Value, place: Place) -> tuple[Value, ...]:
    """A name alone, or names without their brackets, is a slip so common that it is worth a hint."""
    if isinstance(value, str) and value.strip("[] ") and len(value) <= MAX_SHOWN:
        place.problem(f"expected a list of tool names, got {shown(value)}; write [{value.strip('[] ')}]")
        return ()
    return items(value, place, "a list of tool names")


def vocabulary(value: Value, place: Place) -> tuple[str, ...]:
    """The legal tools. Nothing and an empty list both mean that any tool is legal."""
    if value is None:
        return ()
    names = (tool_name(item, place.at(i)) for i, item in enumerate(_names(value, place)))
    return tuple(place.notes.aliases.get(name, name) for name in names)


def texts_by_tool(value: Value, place: Place) -> Mapping[str, tuple[str, ...]]:
    """A mapping from tool names to a text or a list of texts."""
    read: dict[str, tuple[str, ...]] = {}
    for key, item in entries(value, place, "a mapping from tool names to lists"):
        read[tool(key, place.at(key))] = texts(item, place.at(key))
    return MappingProxyType(read) if read else NOTHING
