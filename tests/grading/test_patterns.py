"""Regular expressions mean the same in every Python that is supported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import luckrate_otel

ROOT = Path(luckrate_otel.__file__).parent


def patterns() -> Iterator[tuple[str, str]]:
    """Every literal pattern given to a function of re, with its place."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            of_re = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            first = node.args[0]
            if of_re and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", first.value


def is_possessive(pattern: str) -> bool:
    """Told by the parser of re itself, as `++` in a character class is none."""
    parser = re._parser  # type: ignore[attr-defined]
    return "POSSESSIVE_REPEAT" in repr(parser.parse(pattern))


def test_no_possessive_quantifier() -> None:
    """Before Python 3.11.5 they match wrongly: `\\d++(?:,\\d++)*+` takes the comma of "120, 230"."""
    assert is_possessive(r"a*+")
    assert not is_possessive(r"[*+]")
    found = dict(patterns())
    assert len(found) > 10
    assert [place for place, pattern in found.items() if is_possessive(pattern)] == []
