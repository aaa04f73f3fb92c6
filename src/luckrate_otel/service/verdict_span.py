"""Verdicts as spans of our own, for taps: there the run's spans do not pass through here and cannot be annotated."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from luckrate_otel.annotate import Evaluated
from luckrate_otel.otlp.encode import encode_span, our_envelope, traces_request
from luckrate_otel.telemetry import Head, Span
from luckrate_otel.vocabulary import SCOPE

NAME: Final = "luckrate.verdict"

_INTERNAL: Final = 1  # OTLP Span.SpanKind
_OURS: Final = f"{SCOPE}."


def verdict_request(events: Iterable[Evaluated], at_ns: int) -> bytes:
    """An ExportTraceServiceRequest, one span an event. at_ns: for a run whose own times are not known."""
    return traces_request(
        (our_envelope({"service.name": e.service or "luckrate-otel"}, SCOPE), _span(e, at_ns)) for e in events
    )


def _span(event: Evaluated, at_ns: int) -> bytes:
    """It lasts no time, at the run's end, so that it does not lengthen the trace; its id is the verdict's, so that a
    second delivery is the same span. Only `luckrate.*`: a processor behind this one must not take it for an agent."""
    time_ns = event.ended_ns or at_ns
    head = Head(
        trace_id=event.trace_id,
        span_id=str(event.attributes["log.record.uid"])[:16],
        parent_id=event.span_id,
        name=NAME,
        kind=_INTERNAL,
        start_ns=time_ns,
        end_ns=time_ns,
    )
    told = {key: value for key, value in event.attributes.items() if key.startswith(_OURS)}
    return encode_span(Span(head, told, event.violations))
