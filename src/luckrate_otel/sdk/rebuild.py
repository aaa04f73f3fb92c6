"""An ended span with findings on it. An ended span is immutable, so it is another one that looks like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan

from luckrate_otel.annotate import SpanNote

# The one name of ours that users set themselves.
CASE = "luckrate.case"
_OURS = "luckrate."


class AnnotatedSpan(ReadableSpan):
    """What the span said, and the note; dropped counts are those of the span, which limited itself already."""

    def __init__(self, span: ReadableSpan, note: SpanNote | None, more: Mapping[str, Any]) -> None:
        kept = {key: value for key, value in (span.attributes or {}).items() if not _is_ours(key)}
        events = [event for event in span.events if not event.name.startswith(_OURS)]
        if note is not None:
            events += [Event(event.name, dict(event.attributes), event.time_ns) for event in note.events]
        super().__init__(
            name=span.name,
            context=span.context,
            parent=span.parent,
            resource=span.resource,
            attributes={**kept, **(note.attributes if note else {}), **more},
            events=events,
            links=span.links,
            kind=span.kind,
            status=span.status,
            start_time=span.start_time,
            end_time=span.end_time,
            instrumentation_scope=span.instrumentation_scope,
        )
        self._annotated = span

    @property
    def dropped_attributes(self) -> int:
        return self._annotated.dropped_attributes

    @property
    def dropped_events(self) -> int:
        return self._annotated.dropped_events

    @property
    def dropped_links(self) -> int:
        return self._annotated.dropped_links


def rebuild(span: ReadableSpan, note: SpanNote | None, *, late: bool = False) -> ReadableSpan:
    """The span with what is to be written on it; the very same if that is nothing."""
    more = {"luckrate.late": True} if late else {}
    if note is None and not more:
        return span
    return AnnotatedSpan(span, note, more)


def _is_ours(key: str) -> bool:
    return key.startswith(_OURS) and key != CASE
