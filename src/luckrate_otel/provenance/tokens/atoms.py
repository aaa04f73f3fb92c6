"""What an argument leaf is made of: identifiers, addresses, numbers, dates, plain words or prose."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from luckrate_otel.provenance.tokens import dates, numbers
from luckrate_otel.provenance.tokens.fold import phrase
from luckrate_otel.record import record

MAX_INSIDE = 200  # identifiers looked at inside one prose leaf; more is a document, whose copied runs are still seen


class Kind(StrEnum):
    EMAIL = "email"
    URL = "url"
    PATH = "path"
    ID = "id"
    NUMBER = "number"
    DATE = "date"
    WORDS = "words"
    PROSE = "prose"
    NONE = "none"  # booleans, null, empty text, times of day: carry no provenance


@record(frozen=True, slots=True)
class Atom:
    """One traceable piece of a leaf.

    phrase: its folded words. number: canonical value, for numbers and numeric ids. inside: it stands within prose.
    """

    kind: Kind
    text: str
    phrase: str
    number: str | None = None
    inside: bool = False


_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>\"'`]{1,2000}", re.IGNORECASE)
# Without a scheme only the shorter and the commonest long endings count: `jane.miller/tool` is a repository.
_HOST_PATH = re.compile(
    r"(?:[a-z0-9_-]{1,63}\.){1,6}(?:[a-z]{2,4}|example|internal|local|cloud|online|store)(?::\d+)?/[^\s<>\"']{0,2000}",
    re.IGNORECASE,
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\n\t]{1,1000}")
_IBAN = re.compile(r"[A-Za-z]{2}\d{2}(?: [A-Za-z0-9]{1,4}){2,8}")
_PHONE = re.compile(r"\+?\(?\d{1,5}\)?(?:[ ./-]?\(?\d{2,5}\)?){1,6}")
# Letters and digits together, or a longer number: what a person would not make up while writing prose.
_INSIDE = re.compile(
    r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"
    r"|(?:[a-zA-Z][a-zA-Z0-9+.-]{1,15}://|www\.)[^\s<>\"'`]{1,2000}"
    r"|[#\w](?:[\w./-]{0,80}\w)?"
)
_SEPARATOR = re.compile(r"\s*[,;]\s*")
MAX_LIST = 10_000  # characters of a list of addresses; mail servers take some hundred recipients
# Blanks, and what encloses values (JSON or markup as text): more than one value, to be looked into.
_SEVERAL = re.compile(r"[\s{}\[\]<>\"]|[\w.]@[\w.-]+[,;|].*@")
_TRAILING = ".,;:!?)]}'\""
_WORDS_LIMIT = 5
_PASSAGE_LIMIT = 16  # words of a passage that is also looked for as a whole: a postal address, a command line
NOTHING = Atom(Kind.NONE, "", "")
_VOCABULARY = frozenset({"", "true", "false", "none", "null", "yes", "no", "nan", "n/a"})


def atoms(value: Any, *, inside: bool = True) -> tuple[Atom, ...]:
    """The pieces of one leaf; prose comes first, then the passage as a whole if short, then the identifiers inside.

    inside: look into prose at all.
    """
    if type(value) is str:
        return _of_text(value.strip(), inside=inside)
    if value is None or isinstance(value, bool):
        return (NOTHING,)
    if isinstance(value, (int, float)):
        number = numbers.of_value(value)
        return (Atom(Kind.NUMBER, str(value), phrase(str(value)), number) if number else NOTHING,)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return _of_text(str(value).strip(), inside=inside)


def _of_text(text: str, *, inside: bool) -> tuple[Atom, ...]:
    if text.isdigit() and (number := numbers.canonical(text)) is not None:  # the commonest ids are nothing else
        return (_of_number(text, text, number),)
    if text.casefold() in _VOCABULARY or dates.is_time(text):
        return (NOTHING,)
    folded = phrase(text)
    if not folded:
        return (NOTHING,)
    if dates.parse(text) is not None:
        return (Atom(Kind.DATE, text, folded),)
    if addresses := _addresses(text):
        return addresses
    if len(text) <= 2100 and (atom := _whole(text, folded)) is not None:
        return (atom,)
    if not has_digit(folded) and folded.count(" ") < _WORDS_LIMIT and "@" not in text and "//" not in text:
        return (Atom(Kind.WORDS, text, folded),)
    if not inside:
        return (Atom(Kind.PROSE, text, folded),)
    short = (Atom(Kind.WORDS, text, folded),) if folded.count(" ") < _PASSAGE_LIMIT else ()
    return (Atom(Kind.PROSE, text, folded), *short, *_inside(text))


def _addresses(text: str) -> tuple[Atom, ...]:
    """The addresses of a list written as one text, () if it is none: `a@shop.example;b@shop.example`."""
    pieces = _SEPARATOR.split(text) if "@" in text and len(text) <= MAX_LIST else []
    listed = len(pieces) > 1 and all(_EMAIL.fullmatch(piece) for piece in pieces)
    return tuple(Atom(Kind.EMAIL, piece, phrase(piece)) for piece in pieces) if listed else ()


def _whole(text: str, folded: str) -> Atom | None:
    """The leaf as one identifier, address or number; None if it is words or prose."""
    if text[:7].lower() == "mailto:":
        text, folded = text[7:], folded.removeprefix("mailto ")
    if _EMAIL.fullmatch(text):
        return Atom(Kind.EMAIL, text, folded)
    if _URL.fullmatch(text) or _HOST_PATH.fullmatch(text):
        return Atom(Kind.URL, text, url_phrase(text))
    number = numbers.canonical(text)
    if number is not None:
        return _of_number(text, folded, number)
    if _IBAN.fullmatch(text) or (len(text) <= 30 and _PHONE.fullmatch(text)):
        return Atom(Kind.ID, text, folded)
    if _PATH.fullmatch(text) and text.count(" ") < _WORDS_LIMIT:
        return Atom(Kind.PATH, text, folded)
    if not _SEVERAL.search(text) and (has_digit(folded) or " " in folded):
        return Atom(Kind.PATH if "/" in text or "\\" in text else Kind.ID, text, folded)
    return None


def _of_number(text: str, folded: str, number: str) -> Atom:
    kind = Kind.ID if text.isdigit() and (len(text) > 9 or (text[0] == "0" and len(text) > 1)) else Kind.NUMBER
    return Atom(kind, text, folded, number)


def _inside(text: str) -> tuple[Atom, ...]:
    found: dict[str, Atom] = {}
    for match in _INSIDE.finditer(text):
        raw = match[0].rstrip(_TRAILING)
        if "@" not in raw and "://" not in raw and not raw.startswith("www.") and not _distinctive(raw):
            continue
        atom = _whole(raw, phrase(raw)) if dates.parse(raw) is None else None
        if atom is not None and atom.phrase not in found:
            found[atom.phrase] = Atom(atom.kind, atom.text, atom.phrase, atom.number, inside=True)
            if len(found) >= MAX_INSIDE:
                break
    return tuple(found.values())


def _distinctive(raw: str) -> bool:
    """Long enough and with digits, so that finding it elsewhere (or nowhere) says something."""
    return len(raw) >= 4 and sum(map(str.isdigit, raw)) >= 2


def has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def url_phrase(text: str) -> str:
    """A URL's folded words without scheme and `www.`, percent escapes undone."""
    text = unquote(text) if "%" in text else text
    _, sep, rest = text.partition("://")
    folded = phrase(rest if sep else text)
    return folded.removeprefix("www ")


def host_phrase(text: str) -> str:
    """The folded host of a URL, without scheme, user, port and `www.`."""
    _, sep, rest = text.partition("://")
    host = re.split(r"[/?#]", rest if sep else text, maxsplit=1)[0].rpartition("@")[2].partition(":")[0]
    folded = phrase(host)
    return folded.removeprefix("www ")


def file_phrase(text: str) -> str:
    """The folded last segment of a URL or path."""
    return phrase(re.split(r"[/\\\\]", re.split(r"[?#]", text, maxsplit=1)[0].rstrip("/\\"))[-1])
