"""Every error this package raises on purpose.

Start-up problems carry all their findings at once, each with the place it was found at. Wire problems say whether
the sender may try again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class LuckrateError(Exception):
    """Base of all errors raised on purpose; its text is fit to show to a user."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a spec or configuration.

    path: where in the document, e.g. `before[1][0]`. line: 1-based, None if not known.
    """

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        where = f"line {self.line}: " if self.line is not None else ""
        # One line, also where a library's words, or a key of the document, have several.
        return " ".join(filter(None, map(str.strip, f"{where}{place}{self.message}".splitlines())))


class _Problems(LuckrateError):
    def __init__(self, problems: Sequence[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        prefix = f"{source}: " if source else ""
        super().__init__("\n".join(f"{prefix}{p}" for p in self.problems))


class SpecError(_Problems, ValueError):
    """A spec that cannot be used. ValueError, as luckrate 0.3 raises for a bad spec."""


class ConfigError(_Problems):
    """A configuration that cannot be used."""


class InputError(LuckrateError):
    """A file that holds nothing usable: unreadable, of an unknown form, or empty."""


class Rejected(LuckrateError):
    """A request that will never be accepted: INVALID_ARGUMENT, HTTP 400."""


class TooLarge(Rejected):
    """A request over the size limit: RESOURCE_EXHAUSTED without RetryInfo, HTTP 413."""


class Busy(LuckrateError):
    """A request that cannot be taken now: UNAVAILABLE with RetryInfo, HTTP 503 with Retry-After.

    retry_after: seconds.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
