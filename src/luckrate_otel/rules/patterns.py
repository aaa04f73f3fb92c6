"""Regular expressions in a spec, in RE2's syntax: searched in time that grows as the text does.

The texts come from models and web pages. Python's own `re` tries one way after the other, so that `\\s+$` takes an hour
for a megabyte of blanks; here it takes a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]  # ships no types

from luckrate_otel.rules.key import Place, shown
from luckrate_otel.telemetry import Value


def _quietly() -> Any:
    options = re2.Options()
    options.log_errors = False  # they are told as problems of the spec
    return options


_OPTIONS = _quietly()


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression, made ready. Two are equal when they are written alike."""

    written: str
    _compiled: Any = field(compare=False, repr=False)

    def found_in(self, text: str) -> bool:
        """Whether it is found anywhere in a text."""
        return self._compiled.search(text.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=1024)
def pattern(written: str) -> Pattern:
    """ValueError, with its cause, if it is none of RE2's."""
    try:
        return Pattern(written, re2.compile(written.encode("utf-8", "replace"), _OPTIONS))
    except re2.error as error:
        cause = error.args[0]
        raise ValueError(cause.decode("utf-8", "replace") if isinstance(cause, bytes) else str(cause)) from None


def parse_pattern(value: Value, place: Place) -> Pattern | None:
    """A regular expression; None, with the problem noted, where it cannot be used."""
    if not isinstance(value, str):
        place.problem(f"expected a regular expression, got {shown(value)}")
        return None
    if not value:
        place.problem("expected a regular expression that is not empty")
        return None
    try:
        return pattern(value)
    except ValueError as error:
        place.problem(f"not a regular expression of RE2: {error}")
        return None
