"""A count and its noun agree, wherever one is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import luckrate_otel
from luckrate_otel.plural import plural

ROOT = Path(luckrate_otel.__file__).parent

# What messages count. A noun that is missing here is one that nobody has counted yet.
NOUNS = "byte|call|case|execution|file|finding|log record|part|piece|record|request|result|run|span|step|time|token"
_COUNTED = re.compile(rf" (?:[a-z-]+ )?(?:{NOUNS})s\b")

# What is no count of one: percentage shares of all runs, averages, and bounds that are constants.
_NO_COUNTS = {"calls a run", "of runs"}


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [
        (0, ("run",), "0 runs"),
        (1, ("run",), "1 run"),
        (2, ("run",), "2 runs"),
        (1, ("byte waits", "bytes wait"), "1 byte waits"),
        (2, ("byte waits", "bytes wait"), "2 bytes wait"),
    ],
)
def test_they_agree(count: int, words: tuple[str, ...], said: str) -> None:
    assert plural(count, *words) == said


def messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and words of every text in which a value that can be 1 stands before a noun in the plural."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for value, words in zip(node.values, node.values[1:], strict=False):
                is_count = isinstance(value, ast.FormattedValue) and not _constant(value.value)
                if is_count and isinstance(words, ast.Constant) and _COUNTED.match(str(words.value)):
                    yield node.lineno, str(words.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, found[0]) for found in re.finditer(rf"%d{_COUNTED.pattern}", node.value))


def _constant(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id.isupper()


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_message_has_a_plural_of_its_own(path: Path) -> None:
    found = messages(ast.parse(path.read_text(encoding="utf-8")))
    assert [(line, words) for line, words in found if words.strip() not in _NO_COUNTS] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('f"{n} runs"', 1),
        ('f"{len(x)} known-good runs keep it"', 1),
        ('"%d requests"', 1),
        ('f"{n} run"', 0),
        ('f"{MAX} runs"', 0),
        ("f\"{plural(n, 'run')} runs\"", 1),
    ],
)
def test_the_search_finds_them(source: str, count: int) -> None:
    assert len(list(messages(ast.parse(source)))) == count
