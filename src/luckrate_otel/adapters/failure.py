"""Did the call of this span fail, and how: status, `error.type`, exception events.

UNSET means success in the GenAI conventions; other emitters set OK. A call that was cancelled or interrupted is
neither: it never returned, whatever status its span was closed with (LangSmith closes it OK, Splunk UNSET, others
ERROR).
"""

from __future__ import annotations

import re

from luckrate_otel.content.structured import text_of
from luckrate_otel.facts import MAX_ERROR_CHARS, NO_RETURN
from luckrate_otel.telemetry import Span, Status

_CUT = re.compile(r"\b(CancelledError|KeyboardInterrupt|GeneratorExit|AbortError|SystemExit)\b")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\)|\n\s*at .*:\d+")

Failure = tuple[bool | None, str | None]


def failure(span: Span, *, told: str | None = None) -> Failure:
    """(ok, error) of a tool span. told: an error text of the instrumentation's own, used when the status says ERROR."""
    error_type = text_of(span.attributes.get("error.type"))
    if error_type is None and not span.events and not span.status_message and span.head.status is not Status.ERROR:
        return True, None  # most calls; the rest takes 1 µs
    kind, text = exception(span)
    said = f"{kind or ''} {error_type or ''} {(text or '')[:80]} {span.status_message[:80]}"
    if not said.isspace() and _CUT.search(said):
        return None, NO_RETURN
    if span.head.status is not Status.ERROR and error_type is None:
        return True, None
    return False, first_line(told) or text or first_line(span.status_message) or kind or error_type or "error"


def exception(span: Span) -> tuple[str | None, str | None]:
    """Type and message of the last exception event."""
    for event in reversed(span.events):
        if event.name == "exception":
            message = first_line(text_of(event.attributes.get("exception.message")))
            return text_of(event.attributes.get("exception.type")), message
    return None, None


def first_line(text: str | None) -> str | None:
    """The message without the stack trace that some instrumentations glue to it, and of a bounded size."""
    if not text:
        return None
    found = _TRACEBACK.search(text)
    return (text[: found.start()] if found else text).strip()[:MAX_ERROR_CHARS] or None
