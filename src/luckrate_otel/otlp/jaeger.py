"""Jaeger's JSON (API and UI download: `{"data": [{traceID, spans, processes}]}`) → spans.

Jaeger's own translation from OTLP is taken back where it is known: tags that stood for span fields become those
fields again. Times are microseconds there, so the last three digits are lost.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

from luckrate_otel.errors import Rejected
from luckrate_otel.telemetry import Head, Span, SpanEvent, Status, Value

_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_HEX = re.compile(r"[0-9a-fA-F]+")

# Tags that Jaeger made from span fields.
_SPAN_KIND = "span.kind"
_STATUS_CODE = "otel.status_code"
_STATUS_MESSAGE = "otel.status_description"
_ERROR = "error"
_SCOPE_NAME = ("otel.scope.name", "otel.library.name")
_SCOPE_VERSION = ("otel.scope.version", "otel.library.version")
_TRANSLATED = frozenset(
    {_SPAN_KIND, _STATUS_CODE, _STATUS_MESSAGE, *_SCOPE_NAME, *_SCOPE_VERSION, "internal.span.format", "w3c.tracestate"}
)


def is_jaeger(document: Any) -> bool:
    """Whether parsed JSON has the outer form of a Jaeger trace download."""
    traces = document.get("data") if isinstance(document, Mapping) else None
    return (
        isinstance(traces, list)
        and bool(traces)
        and all(isinstance(trace, Mapping) and "spans" in trace and "traceID" in trace for trace in traces)
    )


def spans(document: Mapping[str, Any]) -> Iterator[Span | Rejected]:
    """The spans in their order; for one that cannot be read, a Rejected that names its place."""
    for trace_index, trace in enumerate(document["data"]):
        processes = trace.get("processes")
        found = trace["spans"]
        for index, span in enumerate(found if isinstance(found, list) else ()):
            try:
                yield _span(span, processes if isinstance(processes, Mapping) else {})
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                yield Rejected(f"data[{trace_index}].spans[{index}]: not a Jaeger span: {error!r}")


def _span(span: Mapping[str, Any], processes: Mapping[str, Any]) -> Span:
    process = span.get("process") or processes.get(span.get("processID", "")) or {}
    service = str(process.get("serviceName") or "")
    tags = _tags(span.get("tags"))
    start_ns = int(span["startTime"]) * 1000
    head = Head(
        trace_id=_id(span["traceID"], 32),
        span_id=_id(span["spanID"], 16),
        parent_id=_parent(span),
        name=str(span.get("operationName") or ""),
        kind=_KINDS.get(str(tags.get(_SPAN_KIND, "")), 0),
        start_ns=start_ns,
        end_ns=start_ns + int(span.get("duration") or 0) * 1000,
        status=_status(tags),
        scope=_first(tags, _SCOPE_NAME),
        service=service,
    )
    return Span(
        head,
        attributes={key: value for key, value in tags.items() if key not in _TRANSLATED and not _is_flag(key, value)},
        events=tuple(_event(log) for log in span.get("logs") or ()),
        status_message=str(tags.get(_STATUS_MESSAGE, "")),
        scope_version=_first(tags, _SCOPE_VERSION),
        resource={"service.name": service, **_tags(process.get("tags"))},
    )


def _id(text: str, digits: int) -> str:
    """Jaeger leaves leading zeros out."""
    if not isinstance(text, str) or not _HEX.fullmatch(text) or len(text) > digits or not int(text, 16):
        raise ValueError(f"bad id {text!r:.80}")
    return text.lower().zfill(digits)


def _parent(span: Mapping[str, Any]) -> str:
    for reference in span.get("references") or ():
        if reference.get("refType") == "CHILD_OF" and reference.get("traceID") == span["traceID"]:
            return _id(reference["spanID"], 16)
    legacy = span.get("parentSpanID")
    return _id(legacy, 16) if legacy and legacy.strip("0") else ""


def _status(tags: Mapping[str, Value]) -> Status:
    code = tags.get(_STATUS_CODE)
    if code == "ERROR" or (code is None and tags.get(_ERROR) is True):
        return Status.ERROR
    return Status.OK if code == "OK" else Status.UNSET


def _is_flag(key: str, value: Value) -> bool:
    """`error: true` is Jaeger's mark of a failed span, not an attribute of ours."""
    return key == _ERROR and value is True


def _first(tags: Mapping[str, Value], keys: tuple[str, ...]) -> str:
    return next((value for key in keys if isinstance(value := tags.get(key), str)), "")


def _event(log: Mapping[str, Any]) -> SpanEvent:
    fields = _tags(log.get("fields"))
    name = fields.pop("event", "")
    return SpanEvent(str(name), int(log["timestamp"]) * 1000, fields)


def _tags(tags: Any) -> dict[str, Value]:
    return {str(tag["key"]): _value(tag) for tag in tags or ()}


def _value(tag: Mapping[str, Any]) -> Value:
    value = tag.get("value")
    kind = str(tag.get("type", "")).lower()
    if kind in {"int64", "long"} and isinstance(value, str):
        return int(value)
    if kind in {"float64", "double"} and isinstance(value, (str, int)):
        return float(value)
    if kind == "bool" and isinstance(value, str):
        return value == "true"
    if kind == "binary" and isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            return value
    return value if isinstance(value, (str, bool, int, float)) or value is None else str(value)
