"""A word that should be one of several: which of them was meant, or which there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches

# Keys of a spec, the longest list there is, are some 40; a line of more tells nobody anything.
MAX_LISTED = 60

# From 0 to 1. By the library's 0.6 `egress` is meant to be `secrets`, and a wrong hint is worse than the whole list.
ALIKE = 0.65


def suggestion(word: object, options: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the option most like the word, else nothing."""
    close = get_close_matches(str(word), list(options), n=1, cutoff=ALIKE)
    return f"; did you mean {str(close[0])!r}?" if close else ""


def listed(options: Iterable[str]) -> str:
    """`a, b, c`, and how many more there are."""
    names = list(options)
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def unknown_keys(names: Iterable[str], known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each name that is no known key, with what to say of it: the key that was meant or, once, all there are."""
    told = False
    for name in names:
        if name not in known:
            hint = suggestion(name, known)
            yield name, f"unknown key{hint or ('' if told else f'; known here: {listed(known)}')}"
            told = told or not hint
