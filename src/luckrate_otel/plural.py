"""A count and its noun, agreeing: `1 run`, `2 runs`."""

from __future__ import annotations


def plural(count: int, noun: str, nouns: str = "") -> str:
    """nouns: for every count but 1, where that is not the noun with an s behind it."""
    return f"{count} {noun if count == 1 else nouns or f'{noun}s'}"
