"""Full decode of one span or log record into the plain values that adapters read."""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import schema
from luckrate_otel.otlp.any_value import FEW_BYTES, MAX_VALUES, attributes, attributes_from, value
from luckrate_otel.otlp.shallow import NO_PARENT, Envelope
from luckrate_otel.telemetry import Head, LogRecord, Span, SpanEvent, Status, Value

_STATUS = {1: Status.OK, 2: Status.ERROR}
_STATUS_UNSET = Status.UNSET, ""

# Before LogRecord.event_name (proto 1.5, 2025) the name of an event was this attribute.
_EVENT_NAME = "event.name"

# An event of a span is a few hundred bytes; 65,536 of them is a runaway loop, and the first ones tell it.
_MAX_EVENTS = 65_536

# Parsing takes up to sixteen times as much memory. No backend takes a span of this size; it is passed on unread.
MAX_ITEM_BYTES = 16 * 1024 * 1024

# Status, its message, events, number of dropped attributes: the fields behind a span's attributes that are read.
_Rest = tuple[Status, str, tuple[SpanEvent, ...], int]
_AFTER_ATTRIBUTES: Final = 10

# How a span begins, with and without a parent: each id behind its tag and length, then tag and length of the name.
_INNER: Final = Struct(">H16sH8sH8sBB")
_TOP: Final = Struct(">H16sH8sBB")
_TRACE_ID, _SPAN_ID, _PARENT_ID, _NAME = 0x0A10, 0x1208, 0x2208, 0x2A
# Kind, start and end, which follow the name.
_TIMES: Final = Struct("<BBBQBQ")
_KIND, _START, _END, _ATTRIBUTES = 0x30, 0x39, 0x41, 0x4A

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
        return _in_order(wire, envelope) or _parsed(wire, envelope)
    except DecodeError:
        raise Rejected("not an OTLP span: malformed protobuf") from None


def _in_order(wire: bytes, envelope: Envelope) -> Span | None:
    """A span whose fields come in the order of their numbers, as all SDKs write them; None for any other.

    Without the parser, which copies every attribute twice: a fifth less, see docs/decisions.md.
    """
    if len(wire) > FEW_BYTES:
        return None
    try:
        trace_tag, trace_id, span_tag, span_id, parent_tag, parent, name_tag, length = _INNER.unpack_from(wire)
        at = _INNER.size
        if parent_tag != _PARENT_ID:
            trace_tag, trace_id, span_tag, span_id, name_tag, length = _TOP.unpack_from(wire)
            at, parent = _TOP.size, b""
        if trace_tag != _TRACE_ID or span_tag != _SPAN_ID or name_tag != _NAME or length >= 0x80:
            return None
        name = wire[at : at + length]
        kind_tag, kind, start_tag, start_ns, end_tag, end_ns = _TIMES.unpack_from(wire, at + length)
        if kind_tag != _KIND or kind >= 0x80 or start_tag != _START or end_tag != _END:
            return None
        decoded, at = attributes_from(wire, at + length + _TIMES.size, _ATTRIBUTES)
    except (struct.error, IndexError):
        return None
    if at == len(wire):
        return _span(envelope, trace_id, span_id, parent, name, kind, start_ns, end_ns, decoded)
    rest = _rest(wire[at:]) if at < len(wire) else None
    return rest and _span(envelope, trace_id, span_id, parent, name, kind, start_ns, end_ns, decoded, *rest)


@lru_cache(1024)
def _short_rest(wire: bytes) -> _Rest | None:
    return _read_rest(wire)


def _rest(wire: bytes) -> _Rest | None:
    """What comes behind the attributes; None if that is one of the fields before them. Flags and status recur."""
    return _short_rest(wire) if len(wire) < _SHORT_BYTES else _read_rest(wire)


def _read_rest(wire: bytes) -> _Rest | None:
    rest: Any = schema.Span.FromString(wire)
    first = min((field.number for field, _ in rest.ListFields()), default=_AFTER_ATTRIBUTES)
    return _rest_of(rest) if first >= _AFTER_ATTRIBUTES else None


def _rest_of(span: Any) -> _Rest:
    events = _events(span.events) if span.events else ()
    status, message = _STATUS_UNSET
    if span.HasField("status"):  # mostly not; asking is a third of the price of reading it
        status, message = _status(span.status)
    return status, message, events, span.dropped_attributes_count


def _parsed(wire: bytes, envelope: Envelope) -> Span:
    span: Any = schema.Span.FromString(wire)
    return _span(
        envelope,
        span.trace_id,
        span.span_id,
        span.parent_span_id,
        span.name,
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        attributes(span.attributes),
        *_rest_of(span),
    )


def _span(
    envelope: Envelope,
    trace_id: bytes,
    span_id: bytes,
    parent: bytes,
    name: bytes,
    kind: int,
    start_ns: int,
    end_ns: int,
    decoded: dict[str, Value],
    status: Status = Status.UNSET,
    message: str = "",
    events: tuple[SpanEvent, ...] = (),
    dropped_attributes: int = 0,
) -> Span:
    return Span(
        Head(
            _ids.get(trace_id) or _remembered(_ids, trace_id, trace_id.hex()),
            span_id.hex(),
            "" if parent == NO_PARENT else _ids.get(parent) or _remembered(_ids, parent, parent.hex()),
            _names.get(name) or _remembered(_names, name, name.decode("utf-8", "replace")),
            kind,
            start_ns,
            end_ns,
            status,
            envelope.scope,
            envelope.service,
        ),
        decoded,
        events,
        message,
        envelope.scope_version,
        envelope.resource,
        dropped_attributes,
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
