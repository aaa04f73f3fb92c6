"""Decoded telemetry: what an adapter reads. Plain, frozen data without any protobuf.

Ids are lower-case hex text, times are integer nanoseconds since the epoch, as in OTLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from luckrate_otel.record import record

# A decoded attribute value: str, bool, int, float, bytes, None, or tuples and mappings of these.
Value = Any

NOTHING: Mapping[Any, Any] = MappingProxyType({})


def nothing() -> Mapping[Any, Any]:
    """The empty mapping, as a default of a frozen dataclass (a mapping proxy has no hash before Python 3.12)."""
    return NOTHING


class Status(StrEnum):
    """Span status, OTLP Status.StatusCode."""

    UNSET = "unset"
    OK = "ok"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class SpanEvent:
    name: str
    time_ns: int
    attributes: Mapping[str, Value] = field(default_factory=nothing)


@record(frozen=True, slots=True)
class Head:
    """Identity and place of a span: all that assembling needs to know of it.

    parent_id: "" for a span without parent.
    kind: OTLP Span.SpanKind number. service: resource `service.name`, "" if absent.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    kind: int = 0
    start_ns: int = 0
    end_ns: int = 0
    status: Status = Status.UNSET
    scope: str = ""
    service: str = ""


@record(frozen=True, slots=True)
class Span:
    """One decoded span, the input of an adapter."""

    head: Head
    attributes: Mapping[str, Value] = field(default_factory=nothing)
    events: tuple[SpanEvent, ...] = ()
    status_message: str = ""
    scope_version: str = ""
    resource: Mapping[str, Value] = field(default_factory=nothing)
    dropped_attributes: int = 0


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One decoded log record, the input of an adapter. trace_id and span_id may be ""."""

    trace_id: str
    span_id: str
    event_name: str = ""
    time_ns: int = 0
    attributes: Mapping[str, Value] = field(default_factory=nothing)
    body: Value = None
    scope: str = ""
    service: str = ""
    resource: Mapping[str, Value] = field(default_factory=nothing)
