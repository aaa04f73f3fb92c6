"""Requests cut into groups: one Envelope (resource and scope) and the still encoded spans or log records under it.

The three signals and profiles share the layout request(1) → resource group(2) → scope group(2) → item, so one cut
serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import any_value, schema
from luckrate_otel.otlp.wire import delimited
from luckrate_otel.telemetry import NOTHING, Value, nothing

# Distinct resource and scope pairs remembered, so that the spans of one process share one Envelope. A process has some
# ten instrumentation scopes; past the bound all are forgotten, and building one again costs microseconds.
_SEEN = 1024
# Larger ones are not remembered: 1024 of them must stay a few MiB whatever a sender puts into its resource.
_SEEN_BYTES = 8 * 1024
_Key = tuple[bytes, bytes, bytes]
_seen: dict[_Key, Envelope] = {}

# A scope costs ten times a span. The largest batches in use are some ten thousand spans, be each under a resource of
# its own; a request of nothing but empty scopes would hold a core for half a minute.
MAX_GROUPS = 262_144

# Spans in a request, of which one with ids and times takes 50 bytes, so that a request at the usual limit of 64 MiB has
# no more. Empty ones take two: a body of 260 KB that inflated to thirty million held a core for a minute and 2.6 GB.
MAX_ITEMS = 1_310_720

# How a span begins that has a parent: tag and length of the three ids, each before the id. One unpack is two thirds of
# the price of slicing.
_IDS = Struct(">H16sH8sH8s")

_PARENT_HEAD = b'"\x08'

# Of a trace; that of a span takes half of it. Some write either as the text that JSON has, which is no id, but short.
_LONGEST_ID: Final = 32


@dataclass(frozen=True, slots=True)
class Envelope:
    """What stands around the spans of one ScopeSpans, the records of one ScopeLogs, the metrics of one ScopeMetrics.

    resource_wire: the ResourceSpans without its scopes: resource, schema_url and unknown fields as they came.
    scope_wire: the ScopeSpans without its spans, likewise. request_wire: unknown fields of the request itself
    (and the dictionary of a profiles request). Two envelopes are equal when these three are.
    """

    resource_wire: bytes = b""
    scope_wire: bytes = b""
    request_wire: bytes = b""
    scope: str = field(default="", compare=False)
    scope_version: str = field(default="", compare=False)
    service: str = field(default="", compare=False)
    resource: Mapping[str, Value] = field(default_factory=nothing, compare=False)


@dataclass(frozen=True, slots=True)
class Group:
    """An envelope and its items, each the wire bytes of one Span, LogRecord, Metric or Profile."""

    envelope: Envelope
    items: Sequence[bytes]


def shallow(body: bytes) -> tuple[Group, ...]:
    """Cut an Export*ServiceRequest into groups, in order; scopes without items are left out.

    Raises Rejected if the body, a resource or a scope is not the protobuf of one, TooLarge past MAX_GROUPS or
    MAX_ITEMS. Items are not looked into.
    """
    request = _parsed(body)
    resources = list(request.resources)
    if len(resources) + sum(len(resource.scopes) for resource in resources) > MAX_GROUPS:
        raise TooLarge(f"more than {MAX_GROUPS} resources and scopes in one request")
    if sum(len(scope.items) for resource in resources for scope in resource.scopes) > MAX_ITEMS:
        raise TooLarge(f"more than {MAX_ITEMS} spans, records or metrics in one request")
    request.ClearField("resources")
    request_wire = request.SerializeToString()
    groups: list[Group] = []
    for resource in resources:
        scopes = list(resource.scopes)
        resource.ClearField("scopes")
        read = _resource_reader(resource.SerializeToString(), request_wire)
        for scope in scopes:
            items = list(scope.items)
            if items:
                scope.ClearField("items")
                groups.append(Group(read(scope.SerializeToString()), items))
    return tuple(groups)


def check(body: bytes) -> None:
    """Raise Rejected if the body is not the protobuf of a request of any signal, down to its scopes."""
    _parsed(body)


def _parsed(body: bytes) -> Any:
    try:
        return schema.Request.FromString(body)
    except DecodeError:
        raise Rejected("not an OTLP request: malformed protobuf") from None


def envelope(resource_wire: bytes, scope_wire: bytes, request_wire: bytes = b"") -> Envelope:
    """The Envelope of these wire bytes, the same object for the same bytes as long as it is remembered."""
    return _resource_reader(resource_wire, request_wire)(scope_wire)


def _resource_reader(resource_wire: bytes, request_wire: bytes) -> Callable[[bytes], Envelope]:
    """Scope bytes → envelope. Reads the resource at most once, as a hostile one is large and has many scopes."""
    resource: Mapping[str, Value] | None = None

    def read(scope_wire: bytes) -> Envelope:
        nonlocal resource
        key = (resource_wire, scope_wire, request_wire)
        known = _seen.get(key)
        if known is None:
            if resource is None:
                resource = _resource(resource_wire)
            known = _build(key, resource)
            _remember(key, known)
        return known

    return read


def _remember(key: _Key, built: Envelope) -> None:
    if sum(map(len, key)) <= _SEEN_BYTES:
        if len(_seen) >= _SEEN:
            _seen.clear()
        _seen[key] = built


def _resource(wire: bytes) -> Mapping[str, Value]:
    try:
        resource = schema.Resource.FromString(b"".join(schema.ResourceGroup.FromString(wire).resource))
        return any_value.attributes(resource.attributes) or NOTHING
    except DecodeError:
        raise Rejected("not an OTLP resource: malformed protobuf") from None


def _build(key: _Key, resource: Mapping[str, Value]) -> Envelope:
    resource_wire, scope_wire, request_wire = key
    try:
        scope = schema.Scope.FromString(b"".join(schema.ScopeGroup.FromString(scope_wire).scope))
    except DecodeError:
        raise Rejected("not an OTLP instrumentation scope: malformed protobuf") from None
    service = resource.get("service.name")
    return Envelope(
        resource_wire,
        scope_wire,
        request_wire,
        scope.name.decode("utf-8", "replace"),
        scope.version.decode("utf-8", "replace"),
        service if isinstance(service, str) else "",
        resource,
    )


def heads(spans: Sequence[bytes]) -> list[bytes]:
    """As much of each encoded Span as trace_id_at and link_of need: its ids. b"" if it has none that can be used."""
    size = _IDS.size
    return [span[:size] if span[28:30] == _PARENT_HEAD else _head(span) for span in spans]


def _head(span: bytes) -> bytes:
    """Of a span whose ids do not all stand in front: whatever stands between them may be large."""
    try:
        link = link_of(span)
    except Rejected:
        return b""
    usual = b"\n\x10" + link[0] + b"\x12\x08" + link[1]  # the first span of a trace, as all encoders write it
    return usual if not link[2] and span.startswith(usual) else head_of(link)


def head_of(link: tuple[bytes, bytes, bytes]) -> bytes:
    """The head of a span with these ids (trace, span, parent); b"" if one is longer than any id is."""
    if max(map(len, link)) > _LONGEST_ID:
        return b""
    trace_id, span_id, parent_id = link
    return delimited(0x0A, trace_id) + delimited(0x12, span_id) + (delimited(0x22, parent_id) if parent_id else b"")


def trace_id_at(span: bytes) -> bytes:
    """The trace id of an encoded Span, without decoding it when the id comes first, as all encoders write it.

    Of any length, b"" if it has none: see decode.is_well_formed. Raises Rejected if the bytes are not a message.
    """
    if span[:2] == b"\n\x10":
        return span[2:18]
    return link_of(span)[0]


def link_of(span: bytes) -> tuple[bytes, bytes, bytes]:
    """Trace id, span id and parent span id of an encoded Span; see trace_id_at for lengths and errors.

    Ids at the start of the span are taken as they stand. A span without parent there is parsed, because the field
    may follow later.
    """
    if len(span) >= _IDS.size:
        trace_head, trace_id, span_head, span_id, parent_head, parent_id = _IDS.unpack_from(span)
        if trace_head == 0x0A10 and span_head == 0x1208 and parent_head == 0x2208:
            return trace_id, span_id, parent_id
    try:
        link: Any = schema.Link.FromString(span)
    except DecodeError:
        raise Rejected("not an OTLP span: malformed protobuf") from None
    return link.trace_id, link.span_id, link.parent_span_id
