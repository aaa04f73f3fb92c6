"""Paths of a document's values (`before[1][0]`), and the lines that they stand in."""

from __future__ import annotations

from collections.abc import Mapping

from luckrate_otel.errors import Problem


def join_path(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def line_of(lines: Mapping[str, int], path: str) -> int | None:
    """The line of a path, or of its nearest ancestor that has one."""
    while path:
        if path in lines:
            return lines[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get("")


def given_twice(path: str, first: int, line: int) -> Problem:
    """A key that its mapping has already: one of the two would be lost, and nobody could say which was meant."""
    return Problem(path, f"given twice, first in line {first}", line)
