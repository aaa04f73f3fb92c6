"""YAML as frameworks print it: lists of mappings with scalars."""

from __future__ import annotations

import re

from luckrate_otel.provenance.tokens.fold import decoded
from luckrate_otel.provenance.tokens.layout import NAME, Layout

_LINE = re.compile(r"(\s*)((?:- )*)(?:([\w .@/-]{1,60}):(?:\s+(.*))?$|(.*))", re.DOTALL)


def read_yaml(found: Layout, text: str, path: str, record: int) -> None:
    current, index, base, key, key_indent = record, -1, None, "", 0
    pending: list[str] = []
    quote = ""

    def flush() -> None:
        if pending:
            value = decoded("\n".join(pending)).strip()
            if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
                value = value[1:-1]
            shown = f".{key if NAME.fullmatch(key) else '*'}" if key else ""
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
            pending.append(rest or "")
        elif name is not None and not (pending and key and indent > key_indent and not dashes):
            flush()
            key, key_indent = name, indent + len(dashes)
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
