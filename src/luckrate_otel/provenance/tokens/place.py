"""Where in a result a value stands: the fields of JSON, Python reprs, YAML lists, HTML pages and plain text.

Tool results are seldom strict JSON: frameworks print Python values, YAML or a page. The readers below are tolerant,
linear and never fail; what they do not understand is free text, which is the careful answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from json import loads
from typing import Any

from luckrate_otel.provenance.tokens.fold import decoded, phrase, within

MAX_INNER = 2  # texts within texts: an issue list printed into a field, a page quoted in it
MAX_FIELDS = 50_000  # of one result; what follows is one piece of free text
MAX_WRAPS = 3  # tool protocol, framework, tool
# `Here are the messages:` before a list or a mapping.
_LEAD = re.compile(r"\A\w[^\n:]{0,60} [^\n:]{1,60}:[ \t]*\n\s*(?=[-\[{<]|\w[\w.]{0,60}\(|[\w .@/-]{1,60}:\s)")
_BLANK = re.compile(r"\s")
_MARKER = re.compile(r"[A-Za-z_]{0,20}")  # `text`, `True`, `None`: the kind of a content, never a value
_JSON_START = re.compile(r'\s*(?:\{\s*["}]|\[)')
# `Issue(owner='a', …)` is a repr, `TODO(call a)` is a sentence.
_LITERAL_START = re.compile(r"\W{0,3}(?:[\[{(]|[A-Za-z_][\w.]{0,60}\((?=\s*(?:\w+\s*=|[\[{(\"'])))")
_YAML_START = re.compile(r"\W{0,3}\s*(?:- )*[\w .@/-]{1,60}:(?:\s|$)|\W{0,3}\s*- ")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,15})((?:\s[^<>]{0,4000})?)/?>")
_INLINE = frozenset(
    {"a", "b", "i", "u", "em", "strong", "span", "small", "code", "label", "font", "sup", "sub", "mark", "abbr"}
)
# The look-behind tries each name once, from its start: a megabyte of name characters costs one pass.
_ATTRIBUTE = re.compile(r"(?<![\w:-])((?>[\w:-]{1,40}))(?>\s*)=(?>\s*)(?:\"([^\"]*)\"|'([^']*)')")


@dataclass(slots=True)
class Field:
    """One value of a result. free: written text rather than a value with a place of its own. record: its group."""

    path: str
    text: str
    record: int
    free: bool = False
    _phrase: str | None = None

    @property
    def phrase(self) -> str:
        """The folded words; folded when first asked for, as most fields never are."""
        if self._phrase is None:
            self._phrase = phrase(self.text)
        return self._phrase


@dataclass(slots=True)
class Layout:
    """The fields of one result.

    parents: record → the record around it; titles: record → its own key. counts: lengths of its lists. size: characters
    of all fields.
    """

    fields: list[Field] = field(default_factory=list)
    parents: list[int] = field(default_factory=lambda: [0])
    titles: list[str] = field(default_factory=lambda: [""])
    counts: set[int] = field(default_factory=set)
    size: int = 0

    def open(self, parent: int, title: str = "") -> int:
        self.parents.append(parent)
        self.titles.append(title)
        return len(self.parents) - 1

    def add(self, path: str, text: str, record: int, *, free: bool = False) -> None:
        if text and not text.isspace():
            self.fields.append(Field(path, text, record, free))
            self.size += len(text)

    def holding(self, wanted: str) -> list[Field]:
        """The fields that hold a phrase as a run of whole words."""
        key = max(wanted.split(" "), key=len)
        return [f for f in self.fields if (key in f.text.lower() or not f.text.isascii()) and within(wanted, f.phrase)]

    def record(self, number: int) -> str:
        """The words of a record and of the one around it, as one phrase."""
        wanted = {number, self.parents[number]} - {0} or {0}
        own = [phrase(self.titles[n]) for n in sorted(wanted)]
        return " | ".join([*own, *(f.phrase for f in self.fields if f.record in wanted)])


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
            yield from _told(item, f"{path}.{name if _NAME.fullmatch(name) else '*'}")
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
        _yaml(found, text, path, record)
    elif _TAG.search(text):
        _page(found, text, path, record)
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
            _value(found, item, f"{path}.{name if _NAME.fullmatch(name) else '*'}", inner, key=name, depth=depth)
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
_NAME = re.compile(r"[A-Za-z_]\w{0,59}")
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
        return f"{self.path}.{self.key}" if _NAME.fullmatch(self.key) else f"{self.path}.*"


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
    if "\n\n" in text or ("<" in text and _TAG.search(text)):
        return True
    return ("(" in text or "[" in text or "{" in text) and _LITERAL_START.match(text) is not None


# ---- YAML as printed by frameworks: lists of mappings with scalars -------------------------------

_LINE = re.compile(r"(\s*)((?:- )*)(?:([\w .@/-]{1,60}):(?:\s+(.*))?$|(.*))", re.DOTALL)


def _yaml(found: Layout, text: str, path: str, record: int) -> None:
    current, index, list_index, base, key, key_indent = record, -1, 0, None, "", 0
    pending: list[str] = []
    quote = ""

    def flush() -> None:
        if pending:
            value = decoded("\n".join(pending)).strip()
            if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
                value = value[1:-1]
            shown = f".{key if _NAME.fullmatch(key) else '*'}" if key else ""
            found.add(f"{path}{f'[{index}]' if index >= 0 else ''}{shown}", value, current)
            pending.clear()

    for line in text.lstrip("<`~^ \n").split("\n"):
        if quote:
            pending.append(line.strip())
            quote = "" if _ends(line, quote) else quote
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        indent, dashes, name, value, rest = len(match[1]), match[2], match[3], match[4], match[5]
        if dashes and (base is None or indent <= base):
            flush()
            base, index, current, key = indent, index + 1, found.open(record), ""
        if dashes and name is None and key:  # an item of a list inside the record
            flush()
            list_index += 1
            pending.append(rest or "")
        elif name is not None and not (pending and key and indent > key_indent and not dashes):
            flush()
            key, key_indent, list_index = name, indent + len(dashes), 0
            if value:
                pending.append(value)
        elif (rest or name) and line.strip():
            pending.append(line.strip() if not dashes else (rest or "").strip())
        head = (pending[0] if len(pending) == 1 else "").lstrip()
        if head[:1] in ("'", '"') and (len(head) < 2 or not _ends(head[1:], head[0])):
            quote = head[0]
    flush()
    found.counts.add(index + 1)


def _ends(line: str, quote: str) -> bool:
    """The line closes a quoted scalar: an odd run of quotes at its end ('' is an escaped quote in YAML)."""
    line = line.rstrip()
    run = len(line) - len(line.rstrip(quote))
    return run % 2 == 1 and not (quote == '"' and line[: len(line) - run].endswith("\\"))


# ---- pages --------------------------------------------------------------------------------------


def _page(found: Layout, text: str, path: str, record: int) -> None:
    """Text between tags is free text, one record per block; attribute values are fields of their own."""
    at, current, block = 0, found.open(record), []
    for match in _TAG.finditer(text):
        block.append(text[at : match.start()])
        at = match.end()
        if match[2].lower() not in _INLINE:
            found.add(path, decoded(" ".join(block)), current, free=True)
            block, current = [], found.open(record)
        for name, one, two in _ATTRIBUTE.findall(match[3]):
            found.add(f"{path}<{match[2].lower()} {name}>", one or two, current)
        if len(found.fields) > MAX_FIELDS:
            break
    block.append(text[at:])
    found.add(path, decoded(" ".join(block)), current, free=True)
