"""How a key of the configuration is written down: as a field that says what it may be, and what the docs tell of it."""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields
from typing import Any

from luckrate_otel.config.kinds import Kind
from luckrate_otel.telemetry import nothing

# Stands in a path for a name that the user chooses.
NAME = "<name>"


@dataclass(frozen=True, slots=True)
class Key:
    """What the docs tell of one key. default: as a user would write it, "" when there is none."""

    kind: Kind
    default: str
    meaning: str
    reason: str


def option(kind: Kind, value: Any, meaning: str, reason: str = "", *, default: str = "") -> Any:
    """A leaf of the tree. value: the default as the program holds it."""
    return field(default=value, metadata={"key": Key(kind, default, meaning, reason)})


def section(kind: type) -> Any:
    return field(default_factory=kind, metadata={"section": kind})


def section_or_none(kind: type) -> Any:
    """A section that `none` in its place switches off."""
    return field(default_factory=kind, metadata={"section": kind, "none": True})


def named(kind: type) -> Any:
    """A mapping from names that the user chooses to sections."""
    return field(default_factory=nothing, metadata={"named": kind})


def keys_of(kind: type, prefix: str = "") -> dict[str, Key]:
    """Every key of a section and of those in it, by its dotted path, in order."""
    table: dict[str, Key] = {}
    for item in fields(kind):
        path = f"{prefix}{item.name}"
        if "key" in item.metadata:
            table[path] = item.metadata["key"]
        elif "section" in item.metadata:
            table |= keys_of(item.metadata["section"], f"{path}.")
        elif "named" in item.metadata:
            table |= keys_of(item.metadata["named"], f"{path}.{NAME}.")
    return table


def settable(kind: type) -> dict[str, Field[Any]]:
    """The fields of a section that a file may set, by name."""
    return {item.name: item for item in fields(kind) if item.metadata}
