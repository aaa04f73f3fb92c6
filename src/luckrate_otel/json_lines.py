"""Where each value of a JSON text stands, which Python's own reader does not tell, and which keys are given twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from luckrate_otel.errors import Problem
from luckrate_otel.paths import given_twice, join_path
from luckrate_otel.surrogates import mend

_PART: Final = re.compile(r'"(?:[^"\\]+|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')

# Values whose line is kept, and how deep: a path names every level, so many deep ones would take gigabytes. What lies
# beyond has the line of what it lies in. Real documents have a few hundred values.
MAX_VALUES: Final = 100_000
MAX_DEPTH: Final = 64


@dataclass(slots=True)
class _Open:
    """An object or array that is not closed yet. key: of the value that comes next, None where a key comes first.
    seen: line of each key so far."""

    path: str
    key: str | int | None
    seen: dict[str, int] = field(default_factory=dict)


def json_lines(text: str) -> tuple[dict[str, int], list[Problem]]:
    """Path → 1-based line, and a problem for each key that its object has already. text: valid JSON."""
    walk = _Walk()
    for part, line in _parts(text):
        walk.take(part, line)
    return walk.lines, walk.problems


def _parts(text: str) -> Iterator[tuple[str, int]]:
    line, told = 1, 0
    for match in _PART.finditer(text):
        line += text.count("\n", told, match.start())
        told = match.start()
        yield match[0], line


class _Walk:
    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self._opened: list[_Open] = []

    def take(self, part: str, line: int) -> None:
        around = self._opened[-1] if self._opened else None
        if part in ("}", "]"):
            self._opened.pop()
        elif part == "," and around is not None:
            around.key = around.key + 1 if isinstance(around.key, int) else None
        elif around is not None and around.key is None:
            self._key(around, mend(json.loads(part)), line)
        elif part != ":":
            path = self._path(around)
            self._note(path, line)
            if part in ("{", "["):
                self._opened.append(_Open(path, None if part == "{" else 0))

    def _key(self, around: _Open, key: str, line: int) -> None:
        around.key = key
        path = self._path(around)
        if key in around.seen:
            self.problems.append(given_twice(path, around.seen[key], line))
            return
        around.seen[key] = line
        self.lines.pop(path, None)  # an empty key has the path of what it stands in, and the last is the nearest
        self._note(path, line)

    def _path(self, around: _Open | None) -> str:
        if around is None or around.key is None:
            return ""
        return join_path(around.path, around.key) if len(self._opened) <= MAX_DEPTH else around.path

    def _note(self, path: str, line: int) -> None:
        if len(self.lines) < MAX_VALUES:
            self.lines.setdefault(path, line)
