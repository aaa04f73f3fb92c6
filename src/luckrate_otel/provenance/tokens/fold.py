"""Text to comparable words: Unicode, case and separators folded away, escapes undone once.

Everything is compared as whole words, never as substrings: `200` does not come from `1200.55`.
"""

from __future__ import annotations

import html
import re
from unicodedata import normalize
from urllib.parse import unquote

# str.translate has a fast path for ASCII text and an ASCII-only table: about 1 ns a character.
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
# Combining marks (an accent is often lost on the way), zero-width characters and the soft hyphen carry no meaning here.
_MARKS = re.compile("[\u0300-\u036f\u00ad\u200b-\u200f\u2060\ufeff]+")
# ASCII and other letters are kept apart, so that an id written into text without blanks (Chinese, Japanese) is a word.
_WORD = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r?\n\s*)|(.))", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r", "b": " ", "f": " ", "0": " "}


# Two Arabic phrases in one character each; taken apart, a megabyte of them would be twenty.
_PHRASES = {0xFDFA: " ", 0xFDFB: " "}


def words(text: str) -> list[str]:
    """The folded words of a text, in order."""
    if text.isascii():
        return text.translate(_ASCII).split()
    if "\ufdfa" in text or "\ufdfb" in text:
        text = text.translate(_PHRASES)
    return _WORD.findall(_MARKS.sub("", normalize("NFKD", text)).casefold())


def vocabulary(text: str) -> frozenset[str]:
    """A list of words written as running text."""
    return frozenset(text.split())


def phrase(text: str) -> str:
    """The folded words of a text, joined with single blanks."""
    return " ".join(words(text))


def within(part: str, whole: str) -> bool:
    """part's words appear in whole as one run of whole words. Both are phrases."""
    return part == whole or f" {part} " in f" {whole} "


def decoded(text: str) -> str:
    """The text with backslash escapes, percent escapes and HTML entities undone, each once; often the text itself."""
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    if "%" in text:
        text = unquote(text)
    if "&" in text:
        try:
            text = html.unescape(text)
        except ValueError:  # a character reference of thousands of digits
            return text
    return text


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code:
        return chr(int(code, 16))
    if match[3] is not None:
        return " "
    return _CONTROL.get(match[4], match[4])
