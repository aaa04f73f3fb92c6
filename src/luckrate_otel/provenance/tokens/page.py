"""HTML pages, and text with tags in it."""

from __future__ import annotations

import re

from luckrate_otel.provenance.tokens.fold import decoded
from luckrate_otel.provenance.tokens.layout import MAX_FIELDS, Layout

TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,15})((?:\s[^<>]{0,4000})?)/?>")
_INLINE = frozenset(
    {"a", "b", "i", "u", "em", "strong", "span", "small", "code", "label", "font", "sup", "sub", "mark", "abbr"}
)
# The look-behind tries each name once, from its start: a megabyte of name characters costs one pass.
_ATTRIBUTE = re.compile(r"(?<![\w:-])((?>[\w:-]{1,40}))(?>\s*)=(?>\s*)(?:\"([^\"]*)\"|'([^']*)')")


def read_page(found: Layout, text: str, path: str, record: int) -> None:
    """Text between tags is free text, one record per block; attribute values are fields of their own."""
    at, current, block = 0, found.open(record), []
    for match in TAG.finditer(text):
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
