"""Full decode of one span or log record into the plain values that adapters read."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import schema
from luckrate_otel.otlp.any_value import MAX_VALUES, attributes, value
from luckrate_otel.otlp.shallow import NO_PARENT, Envelope
from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status

_STATUS = {1: Status.OK, 2: Status.ERROR}
_STATUS_UNSET = Status.UNSET, ""

# Before LogRecord.event_name (proto 1.5, 2025) the name of an event was this attribute.
_EVENT_NAME = "event.name"

# An event of a span is a few hundred bytes; 65,536 of them is a runaway loop, and the first ones tell it.
_MAX_EVENTS = 65_536

# Parsing takes up to sixteen times as much memory. No backend takes a span of this size; it is passed on unread.
MAX_ITEM_BYTES = 16 * 1024 * 1024

_ZERO_TRACE, _ZERO_SPAN = "0" * 32, "0" * 16

# Trace and parent ids and names recur in the spans of a run, which then hold one text instead of 200 bytes each. Past
# the bound, more than the traces of one request, all are forgotten and read again.
_SEEN = 16_384
_SHORT_BYTES = 64
_ids: dict[bytes, str] = {}
_names: dict[bytes, str] = {}


def decode_span(wire: bytes, envelope: Envelope) -> Span:
    """Decode the bytes of one Span. Raises Rejected if they are no protobuf message, TooLarge past MAX_ITEM_BYTES."""
    if len(wire) > MAX_ITEM_BYTES:
        raise _too_large("span")
    try:
        span: Any = schema.Span.FromString(wire)
        decoded = attributes(span.attributes)
        events = _events(span.events) if span.events else ()
    except DecodeError:
        raise Rejected("not an OTLP span: malformed protobuf") from None
    trace_id, parent, name = span.trace_id, span.parent_span_id, span.name
    status, message = _STATUS_UNSET
    if span.HasField("status"):  # mostly not; asking is a third of the price of reading it
        status, message = _status(span.status)
    return Span(
        Head(
            _ids.get(trace_id) or _remembered(_ids, trace_id, trace_id.hex()),
            span.span_id.hex(),
            "" if parent == NO_PARENT else _ids.get(parent) or _remembered(_ids, parent, parent.hex()),
            _names.get(name) or _remembered(_names, name, name.decode("utf-8", "replace")),
            span.kind,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            status,
            envelope.scope,
            envelope.service,
        ),
        decoded,
        events,
        message,
        envelope.scope_version,
        envelope.resource,
        span.dropped_attributes_count,
    )


def is_well_formed(head: Head) -> bool:
    """Whether the ids are as OTLP demands: 16 and 8 bytes, not all zero, and a parent of 8 bytes or none.

    An all-zero parent is let through: some SDKs write it for a root span.
    """
    return (
        len(head.trace_id) == 32
        and len(head.span_id) == 16
        and len(head.parent_id) in {0, 16}
        and head.trace_id != _ZERO_TRACE
        and head.span_id != _ZERO_SPAN
    )


def _status(status: Any) -> tuple[Status, str]:
    return _STATUS.get(status.code, Status.UNSET), status.message.decode("utf-8", "replace")


def _remembered(known: dict[bytes, str], raw: bytes, text: str) -> str:
    if len(raw) <= _SHORT_BYTES:
        if len(known) >= _SEEN:
            known.clear()
        known[raw] = text
    return text


def _events(events: Any) -> tuple[SpanEvent, ...]:
    budget = [MAX_VALUES]
    return tuple(
        SpanEvent(event.name.decode("utf-8", "replace"), event.time_unix_nano, attributes(event.attributes, budget))
        for event in map(schema.Event.FromString, events[:_MAX_EVENTS])
    )


def _too_large(kind: str) -> TooLarge:
    return TooLarge(f"a {kind} of more than {MAX_ITEM_BYTES} bytes is not read")


def decode_log(wire: bytes, envelope: Envelope) -> LogRecord:
    """Decode the bytes of one LogRecord. Raises as decode_span does.

    time_ns is the observed time where the record has no time of its own.
    """
    if len(wire) > MAX_ITEM_BYTES:
        raise _too_large("log record")
    try:
        record: Any = schema.LogRecord.FromString(wire)
        decoded = attributes(record.attributes)
    except DecodeError:
        raise Rejected("not an OTLP log record: malformed protobuf") from None
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
