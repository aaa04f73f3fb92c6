"""JSON, YAML and Python can write one half of a surrogate pair (`"\\ud800"`), which no UTF-8 text can hold.

Read as it stands it goes unnoticed until the first label, page or line that is written with it fails as a whole.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

T = TypeVar("T", str, bytes)

_HALF = re.compile("[\ud800-\udfff]")


def mend(text: str) -> str:
    """The text with U+FFFD for each half pair, as decoders of UTF-8 put it."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def mended(parsed: Any, text: T) -> Any:
    """What was parsed from a JSON text, mended throughout. Free of cost where the text has no such escape."""
    escapes = (b"\\ud", b"\\uD") if isinstance(text, bytes) else ("\\ud", "\\uD")
    return _mended(parsed) if escapes[0] in text or escapes[1] in text else parsed


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mend(value)
    if isinstance(value, dict):
        return {mend(key): _mended(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_mended(member) for member in value]
    return value
