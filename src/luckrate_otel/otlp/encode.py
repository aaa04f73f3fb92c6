"""Plain values and held bytes → OTLP bytes. Spans and records that came in leave with the bytes they came with."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from struct import pack

from ahocorasick_rs import BytesAhoCorasick, MatchKind
from google.protobuf.message import DecodeError
from opentelemetry.proto.trace.v1 import trace_pb2

from luckrate_otel.otlp import schema
from luckrate_otel.otlp.any_value import encode_pairs, utf8
from luckrate_otel.otlp.shallow import Envelope, Group, envelope
from luckrate_otel.otlp.wire import delimited, fields, varint
from luckrate_otel.record import record
from luckrate_otel.telemetry import Span, SpanEvent, Status, Value, nothing

_OURS = b"luckrate."
# Python's `in` takes four times as long for a span of 2 KiB. This lists all that it finds, so a long wire, which may be
# full of it, is left to Python.
_SEARCH = BytesAhoCorasick([_OURS], matchkind=MatchKind.LeftmostFirst)
_SEARCHED_BYTES = 16 * 1024

# The one name of ours that users set themselves (which case a run attempts): an input, not an annotation.
_INPUTS = frozenset({b"luckrate.case"})

# Tags of Span fields: number and wire type "length-delimited".
_ATTRIBUTES, _EVENTS = 9 << 3 | 2, 11 << 3 | 2
_LOG_ATTRIBUTES = 6 << 3 | 2  # of LogRecord

# What is said of runs, each in few different words. Plain values.
_RECURRING = frozenset(
    {
        "luckrate.verdict",
        "luckrate.output",
        "luckrate.output.source",
        "luckrate.path",
        "luckrate.lucky",
        "luckrate.spec.name",
        "luckrate.spec.version",
        "luckrate.steps",
        "luckrate.violation_count.hard",
        "luckrate.violation_count.soft",
        "luckrate.violation_count.warn",
        "luckrate.close_reason",
        "luckrate.reason",
        "luckrate.max_severity",
        "luckrate.late",
        "luckrate.case.runs",
        "luckrate.case.soft",
        "luckrate.case.soft_majority",
        "gen_ai.evaluation.name",
        "gen_ai.evaluation.score.label",
        "gen_ai.evaluation.score.value",
    }
)

_SEVERITY_TEXTS = ((17, "ERROR"), (13, "WARN"), (9, "INFO"))

_STATUS_CODES = {Status.UNSET: 0, Status.OK: 1, Status.ERROR: 2}


@record(frozen=True, slots=True)
class LogEvent:
    """A log record of our own. severity: OTLP severity number. Ids are hex text, "" for none."""

    trace_id: str
    span_id: str
    event_name: str
    time_ns: int
    severity: int
    attributes: Mapping[str, Value] = field(default_factory=nothing)


# ---- spans -------------------------------------------------------------------------------------


def append(wire: bytes, events: Iterable[SpanEvent], attributes: Mapping[str, Value]) -> bytes:
    """The span with events and attributes added: its own bytes, then those of a partial Span.

    Protobuf parsers merge the two; repeated fields are appended to.
    """
    return wire + _our_pairs(_ATTRIBUTES, attributes) + b"".join([delimited(_EVENTS, _event(e)) for e in events])


def _event(event: SpanEvent) -> bytes:
    """Tags of Span.Event: 0x09 time_unix_nano, 0x12 name, 0x1A attributes."""
    return (
        b"\x09" + pack("<Q", event.time_ns) + delimited(0x12, utf8(event.name)) + encode_pairs(0x1A, event.attributes)
    )


def strip_luckrate(wire: bytes) -> bytes:
    """The span without `luckrate.*` attributes and events (`luckrate.case` stays: users set it).

    Every other byte stays, in its order, unknown fields included; the same object if there is nothing to take off.
    Raises Rejected if the bytes are not a message.
    """
    if not (_SEARCH.find_matches_as_indexes(wire) if len(wire) <= _SEARCHED_BYTES else _OURS in wire):
        return wire
    kept: list[bytes] = []
    for tag, start, payload, end in fields(wire):
        if not (tag in {_ATTRIBUTES, _EVENTS} and _is_ours(tag, wire[payload:end])):
            kept.append(wire[start:end])
    stripped = b"".join(kept)
    return wire if len(stripped) == len(wire) else stripped


def _is_ours(tag: int, payload: bytes) -> bool:
    try:
        if tag == _ATTRIBUTES:
            key = schema.KeyValue.FromString(payload).key
            return bool(key.startswith(_OURS)) and key not in _INPUTS
        return bool(schema.Event.FromString(payload).name.startswith(_OURS))
    except DecodeError:
        return False


def encode_span(span: Span) -> bytes:
    """A span of our own, e.g. a verdict span. Scope and resource are the envelope's."""
    head = span.head
    message = trace_pb2.Span(
        trace_id=bytes.fromhex(head.trace_id),
        span_id=bytes.fromhex(head.span_id),
        parent_span_id=bytes.fromhex(head.parent_id),
        name=_text(head.name),
        kind=trace_pb2.Span.SpanKind.ValueType(head.kind),
        start_time_unix_nano=head.start_ns,
        end_time_unix_nano=head.end_ns,
        dropped_attributes_count=span.dropped_attributes,
    )
    if head.status is not Status.UNSET or span.status_message:
        message.status.code = trace_pb2.Status.StatusCode.ValueType(_STATUS_CODES[head.status])
        message.status.message = _text(span.status_message)
    events = b"".join([delimited(_EVENTS, _event(e)) for e in span.events])
    return message.SerializeToString() + encode_pairs(_ATTRIBUTES, span.attributes) + events


def _text(text: str) -> str:
    return utf8(text).decode()


# ---- requests ----------------------------------------------------------------------------------


def request(groups: Iterable[Group]) -> bytes:
    """An Export*ServiceRequest of these groups.

    Groups of one resource are put under one, and those of one scope under one in it, each where it first came; the
    order of items in a scope stays. Unknown fields of the requests they came in are kept.
    """
    requests: dict[bytes, None] = {}
    resources: dict[bytes, dict[bytes, list[Sequence[bytes]]]] = {}
    for group in groups:
        around = group.envelope
        requests[around.request_wire] = None
        resources.setdefault(around.resource_wire, {}).setdefault(around.scope_wire, []).append(group.items)
    # Bytes are only joined once, at the very end: a request is megabytes, and each copy of it costs more than all the
    # rest. Letting protobuf do it costs up to 0.6 µs a span at 300 bytes and 3 at 2 KiB; this 0.2 and 0.3.
    parts: list[bytes] = []
    for resource_wire, scopes in resources.items():
        inner: list[bytes] = []
        size = len(resource_wire) + sum(_add_scope(inner, scope_wire, runs) for scope_wire, runs in scopes.items())
        parts += (b"\n", varint(size), resource_wire)
        parts += inner
    parts += requests
    return b"".join(parts)


def _add_scope(parts: list[bytes], scope_wire: bytes, runs: list[Sequence[bytes]]) -> int:
    """Add the parts of one scope group; returns how many bytes they are."""
    inner = [scope_wire]
    for items in runs:
        for item in items:
            inner.append(_item_head(len(item)))
            inner.append(item)
    size = sum(map(len, inner))
    head = b"\x12" + varint(size)
    parts.append(head)
    parts += inner
    return len(head) + size


@lru_cache(4096)
def _item_head(size: int) -> bytes:
    """Tag and length of an item: field 2 of a scope group, in each signal."""
    return b"\x12" + varint(size)


def traces_request(parts: Iterable[tuple[Envelope, bytes]]) -> bytes:
    """An ExportTraceServiceRequest of encoded spans, grouped as request does."""
    grouped: dict[Envelope, list[bytes]] = {}
    last: Envelope | None = None
    items: list[bytes] = []
    for around, wire in parts:
        if around is not last:
            items = grouped.setdefault(around, [])
            last = around
        items.append(wire)
    return request(Group(around, items) for around, items in grouped.items())


def our_envelope(resource_attributes: Mapping[str, Value], scope: str, version: str = "") -> Envelope:
    """The envelope of telemetry of our own, or of a foreign resource that it is to be shown under."""
    of_scope = delimited(0x0A, utf8(scope)) + delimited(0x12, utf8(version))
    return envelope(delimited(0x0A, encode_pairs(0x0A, resource_attributes)), delimited(0x0A, of_scope))


def logs_request(around: Envelope, records: Iterable[LogEvent]) -> bytes:
    """An ExportLogsServiceRequest of log events of our own."""
    return request((Group(around, [encode_log(record) for record in records]),))


def encode_log(record: LogEvent) -> bytes:
    """The bytes of one LogRecord; observed when it happened, as we are the ones who saw it."""
    severity = next((name for number, name in _SEVERITY_TEXTS if record.severity >= number), "")
    when = pack("<Q", record.time_ns)
    return b"".join(
        (
            b"\x09" + when + b"\x10" + varint(record.severity),
            delimited(0x1A, severity.encode()),
            _our_pairs(_LOG_ATTRIBUTES, record.attributes),
            delimited(0x4A, bytes.fromhex(record.trace_id)),
            delimited(0x52, bytes.fromhex(record.span_id)),
            b"\x59" + when,
            delimited(0x62, utf8(record.event_name)),
        )
    )


def _our_pairs(tag: int, attributes: Mapping[str, Value]) -> bytes:
    """As encode_pairs: most of what is said of a run was said of others in the same words; 0.1 µs each instead of 1."""
    return b"".join(
        [
            _recurring(tag, key, value) if key in _RECURRING else encode_pairs(tag, {key: value})
            for key, value in attributes.items()
        ]
    )


@lru_cache(4096, typed=True)
def _recurring(tag: int, key: str, value: Hashable) -> bytes:
    return encode_pairs(tag, {key: value})
