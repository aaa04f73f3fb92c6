"""Python reprs in attributes: `content='..' name='..'`, `TaskOutput(raw=.., messages=[..])`, `{'order_id': '88213'}`.

Several instrumentations write str(object) where JSON belongs. This reads literals and constructor calls (as mappings)
without evaluating anything; untrusted text must never reach an evaluator. Bounded in size and depth.
"""

from __future__ import annotations

import re
from typing import Any

from luckrate_otel.surrogates import mend

MAX_CHARS = 1 << 20  # a crew's whole history is some 100 kB; beyond that the text is not worth the time
MAX_DEPTH = 60

_SPACE = re.compile(r"[\s,]*")
_STRING = re.compile(r"[bru]{0,2}('[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\")", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_FIELD = re.compile(r"([A-Za-z_]\w*)=")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WORDS = {"None": None, "True": True, "False": False}


class _Unreadable(ValueError):
    pass


def read(text: str) -> Any:
    """The literal or constructor call that the text starts with. Raises ValueError if there is none."""
    value, _ = _value(text[:MAX_CHARS], 0, MAX_DEPTH)
    return value


def read_fields(text: str) -> dict[str, Any]:
    """`name=value name=value` as a mapping, up to the first place that cannot be read."""
    return _fields(text[:MAX_CHARS], 0, MAX_DEPTH, "")[0]


def find_constructors(text: str, name: str) -> list[dict[str, Any]]:
    """Every `name(...)` in the text, outermost ones only, as mappings of their keyword arguments."""
    found, at = [], 0
    text = text[:MAX_CHARS]
    while (at := text.find(name + "(", at)) >= 0:
        fields, end = _fields(text, at + len(name) + 1, MAX_DEPTH, ")")
        found.append(fields)
        at = max(end, at + 1)
    return found


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "xuU" and len(code) > 1:
        point = int(code[1:], 16)
        return mend(chr(point)) if point < 0x110000 else ""
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _SIMPLE.get(code, code)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    at = _skip(text, at)
    if depth <= 0 or at >= len(text):
        raise _Unreadable(at)
    if found := _STRING.match(text, at):
        body = found[1][1:-1]
        return (_ESCAPE.sub(_unescape, body) if "\\" in body else body), found.end()
    opening = text[at]
    if opening == "{":
        return _mapping(text, at + 1, depth - 1)
    if opening in "[(":
        return _sequence(text, at + 1, depth - 1, "]" if opening == "[" else ")")
    if opening == "<":  # an enum member or object without a literal form: <OutputFormat.RAW: 'raw'>
        end = text.find(">", at)
        if end < 0:
            raise _Unreadable(at)
        return text[at : end + 1], end + 1
    if found := _NUMBER.match(text, at):
        number = found[0]
        if len(number) > 300:
            return number, found.end()
        return (int(number) if number.lstrip("-").isdigit() else float(number)), found.end()
    if found := _NAME.match(text, at):
        word, at = found[0], found.end()
        if at < len(text) and text[at] == "(":
            return _fields(text, at + 1, depth - 1, ")")
        return _WORDS.get(word, word), at
    raise _Unreadable(at)


def _mapping(text: str, at: int, depth: int) -> tuple[dict[Any, Any], int]:
    found: dict[Any, Any] = {}
    while True:
        at = _skip(text, at)
        if at < len(text) and text[at] == "}":
            return found, at + 1
        key, at = _value(text, at, depth)
        at = _skip(text, at)
        if text[at : at + 1] == ":":
            value, at = _value(text, at + 1, depth)
        else:
            value = None  # a set
        found[key if isinstance(key, str) else str(key)] = value


def _sequence(text: str, at: int, depth: int, closing: str) -> tuple[list[Any], int]:
    found: list[Any] = []
    while True:
        at = _skip(text, at)
        if at < len(text) and text[at] == closing:
            return found, at + 1
        value, at = _value(text, at, depth)
        found.append(value)


def _fields(text: str, at: int, depth: int, closing: str) -> tuple[dict[str, Any], int]:
    """Keyword arguments; positional ones are read and dropped. A cut text gives what came before the cut."""
    found: dict[str, Any] = {}
    try:
        while True:
            at = _skip(text, at)
            if at >= len(text) or (closing and text[at] == closing):
                return found, at + 1
            name = _FIELD.match(text, at)
            value, at = _value(text, name.end() if name else at, depth)
            if name:
                found[name[1]] = value
    except ValueError:
        return found, at + 1
