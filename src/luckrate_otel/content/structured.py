"""JSON or structured: the same content arrives as a JSON string on spans and as nested values on log records.

Python SDKs before 1.45 can only put strings on a span, so most instrumentations dump JSON; size limits (SDK, Tempo)
then cut the string without keeping it valid. What cannot be read is told as a Gap, never guessed and never raised.

Decoded values and parsed JSON hold no mapping but dict, so dict is what is tested for: asking for the abstract Mapping
takes ten times as long, a dozen times per span.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from luckrate_otel.facts import Gap
from luckrate_otel.surrogates import mended
from luckrate_otel.telemetry import Value

# What instrumentations write instead of content: OpenInference's TraceConfig, Google ADK's logs, common masking
# processors.
REDACTED = frozenset(
    {"__redacted__", "[redacted]", "<redacted>", "redacted", "<elided>", "***", "[masked]", "<masked>"}
)


# What the OTLP decoder leaves in place of a value beyond its bounds; as a key it stands for the pairs left out.
CUT = "[truncated by luckrate-otel]"

REDACTED_CHARS = 16  # no mark is that long

_CONTAINERS = (dict, list, tuple)


def _constant(name: str) -> str:
    # NaN and Infinity are no JSON; as text they survive a round trip through every strict parser.
    return name


_DECODER = json.JSONDecoder(parse_constant=_constant, strict=False)
_scan: Callable[[str, int], tuple[Any, int]] = vars(_DECODER)["scan_once"]  # raw_decode without a call in between


def loads(text: str) -> Any:
    """Parse JSON. Raises ValueError for anything else, too deep nesting included."""
    try:
        if text[:1] in ("{", "["):  # without blanks around it, as nearly always: half the price for a short text
            found, end = _scan(text, 0)
            if end == len(text):
                # One character is found twenty times as fast as two.
                return mended(found, text) if "\\" in text and "\\u" in text else found
        return mended(_DECODER.decode(text), text)
    except StopIteration as error:
        raise ValueError("cut") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def dumps(value: Value) -> str:
    """JSON text of a decoded value; bytes become hex, tuples arrays, anything else its text."""
    try:
        return json.dumps(plain(value), ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""


def plain(value: Value, depth: int = 64) -> Any:
    """The value made of dicts, lists and scalars only."""
    if isinstance(value, dict):
        return {str(k): plain(v, depth - 1) for k, v in value.items()} if depth else None
    if isinstance(value, (list, tuple)):
        return [plain(v, depth - 1) for v in value] if depth else None
    if isinstance(value, bytes):
        return value.hex()
    return value


def fits(value: Value, depth: int) -> bool:
    """Nested no deeper than this. Without recursion, as what it guards against is exactly that."""
    level: list[Any] = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(depth):
        deeper = []
        for outer in level:
            for inner in outer.values() if isinstance(outer, dict) else outer:
                if isinstance(inner, _CONTAINERS):
                    deeper.append(inner)
        if not deeper:
            return True
        level = deeper
    return False


def is_redacted(value: Value) -> bool:
    return isinstance(value, str) and len(value) < REDACTED_CHARS and value.strip().lower() in REDACTED


def structured(value: Value) -> tuple[Any, Gap | None]:
    """Content of an attribute: its parsed JSON, or the structured value itself, or the text as it is.

    A text that begins as a JSON object or array but is none was cut: (None, truncated).
    """
    if value is None:
        return None, Gap.NOT_CAPTURED
    if not isinstance(value, str):
        return value, None
    if is_redacted(value):
        return None, Gap.REDACTED
    if value == CUT:
        return None, Gap.TRUNCATED
    start = value[:1] if value[:1] not in " \n\r\t" else value.lstrip()[:1]
    if start not in ("{", "[", '"') or not start:
        return value, None
    try:
        return loads(value), None
    except ValueError:
        return (value, None) if start == '"' else (None, Gap.TRUNCATED)


def mapping(value: Value) -> Mapping[str, Any]:
    """The content as a mapping, empty if it is none."""
    found, _ = structured(value)
    return found if isinstance(found, dict) else {}


def sequence(value: Value) -> list[Any] | tuple[Any, ...]:
    """The content as a list, empty if it is none."""
    found, _ = structured(value)
    return found if isinstance(found, (list, tuple)) else ()


def text_of(value: Value) -> str | None:
    """A non-empty text, else None."""
    return value if isinstance(value, str) and value else None


def as_text(value: Any) -> str | None:
    """An answer as text: a text as it is, other data as JSON; None where there is none."""
    return value if isinstance(value, str) or value is None else dumps(value)
