"""In which other forms a value may stand in a text, and how much each form proves."""

from __future__ import annotations

import base64
import binascii
import re
from enum import StrEnum

from luckrate_otel.provenance.tokens import copied, dates, numbers
from luckrate_otel.provenance.tokens.atoms import Atom, Kind, has_digit, host_phrase
from luckrate_otel.provenance.tokens.fold import phrase


class Strength(StrEnum):
    """strict: the same value, only written differently; loose: derived from it, or a part of it."""

    STRICT = "strict"
    LOOSE = "loose"


class Form(StrEnum):
    SAME = "same text"
    FOLDED = "case or separators"
    NUMBER = "number"
    DATE = "date"
    URL = "url"
    GROUPED = "grouping"
    PREFIX = "prefix and id"
    PART = "part of an id"
    JOINED = "joined parts"
    ENCODED = "encoded"
    SPELLED = "spelled out"
    COPIED = "copied words"
    STEERED = "answer to a steered call"


STRICT_FORMS = frozenset({Form.SAME, Form.FOLDED, Form.NUMBER, Form.DATE, Form.URL, Form.GROUPED})
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,4000}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){6,2000}")
_SEGMENT = re.compile(r"[/\\\\?&=#]")
_NUMBERED = re.compile(r"\b[a-z]*\d[a-z0-9]*(?: [a-z]*\d[a-z0-9]*)*\b")
_TWO_IDS = re.compile(r"([a-z]+\d+) ([a-z]+\d+)")
_WORDS_AND_ID = re.compile(r"([a-z]+(?: [a-z]+){0,2}) (\d{5,})")
MIN_BLOB = 16  # characters; twelve bytes are the least that would be worth hiding
_BLOB = re.compile(r"(?<![A-Za-z0-9+/_-])(?>[A-Za-z0-9+/_-]{16,4000})={0,2}")
_GROUPS = re.compile(r"\+?\(?\d[\d ()./-]{5,24}\d|[A-Za-z]{2}\d{2}(?: [A-Za-z0-9]{1,4}){2,8}")
_SPLIT = re.compile(r"[a-z]+|\d+")
MIN_ID = 4  # characters of an id that says something without its prefix
MAX_DECODED = 4000


def strength(form: Form) -> Strength:
    return Strength.STRICT if form in STRICT_FORMS else Strength.LOOSE


def strict(atom: Atom) -> tuple[tuple[Form, str], ...]:
    """The (form, phrase) pairs that are the same value. Numbers are compared by value elsewhere."""
    if atom.kind is Kind.DATE:
        day = dates.parse(atom.text)
        named = dates.spellings(day) if day is not None else ()
        return ((Form.FOLDED, atom.phrase), *((Form.DATE, spelling) for spelling in named))
    if atom.kind is Kind.URL:
        return ((Form.URL, atom.phrase),)
    if atom.kind is Kind.ID and " " in atom.phrase:
        return ((Form.FOLDED, atom.phrase), (Form.GROUPED, atom.phrase.replace(" ", "")))
    return ((Form.FOLDED, atom.phrase),)


def loose(atom: Atom) -> tuple[tuple[Form, str], ...]:
    """The (form, phrase) pairs that the value may have been made from."""
    found: list[tuple[Form, str]] = []
    if atom.kind is Kind.NUMBER and atom.number == atom.phrase and len(atom.phrase) >= MIN_ID:
        found.append((Form.PART, atom.phrase))
    if atom.kind is Kind.ID:
        head, _, rest = atom.phrase.partition(" ")
        if rest and " " not in rest and head.isalpha() and has_digit(rest) and len(rest) >= MIN_ID:
            found.append((Form.PREFIX, rest))
        if not rest:
            parts = _SPLIT.findall(head)
            if len(parts) == 2 and parts[0].isalpha() and len(parts[1]) >= MIN_ID:
                found.append((Form.PREFIX, parts[1]))
                found.append((Form.JOINED, f"{parts[0]} {parts[1]}"))
    if atom.kind is Kind.EMAIL:
        local, _, domain = atom.text.partition("@")
        found.append((Form.SPELLED, f"{phrase(local)} at {phrase(domain)}"))
        found.append((Form.SPELLED, f"{phrase(local)} at {phrase(domain).replace(' ', ' dot ')}"))
    if atom.kind in (Kind.ID, Kind.PATH) and (plain := undone(atom.text)):
        found.append((Form.ENCODED, plain))
    return tuple(found)


def undone(text: str) -> str:
    """The folded words of a base64 or hex text, "" if it is none or holds no readable text."""
    if len(text) > MAX_DECODED:
        return ""
    raw = b""
    try:
        if _HEX.fullmatch(text):
            raw = bytes.fromhex(text)
        elif _BASE64.fullmatch(text) and not text.isdigit():
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & {"-", "_"} else None)
        plain = raw.decode()
    except (ValueError, binascii.Error):
        return ""
    return phrase(plain) if len(plain) >= MIN_ID and plain.isprintable() else ""


def blobs(text: str) -> str:
    """The folded words of every base64 or hex passage of a text that decodes to readable text, each passage once."""
    long = [piece for piece in text.split() if len(piece) >= MIN_BLOB]
    found = (undone(match) for match in dict.fromkeys(_BLOB.findall(" ".join(long))))
    return " | ".join(plain for plain in found if plain)


def groups(text: str) -> frozenset[str]:
    """Numbers and account numbers written in groups, without their blanks: `DE89 3704 0044` → `de8937040044`."""
    found: set[str] = set()
    for match in _GROUPS.findall(text):
        joined = ""
        for part in phrase(match).split(" "):  # short words behind a number look like groups of it
            joined += part
            found.add(joined)
    return frozenset(found)


def wanted(atom: Atom) -> set[str]:
    """The words that must be looked out for in texts to trace this atom."""
    if atom.kind is Kind.PROSE:
        return {copied.anchor(run) for run in copied.runs(atom.phrase)}
    phrases = [atom.phrase]
    if atom.number is not None:
        phrases += numbers.spellings(atom.number)
    if atom.kind is not Kind.NUMBER:
        phrases += [phrase for _, phrase in (*strict(atom), *loose(atom))]
    if atom.kind in (Kind.URL, Kind.PATH):
        phrases += parts(atom)
    phrases += joints(atom)
    return {word for phrase in phrases for word in phrase.split(" ")}


def joints(atom: Atom) -> tuple[str, ...]:
    """The parts that a value may have been put together from, () if it is not of that make."""
    if atom.kind is Kind.EMAIL:
        local, domain = (phrase(part) for part in atom.text.split("@", 1))
        if " " not in local:
            return ()  # one word is no name: billing@ any known domain is a guess
        names = local.split(" ")
        # First and last name may be fields of their own; an initial stands in every text.
        return (*names, domain) if min(map(len, names)) > 1 else (local, domain)
    match = _WORDS_AND_ID.fullmatch(atom.phrase) or _TWO_IDS.fullmatch(atom.phrase)
    return match.groups() if match is not None and all(len(part) >= MIN_ID for part in match.groups()) else ()


def parts(atom: Atom) -> tuple[str, ...]:
    """The parts of a path or URL that must be known: the host, and every run of words with digits in it.

    The other words of a path are names, which an agent may choose (it creates files). A date in a name is no id.
    """
    found: list[str] = []
    rest = atom.text
    if atom.kind is Kind.URL:
        found.append(host_phrase(atom.text))
        _, sep, after = rest.partition("://")
        rest = re.split(r"[/?#]", after if sep else rest, maxsplit=1)[-1]
    for segment in _SEGMENT.split(rest):
        for run in _NUMBERED.findall(phrase(segment)):
            if (sum(map(str.isdigit, run)) > 1 or len(run) > 2) and dates.parse(run.replace(" ", "-")) is None:
                found.append(run)
    return tuple(found)
