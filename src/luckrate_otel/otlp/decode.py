"""Full decode of one span or log record into the plain values that adapters read."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import schema
from luckrate_otel.otlp.any_value import MAX_VALUES, attributes, value
from luckrate_otel.otlp.shallow import Envelope
from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status

_STATUS = {1: Status.OK, 2: Status.ERROR}

# Before LogRecord.event_name (proto 1.5, 2025) the name of an event was this attribute.
_EVENT_NAME = "event.name"

# An event of a span is a few hundred bytes; 65,536 of them is a runaway loop, and the first ones tell it.
_MAX_EVENTS = 65_536

# Parsing takes up to sixteen times as much memory. No backend takes a span of this size; it is passed on unread.
MAX_ITEM_BYTES = 16 * 1024 * 1024

_NO_PARENT = bytes(8)

# Trace and parent ids and names recur in the spans of a run, which then hold one text instead of 200 bytes each. Past
# the bound, more than the traces of one request, all are forgotten and read again.
_SEEN = 16_384
_SHORT_BYTES = 64
_ids: dict[bytes, str] = {}
_names: dict[bytes, str] = {}


def decode_span(wire: bytes, envelope: Envelope) -> Span:
    """Decode the bytes of one Span. Raises Rejected if they are no protobuf message, TooLarge past MAX_ITEM_BYTES."""
    _refuse_giant(wire, "span")
    try:
        span: Any = schema.Span.FromString(wire)
        decoded = attributes(span.attributes)
        events = _events(span.events)
    except DecodeError:
        raise Rejected("not an OTLP span: malformed protobuf") from None
    parent = span.parent_span_id
    status = span.status
    return Span(
        Head(
            _shared_id(span.trace_id),
            span.span_id.hex(),
            "" if parent == _NO_PARENT else _shared_id(parent),
            _shared_name(span.name),
            span.kind,
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            _STATUS.get(status.code, Status.UNSET),
            envelope.scope,
            envelope.service,
        ),
        decoded,
        events,
        status.message.decode("utf-8", "replace"),
        envelope.scope_version,
        envelope.resource,
        span.dropped_attributes_count,
    )


def _shared_id(raw: bytes) -> str:
    return _ids.get(raw) or _remembered(_ids, raw, raw.hex())


def _shared_name(raw: bytes) -> str:
    return _names.get(raw) or _remembered(_names, raw, raw.decode("utf-8", "replace"))


def _remembered(known: dict[bytes, str], raw: bytes, text: str) -> str:
    if len(raw) <= _SHORT_BYTES:
        if len(known) >= _SEEN:
            known.clear()
        known[raw] = text
    return text


def _events(events: Any) -> tuple[SpanEvent, ...]:
    if not events:
        return ()
    budget = [MAX_VALUES]
    return tuple(
        SpanEvent(event.name.decode("utf-8", "replace"), event.time_unix_nano, attributes(event.attributes, budget))
        for event in map(schema.Event.FromString, events[:_MAX_EVENTS])
    )


def _refuse_giant(wire: bytes, kind: str) -> None:
    if len(wire) > MAX_ITEM_BYTES:
        raise TooLarge(f"a {kind} of more than {MAX_ITEM_BYTES} bytes is not read")


def decode_log(wire: bytes, envelope: Envelope) -> LogRecord:
    """Decode the bytes of one LogRecord. Raises as decode_span does.

    time_ns is the observed time where the record has no time of its own.
    """
    _refuse_giant(wire, "log record")
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
