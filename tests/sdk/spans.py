"""Spans of the SDK made of captured ones, and spans as an exporter would send them."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags
from opentelemetry.trace import Status as SdkStatus

from luckrate_otel.otlp.decode import decode_span
from luckrate_otel.otlp.shallow import shallow
from luckrate_otel.telemetry import Span, Status

_STATUS = {Status.UNSET: StatusCode.UNSET, Status.OK: StatusCode.OK, Status.ERROR: StatusCode.ERROR}


def sdk_span(span: Span, resource: Resource | None = None) -> ReadableSpan:
    head = span.head

    def context(span_id: str) -> SpanContext:
        return SpanContext(int(head.trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(1))

    return ReadableSpan(
        name=head.name,
        context=context(head.span_id),
        parent=context(head.parent_id) if head.parent_id else None,
        resource=resource or Resource(dict(span.resource)),
        attributes=dict(span.attributes),
        events=[Event(e.name, dict(e.attributes), e.time_ns) for e in span.events],
        kind=SpanKind(max(0, head.kind - 1)),
        status=SdkStatus(_STATUS[head.status], span.status_message if head.status is Status.ERROR else None),
        start_time=head.start_ns,
        end_time=head.end_ns,
        instrumentation_scope=InstrumentationScope(head.scope, span.scope_version),
    )


def exported(spans: Iterable[ReadableSpan]) -> list[Span]:
    """What a receiver decodes when the SDK's own exporter sends these."""
    body = encode_spans(tuple(spans)).SerializeToString()
    return [decode_span(wire, group.envelope) for group in shallow(body) for wire in group.items]
