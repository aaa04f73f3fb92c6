"""Searching a text for a pattern of a spec in bearable time, whatever the text.

The texts come from models and web pages: up to a request's size, and chosen by others. `\\s+$` takes the square of a
long text of blanks, `a.*b.*c` the cube of one of many a and b: hours for a megabyte. A pattern that can do so is left
to `re` on short texts only, and to an automaton on all others.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from luckrate_otel.rules.automaton import Automaton, Irregular, TooLong
from luckrate_otel.rules.backtracking import degree

# Ways that may be tried: about a millisecond, 500 characters where it is the square.
_WAYS: Final = 250_000

# The same for patterns that no automaton can follow: a second or two, 10,000 characters where it is the square.
_WAYS_ALONE: Final = 100_000_000


def found(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a pattern, one that does not run away, is found anywhere in a text. Raises TooLong."""
    power, automaton = _prepared(pattern)
    if power == 1 or len(text) ** power <= (_WAYS if automaton else _WAYS_ALONE):
        return pattern.search(text) is not None
    if automaton is None:
        raise TooLong
    return automaton.found(text)


@lru_cache(maxsize=256)
def _prepared(pattern: re.Pattern[str]) -> tuple[int, Automaton | None]:
    power = degree(pattern)
    try:
        return power, None if power == 1 else Automaton(pattern)
    except Irregular:
        return power, None
