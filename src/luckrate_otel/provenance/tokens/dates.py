"""Dates in their common spellings."""

from __future__ import annotations

import re
from datetime import date

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)")
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\.?)?|\d{1,2}\s?[ap]\.?m\.?", re.IGNORECASE)
_RANGE = re.compile(r"\s?(?:-|\u2013|to|until)\s?", re.IGNORECASE)


def parse(text: str) -> date | None:
    """The date a text starts with (a time may follow), None if it does not."""
    if match := _ISO.match(text):
        year, month, day = match.groups()
    elif match := _DAY_FIRST.match(text):
        day, month, year = match.groups()
    else:
        return None
    rest = text[match.end() :].lstrip("T ").rstrip("Z ")
    if rest and not _TIME.match(rest):
        return None
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def is_time(text: str) -> bool:
    """A time of day, or a range of two."""
    if len(text) > 40 or not text[:1].isdigit():
        return False
    parts = _RANGE.split(text)
    return len(parts) <= 2 and all(_TIME.fullmatch(part) for part in parts)


def spellings(day: date) -> tuple[str, ...]:
    """How a date may be written, as folded phrases; those with a year first."""
    month, d, m, y = _MONTHS[day.month - 1], str(day.day), str(day.month), str(day.year)
    dd, mm, short = d.zfill(2), m.zfill(2), month[:3]
    nth = d + ("th" if day.day in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th"))
    full = [
        f"{y} {mm} {dd}",
        f"{y} {m} {d}",
        f"{dd} {mm} {y}",
        f"{mm} {dd} {y}",
        f"{d} {m} {y}",
        f"{m} {d} {y}",
        y + mm + dd,
    ]
    named = [f"{name} {n}" for name in (month, short) for n in (d, dd, nth)]
    named += [f"{n} {name}" for name in (month, short) for n in (d, dd, nth)] + [f"{nth} of {month}", f"{d} of {month}"]
    return tuple(dict.fromkeys([*full, *(f"{n} {y}" for n in named), *named]))
