"""Our log events as OTLP requests."""

from __future__ import annotations

from collections.abc import Iterable

from luckrate_otel.annotate import Evaluated
from luckrate_otel.otlp.encode import LogEvent, logs_request, our_envelope
from luckrate_otel.vocabulary import EVALUATION_EVENT, SCOPE


def event_request(events: Iterable[Evaluated], at_ns: int) -> bytes:
    """An ExportLogsServiceRequest. Each event is shown under the service whose agent it is about, as backends file
    telemetry by service. at_ns: when the runs closed."""
    by_service: dict[str, list[LogEvent]] = {}
    for event in events:
        record = LogEvent(event.trace_id, event.span_id, EVALUATION_EVENT, at_ns, event.severity, event.attributes)
        by_service.setdefault(event.service, []).append(record)
    return b"".join(
        logs_request(our_envelope({"service.name": service or "luckrate-otel"}, SCOPE), records)
        for service, records in by_service.items()
    )
