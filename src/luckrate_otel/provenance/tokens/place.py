"""Where in a result a value stands: the fields of JSON, Python reprs, YAML lists, HTML pages and plain text.

Tool results are seldom strict JSON: frameworks print Python values, YAML or a page. The readers here and beside it are
tolerant, linear and never fail; what they do not understand is free text, which is the careful answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from json import loads
from typing import Any

from luckrate_otel.provenance.tokens.fold import decoded, phrase
from luckrate_otel.provenance.tokens.layout import MAX_FIELDS, NAME, Layout
from luckrate_otel.provenance.tokens.page import TAG, read_page
from luckrate_otel.provenance.tokens.yaml_list import read_yaml

MAX_INNER = 2  # texts within texts: an issue list printed into a field, a page quoted in it
MAX_WRAPS = 3  # tool protocol, framework, tool
# `Here are the messages:` before a list or a mapping.
_LEAD = re.compile(r"\A\w[^\n:]{0,60} [^\n:]{1,60}:[ \t]*\n\s*(?=[-\[{<]|\w[\w.]{0,60}\(|[\w .@/-]{1,60}:\s)")
_BLANK = re.compile(r"\s")
_MARKER = re.compile(r"[A-Za-z_]{0,20}")  # `text`, `True`, `None`: the kind of a content, never a value
_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[)')
# `Issue(owner='a', …)` is a repr, `TODO(call a)` is a sentence.
_LITERAL_START = re.compile(r"\W{0,3}(?:[\[{(]|[A-Za-z_][\w.]{0,60}\((?=\s*(?:\w+\s*=|[\[{(\"'])))")
_YAML_START = re.compile(r"\W{0,3}\s*(?:- )*[\w .@/-]{1,60}:(?:\s|$)|\W{0,3}\s*- ")


def layout(text: str) -> Layout:
    """Read a result's fields; what a platform puts around a text is taken off, so that it reads the same."""
    found = Layout()
    path = "$"
    for _ in range(MAX_WRAPS):
        text = _LEAD.sub("", text, count=1)
        inner = _wrapped(text)
        if inner is None:
            break
        path, text = path + inner[0], inner[1]
    _read(found, text, path, 0, 0)
    return found


def _wrapped(text: str) -> tuple[str, str] | None:
    """Path and text of the one text in a result such as `[{"type": "text", "text": …}]`, whose rest says nothing."""
    if _LITERAL_START.match(text) is None:
        return None
    try:
        told = list(islice(_told(loads(text), ""), 2))
    except (ValueError, RecursionError):
        read = Layout()
        _literal(read, text, "", 0, MAX_INNER)
        told = [(place.path, place.text) for place in read.fields if not _MARKER.fullmatch(place.text)]
    return told[0] if len(told) == 1 and told[0][1] != text and _BLANK.search(told[0][1]) else None


def _told(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Path and text of every value of JSON data that is more than a marker."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _told(item, f"{path}.{name if NAME.fullmatch(name) else '*'}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _told(item, f"{path}[{index}]")
    elif not _MARKER.fullmatch(str(value)):
        yield path, str(value)


def _read(found: Layout, text: str, path: str, record: int, depth: int) -> None:
    if _JSON_START.match(text) and _json(found, text, path, record, depth):
        return
    if _LITERAL_START.match(text) and _literal(found, text, path, record, depth):
        return
    if depth == 0 and _YAML_START.match(text):
        read_yaml(found, text, path, record)
    elif TAG.search(text):
        read_page(found, text, path, record)
    else:
        _plain(found, text, path, record)


def _plain(found: Layout, text: str, path: str, record: int) -> None:
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    if len(paragraphs) == 1:
        found.add(path, decoded(text), record, free=" " in phrase(text))
        return
    for part in paragraphs[:MAX_FIELDS]:
        found.add(path, part, found.open(record), free=True)


# ---- JSON ---------------------------------------------------------------------------------------


def _json(found: Layout, text: str, path: str, record: int, depth: int) -> bool:
    """Read strict JSON, the quick way; False (and nothing added) if it is none or nested beyond reason."""
    before = len(found.fields)
    try:
        _value(found, loads(text), path, record, key="", depth=depth)
    except (ValueError, RecursionError):
        del found.fields[before:]
        return False
    return True


def _value(found: Layout, value: Any, path: str, record: int, *, key: str, depth: int) -> None:
    if isinstance(value, str):
        _text(found, value, path, record, key=key, depth=depth)
    elif isinstance(value, dict):
        inner = found.open(record, key)
        for name, item in value.items():
            _value(found, item, f"{path}.{name if NAME.fullmatch(name) else '*'}", inner, key=name, depth=depth)
    elif isinstance(value, list):
        found.counts.add(len(value))
        for index, item in enumerate(value):
            _value(found, item, f"{path}[{index}]", record, key=key, depth=depth)
    elif value is not None:
        found.add(path, str(value), record)


def _text(found: Layout, text: str, path: str, record: int, *, key: str, depth: int) -> None:
    """A text value; one that is itself a page, a repr or several paragraphs is read in turn."""
    if depth < MAX_INNER and _is_nested(text):
        _read(found, text, path, found.open(record, key), depth + 1)
    else:
        found.add(path, text, record)


# ---- Python reprs ---------------------------------------------------------------------

# A quote that never closes makes the rest free text; _LONE_QUOTES bounds how often that is tried.
_TOKEN = re.compile(
    r"\"[^\"\\]*(?:\\.[^\"\\]*)*\"|'[^'\\]*(?:\\.[^'\\]*)*'|[{}\[\]()]|[,:=]|[^\s{}\[\]()\"',:=]+|[\"']",
    re.DOTALL,
)
_LONE_QUOTES = 8
MAX_NESTED = 100  # brackets inside brackets; JSON parsers give up at about a thousand
_OPEN = {"{": "}", "[": "]", "(": ")"}


@dataclass(slots=True)
class _Frame:
    """One open bracket. value: pieces of the value being read; joined when it ends, as it may be a megabyte long."""

    path: str
    record: int
    keyed: bool
    index: int = 0
    key: str = ""
    value: list[str] = field(default_factory=list)

    def taken(self) -> str:
        text = "".join(self.value)
        self.value.clear()
        return text

    def place(self) -> str:
        """A key that is no plain name may be data (a product, a person): it is masked."""
        if not self.key:
            return self.path if self.keyed else f"{self.path}[{self.index}]"
        return f"{self.path}.{self.key}" if NAME.fullmatch(self.key) else f"{self.path}.*"


def _literal(found: Layout, text: str, path: str, record: int, depth: int) -> bool:
    """Read one literal; False (and nothing added) if the text does not look like one after all."""
    top = _Frame(path, record, keyed=True)
    frames = [top]
    lone, before = 0, len(found.fields)
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if piece == ",":
            if top.value:
                _close(found, top, depth)
            top.index, top.key = top.index + 1, ""
        elif piece in ":=":
            if top.keyed and not top.key and top.value:
                top.key = top.taken().strip("\"'") or "*"
            else:
                top.value.append(piece)
        elif piece in _OPEN:
            inner = found.open(top.record, top.key) if piece != "[" else top.record
            top.value.clear()
            top = _Frame(top.place(), inner, keyed=piece != "[")
            frames.append(top)
            if len(frames) > MAX_NESTED or len(found.fields) > MAX_FIELDS:
                break
        elif piece in ")]}":
            _close(found, top, depth)
            if len(frames) > 1:
                if not top.keyed:
                    found.counts.add(top.index + 1)
                frames.pop()
                top = frames[-1]
        elif piece in "\"'":
            lone += 1
            if lone > _LONE_QUOTES:
                break
        else:
            top.value.append(f" {piece}" if top.value else piece)
    else:
        for frame in frames:
            _close(found, frame, depth)
        return len(found.fields) > before
    del found.fields[before:]
    return False


def _close(found: Layout, frame: _Frame, depth: int) -> None:
    if not frame.value:
        return
    text = frame.taken()
    if text[0] in "\"'" and text[-1] == text[0] and len(text) > 1:
        text = text[1:-1]
        if "\\" in text or "&" in text or "%" in text:
            text = decoded(text)
        _text(found, text, frame.place(), frame.record, key=frame.key, depth=depth)
    else:
        found.add(frame.place(), text, frame.record)


def _is_nested(text: str) -> bool:
    """The text of a field is itself a page, a repr or several paragraphs. The cheap tests come first."""
    if "\n\n" in text or ("<" in text and TAG.search(text)):
        return True
    return ("(" in text or "[" in text or "{" in text) and _LITERAL_START.match(text) is not None
