"""What keeps a text from being YAML, in words for whoever wrote it; the scanner's are for those who know scanners."""

from __future__ import annotations

import re
from typing import Final

from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from luckrate_otel.errors import Problem

# What the reader says of the problem → what is told, and whether where it began says more than where it was noticed.
_WORDS: Final = (
    (r"found unexpected end of stream", "a quoted text is not closed", True),
    (r"expected ',' or '([\]}])'", "a list or mapping in brackets is not closed by {1}, or lacks a comma", True),
    (r"expected the node content, but found '<stream end>'", "a bracket that was opened is not closed", True),
    (r"expected the node content, but found '?(.+?)'?$", "a value is missing before {1}", False),
    (r"could not find expected ':'", "a key lacks its colon, and a space behind that", True),
    (r"sequence entries are not allowed", "no list can begin here; put its - on a line of its own", False),
    (
        r"mapping values are not allowed",
        "a colon stands where no value can begin; put the text in quotes, or indent it as its neighbours",
        False,
    ),
    (
        r"expected (<block end>|'<document start>')",
        "does not go on as the lines above began; mend the indentation, or put the text in quotes",
        False,
    ),
    (r"found character '(.)' that cannot start", "no value begins with {1}; put it in quotes", False),
    (r"found undefined alias '(.*)'", "*{1} stands for what &{1} marks, which nothing does; put text in quotes", False),
)


def yaml_problem(error: Exception, text: str) -> Problem:
    """error: of the reader, or RecursionError. text: what was read."""
    words, line = _told(error, text)
    return Problem("", f"not valid YAML: {words}", line)


def _told(error: Exception, text: str) -> tuple[str, int | None]:
    if isinstance(error, RecursionError):
        return "nested too deep", None
    if isinstance(error, ReaderError):
        return f"holds the character U+{error.character:04X}", text.count("\n", 0, error.position) + 1
    if isinstance(error, MarkedYAMLError):
        return _marked(error, text)
    first, *_ = str(error).strip().splitlines() or [type(error).__name__]
    return first, None


def _marked(error: MarkedYAMLError, text: str) -> tuple[str, int | None]:
    noticed = error.problem_mark or error.context_mark
    line = noticed.line if noticed else 0
    said = str(error.problem)
    if "'\\t'" in said:
        return "a tab stands where only spaces may", _tab(text, line)
    for pattern, words, from_start in _WORDS:
        if found := re.search(pattern, said):
            began = error.context_mark if from_start and error.context_mark else noticed
            named = found[1] if found.lastindex else ""
            return words.replace("{1}", named), began.line + 1 if began else None
    words = " ".join(part for part in (error.context, error.problem) if part)
    return words, noticed.line + 1 if noticed else None


def _tab(text: str, line: int) -> int:
    """The line of a tab that indents; the reader gives that of the text before it. line: 0-based."""
    lines = text.splitlines()
    return next((n for n in range(line, len(lines)) if lines[n].lstrip(" ").startswith("\t")), line) + 1
