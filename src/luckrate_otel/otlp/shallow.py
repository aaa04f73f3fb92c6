"""Requests cut into groups: one Envelope (resource and scope) and the still encoded spans or log records under it.

The three signals and profiles share the layout request(1) → resource group(2) → scope group(2) → item, so one cut
serves all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import any_value, schema
from luckrate_otel.plural import plural
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

# How a span begins that has a parent: tag and length of the three ids, each before the id. One unpack is two thirds of
# the price of slicing.
_IDS = Struct(">H16sH8sH8s")

_two_ids = re.compile(rb"\n\x10.{16}\x12\x08.{8}", re.DOTALL).match
_all_ids = re.compile(rb'\n\x10.{16}\x12\x08.{8}"\x08.{8}', re.DOTALL).match
_PARENT_TAG = b'"'

# What some SDKs write as the parent of a root span.
NO_PARENT = bytes(8)


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


def shallow(body: bytes, max_items: int | None = None) -> tuple[Group, ...]:
    """Cut an Export*ServiceRequest into groups, in order; scopes without items are left out.

    Raises Rejected if the body, a resource or a scope is not the protobuf of one, TooLarge past MAX_GROUPS or
    max_items. Items are not looked into.
    """
    request = _parsed(body)
    resources = list(request.resources)
    if len(resources) + sum(len(resource.scopes) for resource in resources) > MAX_GROUPS:
        raise TooLarge(f"more than {MAX_GROUPS} resources and scopes in one request")
    if max_items and sum(len(scope.items) for resource in resources for scope in resource.scopes) > max_items:
        raise TooLarge(f"more than {plural(max_items, 'span or log record', 'spans or log records')} in one request")
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


def heads(spans: Iterable[bytes]) -> list[bytes]:
    """The ids of each encoded Span, as link_of reads them: its trace id in [2:18] of 28 bytes, 38 if it has a parent.

    Spans that are no message, or whose ids are not OTLP's, are left out; a parent that is not OTLP's counts as none.
    """
    return [head for span in spans if (head := ids[0] if (ids := _all_ids(span)) else _head(span))]


def _head(span: bytes) -> bytes:
    """As heads(), of a span without a parent right after the other two ids: the field may follow later."""
    if (ids := _two_ids(span)) and span.find(_PARENT_TAG, 28) < 0:
        return ids[0]  # the tag is nowhere, which is quicker to find out than to parse the span
    try:
        trace_id, span_id, parent_id = link_of(span)
    except Rejected:
        return b""
    if len(trace_id) != 16 or len(span_id) != 8:
        return b""
    parent = b'"\x08' + parent_id if len(parent_id) == 8 else b""
    return b"\n\x10" + trace_id + b"\x12\x08" + span_id + parent


def link_of(span: bytes) -> tuple[bytes, bytes, bytes]:
    """Trace id, span id and parent span id of an encoded Span, the last b"" if it has none.

    Of any length: see decode.is_well_formed. Raises Rejected if the bytes are not a message. Ids at the start of the
    span, where all encoders write them, are taken as they stand. A span without parent there is parsed, because the
    field may follow later.
    """
    if len(span) >= _IDS.size:
        trace_head, trace_id, span_head, span_id, parent_head, parent_id = _IDS.unpack_from(span)
        if trace_head == 0x0A10 and span_head == 0x1208 and parent_head == 0x2208:
            return trace_id, span_id, parent_id if parent_id != NO_PARENT else b""
    try:
        link: Any = schema.Link.FromString(span)
    except DecodeError:
        raise Rejected("not an OTLP span: malformed protobuf") from None
    parent_id = link.parent_span_id
    return link.trace_id, link.span_id, parent_id if parent_id != NO_PARENT else b""
