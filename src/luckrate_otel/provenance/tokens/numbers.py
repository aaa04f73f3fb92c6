"""Numbers as values: 1,250.50 = 1250.5 = 1.250,50."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from luckrate_otel.provenance.tokens.leaves import TooMuch

# A number of its own: not the digits inside an identifier, a version or a longer number. "20kg" and "15th" still count.
# Atomic and with a short look-ahead: a megabyte of digits costs one pass. (Possessive quantifiers, the other way to say
# it, match wrongly before Python 3.11.5, which Debian 12 does not have.)
NUMBER = re.compile(r"(?<![\w.,])(?>\d+(?:[.,]\d+)*)(?!\w{0,8}\d)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DOTTED = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d{1,2}")
# A quantity with its unit is that quantity: 30min, 4K, 15th, 20USD.
_UNIT = re.compile(
    r"(?:mins?|h|hrs?|s|secs?|ms|days?|kg|mg|g|lbs?|oz|km|cm|mm|mi|m|ft|in|ml|l|[kmgt]b|px|k|x|th|st|nd|rd|%|usd|eur|gbp|€|\$|£)$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
MAX_HITS = 10_000  # places looked at in one text; a result made of one number repeated is no report
MAX_DIGITS = 40  # longer runs of digits are data, not quantities; also keeps Decimal cheap


def canonical(text: str) -> str | None:
    """One spelling per value: no sign, no grouping, no trailing zeros; None if the text is no number."""
    if text.isdigit() and text.isascii() and len(text) <= MAX_DIGITS:  # most are; saves 2 µs of 3
        return text.lstrip("0") or "0"
    text = text.strip().lstrip("+-$€£¥").strip()
    if not text or len(text) > MAX_DIGITS or not text[0].isdigit():
        return None
    if not text[-1].isdigit():
        text = _UNIT.sub("", text).rstrip()
    if not text.isascii():
        return None
    if _PLAIN.fullmatch(text):
        return _strip(text)
    if _GROUPED.fullmatch(text):
        return _strip(text.replace(",", ""))
    if _DOTTED.fullmatch(text):
        return _strip(text.replace(".", "").replace(",", "."))
    return None


def _strip(text: str) -> str:
    whole, _, part = text.partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def of_value(value: float) -> str | None:
    """The canonical spelling of a JSON number; None for what is no quantity (inf, nan, very long)."""
    text = repr(abs(value))
    if "e" in text or "E" in text:
        if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - nan is the value unequal to itself
            return None
        text = format(abs(Decimal(text)), "f")
    return canonical(text)


@lru_cache(4096)  # asked for several times per value, and values recur from call to call
def spellings(number: str) -> tuple[str, ...]:
    """How a canonical number may be written, as folded phrases (`1250.5` → `1250 5`, `1250 50`, `1 250 5`, …)."""
    whole, _, part = number.partition(".")
    heads = [whole]
    if len(whole) > 3:
        heads.append(f"{int(whole):,}".replace(",", " "))
    tails = [f" {part}", f" {part}0"] if part else ["", " 0", " 00"]
    return tuple(head + tail for head in heads for tail in tails)


def states(text: str, number: str) -> bool:
    """The text states this canonical number, in any spelling, as a number of its own. TooMuch: MAX_HITS."""
    whole, _, part = number.partition(".")
    heads = [whole]
    if len(whole) > 3:
        grouped = f"{int(whole):,}"
        heads += [grouped, grouped.replace(",", ".")]
    return any(_stands(text, head, part) for head in heads)


def _stands(text: str, head: str, part: str) -> bool:
    at = text.find(head)
    for _ in range(MAX_HITS):
        if at < 0:
            return False
        end = at + len(head)
        if (at == 0 or not _joins(text, at - 1)) and _tail(text, end, part):
            return True
        at = text.find(head, end)
    raise TooMuch


def _joins(text: str, before: int) -> bool:
    """The character before belongs to a longer number or word. An escape such as \\n stands for a blank."""
    char = text[before]
    if char in ".,":
        return before > 0 and text[before - 1].isdigit()
    return char == "_" or (char.isalnum() and not (before > 0 and text[before - 1] == "\\" and char in "ntr"))


def _tail(text: str, end: int, part: str) -> bool:
    """What follows is the fraction `part` and trailing zeros, and then no further digit of the number."""
    rest = text[end : end + len(part) + 8]
    if part:
        if rest[:1] not in (".", ",") or not rest.startswith(part, 1):
            return False
        rest = rest[1 + len(part) :].lstrip("0")
    elif rest[:2] in (".0", ",0") and (zeros := rest[1:].lstrip("0")) != rest[1:] and not zeros[:1].isdigit():
        rest = zeros
    if rest[:1].isdigit():
        return False
    return not (rest[:1] in (".", ",") and rest[1:2].isdigit())


def numbers_in(text: str) -> frozenset[str]:
    """The canonical numbers a text states."""
    found = (canonical(raw) for raw in set(NUMBER.findall(text)))
    return frozenset(number for number in found if number is not None)
