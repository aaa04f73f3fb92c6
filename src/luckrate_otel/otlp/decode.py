"""Full decode of one span or log record into the plain values that adapters read."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected
from luckrate_otel.otlp import schema
from luckrate_otel.otlp.any_value import attributes, value
from luckrate_otel.otlp.shallow import Envelope
from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status

_STATUS = {1: Status.OK, 2: Status.ERROR}

# Before LogRecord.event_name (proto 1.5, 2025) the name of an event was this attribute.
_EVENT_NAME = "event.name"

# An event of a span is a few hundred bytes; 65,536 of them is a runaway loop, and the first ones tell it.
_MAX_EVENTS = 65_536

_NO_PARENT = bytes(8)


def decode_span(wire: bytes, envelope: Envelope) -> Span:
    """Decode the bytes of one Span. Raises Rejected if they are not a protobuf message."""
    try:
        span: Any = schema.Span.FromString(wire)
    except DecodeError as error:
        raise Rejected(f"not an OTLP span: {error}") from None
    parent = span.parent_span_id
    status = span.status
    return Span(
        Head(
            span.trace_id.hex(),
            span.span_id.hex(),
            "" if parent == _NO_PARENT else parent.hex(),
            span.name.decode("utf-8", "replace"),
            span.kind,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            _STATUS.get(status.code, Status.UNSET),
            envelope.scope,
            envelope.service,
        ),
        attributes(span.attributes),
        _events(span.events),
        status.message.decode("utf-8", "replace"),
        envelope.scope_version,
        envelope.resource,
        span.dropped_attributes_count,
    )


def _events(events: Any) -> tuple[SpanEvent, ...]:
    if not events:
        return ()
    return tuple(
        SpanEvent(event.name.decode("utf-8", "replace"), event.time_unix_nano, attributes(event.attributes))
        for event in events[:_MAX_EVENTS]
    )


def decode_log(wire: bytes, envelope: Envelope) -> LogRecord:
    """Decode the bytes of one LogRecord. Raises Rejected if they are not a protobuf message.

    time_ns is the observed time where the record has no time of its own.
    """
    try:
        record: Any = schema.LogRecord.FromString(wire)
    except DecodeError as error:
        raise Rejected(f"not an OTLP log record: {error}") from None
    decoded = attributes(record.attributes)
    name = record.event_name.decode("utf-8", "replace") or decoded.get(_EVENT_NAME)
    return LogRecord(
        record.trace_id.hex(),
        record.span_id.hex(),
        name if isinstance(name, str) else "",
        record.time_unix_nano or record.observed_time_unix_nano,
        decoded,
        value(record.body),
        envelope.scope,
        envelope.service,
        envelope.resource,
    )
