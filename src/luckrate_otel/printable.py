"""Text from strangers, for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """With control characters and line breaks written out, so that no name can move the cursor or forge a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
