"""An ended span of the SDK → the same `Span` that decoding gives once it was exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id

from luckrate_otel.surrogates import mend
from luckrate_otel.telemetry import NOTHING, Head, Span, SpanEvent, Status, Value

_STATUS: Final = {StatusCode.UNSET: Status.UNSET, StatusCode.OK: Status.OK, StatusCode.ERROR: Status.ERROR}
_INT64: Final = range(-(2**63), 2**63)


class _Unfit(Exception):
    """A value that OTLP cannot carry; the SDK's exporter leaves its attribute out."""


def to_span(span: ReadableSpan) -> Span:
    """Never raises on what an instrumentation put on the span."""
    context, parent, scope = span.context, span.parent, span.instrumentation_scope
    resource = _resource(span.resource)
    service = resource.get("service.name")
    return Span(
        Head(
            trace_id=format_trace_id(context.trace_id) if context else "",
            span_id=format_span_id(context.span_id) if context else "",
            parent_id=format_span_id(parent.span_id) if parent and parent.span_id else "",
            name=mend(span.name),
            kind=span.kind.value + 1,  # the API counts from INTERNAL = 0, OTLP has UNSPECIFIED there
            start_ns=span.start_time or 0,
            end_ns=span.end_time or 0,
            status=_STATUS.get(span.status.status_code, Status.UNSET),
            scope=scope.name if scope and scope.name else "",
            service=service if isinstance(service, str) else "",
        ),
        attributes=attributes(span.attributes),
        events=tuple(SpanEvent(mend(e.name), e.timestamp, attributes(e.attributes)) for e in span.events),
        status_message=mend(span.status.description or ""),
        scope_version=scope.version if scope and scope.version else "",
        resource=resource,
        dropped_attributes=span.dropped_attributes,
    )


# The resource of a process is one object for all its spans.
_last: tuple[Resource | None, Mapping[str, Value]] = (None, NOTHING)


def _resource(resource: Resource) -> Mapping[str, Value]:
    global _last  # noqa: PLW0603 - a memory of one; a race costs only the time to read it again
    known, read = _last
    if known is not resource:
        read = attributes(resource.attributes)
        _last = (resource, read)
    return read


def attributes(given: Mapping[str, Any] | None) -> Mapping[str, Value]:
    """Plain values, without those that OTLP cannot carry."""
    found: dict[str, Value] = {}
    for key, value in (given or {}).items():
        try:
            found[_text(key)] = _plain(value)
        except _Unfit:
            continue
    return found


def _plain(value: Any) -> Value:
    if value is None or isinstance(value, bool | float | bytes):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if value not in _INT64:
            raise _Unfit
        return value
    if isinstance(value, Sequence):
        return tuple(map(_plain, value))
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(child) for key, child in value.items()}
    raise _Unfit


def _text(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        raise _Unfit from None
    return text
