"""Requests cut into groups: one Envelope (resource and scope) and the still encoded spans or log records under it.

The three signals and profiles share the layout request(1) → resource group(2) → scope group(2) → item, so one cut
serves all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected
from luckrate_otel.otlp import any_value, schema
from luckrate_otel.telemetry import NOTHING, Value, nothing

# Distinct resource and scope pairs remembered, so that the spans of one process share one Envelope. A process has some
# ten instrumentation scopes; past the bound an envelope is built again, which costs microseconds.
_CACHED_ENVELOPES = 1024
# Larger ones are not remembered: 1024 of them must stay a few MiB whatever a sender puts into its resource.
_CACHED_BYTES = 8 * 1024

_ZERO_TRACE = bytes(16)
_ZERO_SPAN = bytes(8)


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

    Raises Rejected if the body, a resource or a scope is not the protobuf of one. Items are not looked into.
    """
    try:
        request = schema.Request.FromString(body)
    except DecodeError as error:
        raise Rejected(f"not an OTLP request: {_cause(error)}") from None
    resources = list(request.resources)
    request.ClearField("resources")
    request_wire = request.SerializeToString()
    groups: list[Group] = []
    for resource in resources:
        scopes = list(resource.scopes)
        resource.ClearField("scopes")
        resource_wire = resource.SerializeToString()
        for scope in scopes:
            items = list(scope.items)
            if items:
                scope.ClearField("items")
                groups.append(Group(envelope(resource_wire, scope.SerializeToString(), request_wire), items))
    return tuple(groups)


shallow_traces = shallow
shallow_logs = shallow


def envelope(resource_wire: bytes, scope_wire: bytes, request_wire: bytes = b"") -> Envelope:
    """The Envelope of these wire bytes, the same object for the same bytes as long as it is remembered."""
    if len(resource_wire) + len(scope_wire) + len(request_wire) > _CACHED_BYTES:
        return _build(resource_wire, scope_wire, request_wire)
    return _remembered(resource_wire, scope_wire, request_wire)


def _build(resource_wire: bytes, scope_wire: bytes, request_wire: bytes) -> Envelope:
    try:
        resource = schema.Resource.FromString(b"".join(schema.ResourceGroup.FromString(resource_wire).resource))
    except DecodeError as error:
        raise Rejected(f"not an OTLP resource: {_cause(error)}") from None
    try:
        scope = schema.Scope.FromString(b"".join(schema.ScopeGroup.FromString(scope_wire).scope))
    except DecodeError as error:
        raise Rejected(f"not an OTLP instrumentation scope: {_cause(error)}") from None
    attributes = any_value.attributes(resource.attributes)
    service = attributes.get("service.name")
    return Envelope(
        resource_wire,
        scope_wire,
        request_wire,
        scope.name.decode("utf-8", "replace"),
        scope.version.decode("utf-8", "replace"),
        service if isinstance(service, str) else "",
        attributes or NOTHING,
    )


_remembered = lru_cache(_CACHED_ENVELOPES)(_build)


def trace_id_at(span: bytes) -> bytes:
    """The trace id of an encoded Span, without decoding it when the id comes first, as all encoders write it.

    Of any length, b"" if it has none: see well_formed. Raises Rejected if the bytes are not a message.
    """
    if span[:2] == b"\n\x10":
        return span[2:18]
    return link_of(span)[0]


def link_of(span: bytes) -> tuple[bytes, bytes, bytes]:
    """Trace id, span id and parent span id of an encoded Span; see trace_id_at for lengths and errors.

    Ids at the start of the span are taken as they stand. A span without parent there is parsed, because the field
    may follow later.
    """
    if span[:2] == b"\n\x10" and span[18:20] == b"\x12\x08" and span[28:30] == b'"\x08' and len(span) >= 38:
        return span[2:18], span[20:28], span[30:38]
    try:
        link: Any = schema.Link.FromString(span)
    except DecodeError as error:
        raise Rejected(f"not an OTLP span: {_cause(error)}") from None
    return link.trace_id, link.span_id, link.parent_span_id


def well_formed(link: tuple[bytes, bytes, bytes]) -> bool:
    """Whether the ids are as OTLP demands: 16 and 8 bytes, not all zero, and a parent of 8 bytes or none.

    An all-zero parent is let through: some SDKs write it for a root span.
    """
    trace_id, span_id, parent_id = link
    return (
        len(trace_id) == 16
        and len(span_id) == 8
        and len(parent_id) in {0, 8}
        and trace_id != _ZERO_TRACE
        and span_id != _ZERO_SPAN
    )


def _cause(error: DecodeError) -> str:
    return str(error).strip() or "malformed protobuf"
