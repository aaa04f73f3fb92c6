"""Read a YAML, JSON or TOML text as plain values that still know their line.

People fix what they can find: every value's line is kept, so that a problem found three layers later still names it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from luckrate_otel.errors import Problem
from luckrate_otel.json_lines import MAX_DEPTH, MAX_VALUES, json_lines
from luckrate_otel.paths import given_twice, join_path
from luckrate_otel.surrogates import mend, mended
from luckrate_otel.yaml_errors import yaml_problem

# YAML 1.2 core schema (yaml.org/spec/1.2.2 §10.3.2): only these plain scalars are not text. `yes`, `off`, `012` and
# `2024-01-01` are text.
_CORE: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"(null|Null|NULL|~|)"), lambda _: None),
    (re.compile(r"(true|True|TRUE)"), lambda _: True),
    (re.compile(r"(false|False|FALSE)"), lambda _: False),
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"0o[0-7]+"), lambda text: int(text, 0)),
    (re.compile(r"0x[0-9a-fA-F]+"), lambda text: int(text, 0)),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
    (re.compile(r"[-+]?(\.inf|\.Inf|\.INF)"), lambda text: float(text.replace(".", ""))),
    (re.compile(r"(\.nan|\.NaN|\.NAN)"), lambda _: float("nan")),
)

# What the reader itself gives untagged nodes; a timestamp and the like then stay text. `<<` is no merge in YAML 1.2.
_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "str", "seq", "map", "timestamp", "merge", "value")
)

# Python reads whole numbers of up to 4300 digits.
_TOO_LONG = "a number of too many digits"


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values. lines: path (`before[1][0]`) → 1-based line; problems: what kept values from being read."""

    value: Any
    source: str
    lines: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


# ---- YAML --------------------------------------------------------------------------------------


def read_yaml(text: str, source: str) -> Document:
    """YAML 1.2 core; no tags, one document. An empty text is None."""
    try:
        nodes = list(YAML(typ="safe", pure=True).compose_all(text))
    except (YAMLError, RecursionError, ValueError) as error:
        return Document(None, source, problems=(yaml_problem(error, text),))
    if len(nodes) > 1:
        line = nodes[1].start_mark.line + 1
        return Document(None, source, problems=(Problem("", "a second document starts here; keep one per file", line),))
    if not nodes or nodes[0] is None:
        return Document(None, source)
    walk = _Walk()
    return Document(walk.value(nodes[0], "", 0), source, walk.lines, tuple(walk.problems))


class _Walk:
    """Turns a node graph into values, noting each path's line."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.count = 0

    def value(self, node: Node, path: str, depth: int) -> Any:
        line = node.start_mark.line + 1
        self.lines.setdefault(path, line)
        self.count += 1
        # Aliases can make a small text expand without bound ("billion laughs").
        if self.count > MAX_VALUES or depth > MAX_DEPTH:
            if not any("too large" in p.message for p in self.problems):
                self.problems.append(
                    Problem(path, "the document is too large or too deep once aliases are resolved", line)
                )
            return None
        if node.tag not in _TAGS:
            self.problems.append(Problem(path, f"the tag {node.tag} is not supported; write a plain value", line))
            return None
        if isinstance(node, ScalarNode):
            return self.scalar(node, path)
        if isinstance(node, SequenceNode):
            return [self.value(child, join_path(path, i), depth + 1) for i, child in enumerate(node.value)]
        return self.mapping(node, path, depth) if isinstance(node, MappingNode) else None

    def scalar(self, node: ScalarNode, path: str) -> Any:
        try:
            return _scalar(node)
        except ValueError:
            self.problems.append(Problem(path, _TOO_LONG, node.start_mark.line + 1))
            return None

    def mapping(self, node: MappingNode, path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, ScalarNode):
                self.problems.append(Problem(path, "a key must be a text", line))
                continue
            key = mend(key_node.value)
            child = join_path(path, key)
            if key in result:
                self.problems.append(given_twice(child, self.lines[child], line))
                continue
            self.lines[child] = line
            result[key] = self.value(value_node, child, depth + 1)
        return result


def _scalar(node: ScalarNode) -> Any:
    if node.style is not None or node.tag == "tag:yaml.org,2002:str":
        return mend(node.value)
    for pattern, make in _CORE:
        if pattern.fullmatch(node.value):
            return make(node.value)
    return node.value


# ---- JSON and TOML -----------------------------------------------------------------------------


def read_json(text: str, source: str) -> Document:
    if not text.strip():
        return Document(None, source, problems=(Problem("", "not valid JSON: the file is empty; write {}"),))
    try:
        value = mended(json.loads(text), text)
    except json.JSONDecodeError as error:
        words = error.msg.removesuffix(" at")  # "Unterminated string starting at"
        return Document(None, source, problems=(Problem("", f"not valid JSON: {words}", error.lineno),))
    except RecursionError:
        return Document(None, source, problems=(Problem("", "not usable JSON: nested too deep"),))
    except ValueError:
        return Document(None, source, problems=(Problem("", f"not usable JSON: {_TOO_LONG}"),))
    lines, problems = json_lines(text)
    return Document(value, source, lines, tuple(problems))


def _toml_words(words: str) -> str:
    """tomllib's own, but for a key or table that is given twice, which it names as a tuple."""
    names = ".".join(re.findall(r"'([^']*)'", words))
    if words.startswith("Cannot declare"):
        return f"the table {names} is given twice"
    if words.startswith("Cannot mutate"):
        return f"{names} is written whole above, and given more keys here"
    return "a key is given twice" if words == "Cannot overwrite a value" else words


def read_toml(text: str, source: str) -> Document:
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        words = _toml_words(re.sub(r" \(at line.*\)", "", str(error)))
        return Document(
            None, source, problems=(Problem("", f"not valid TOML: {words}", int(found[1]) if found else None),)
        )
    except RecursionError:
        return Document(None, source, problems=(Problem("", "not usable TOML: nested too deep"),))
    except ValueError:
        return Document(None, source, problems=(Problem("", f"not usable TOML: {_TOO_LONG}"),))
    return Document(value, source, _toml_lines(text))


def _toml_lines(text: str) -> dict[str, int]:
    """Lines of top-level keys and tables; tomllib keeps none, and a nested path falls back to its ancestor's line."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            table = found[1].replace('"', "")
            lines.setdefault(table, number)
        elif found := re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line):
            lines.setdefault(join_path(table, found[1]), number)
    return lines


READERS: Mapping[str, Callable[[str, str], Document]] = {
    ".yaml": read_yaml,
    ".yml": read_yaml,
    ".json": read_json,
    ".toml": read_toml,
}


def read_text(path: Path) -> tuple[str, Problem | None]:
    """A file's text, or the one problem that kept it from being read."""
    try:
        return path.read_text(encoding="utf-8-sig"), None
    except UnicodeDecodeError as error:
        return "", Problem("", f"not UTF-8 text (byte {error.start}); save it as UTF-8")
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        return "", Problem("", f"cannot be read: {(getattr(error, 'strerror', None) or str(error)).lower()}")
