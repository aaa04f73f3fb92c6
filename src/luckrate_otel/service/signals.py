"""The four OTLP signals, and where each goes in and out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from luckrate_otel.plural import plural


class Signal(StrEnum):
    TRACES = "traces"
    METRICS = "metrics"
    LOGS = "logs"
    PROFILES = "profiles"


@dataclass(frozen=True, slots=True)
class Route:
    """service: of gRPC, whose only method is Export. path: of OTLP/HTTP. rejected: the count's JSON name.

    joins: whether two requests concatenate into one.
    """

    service: str
    path: str
    rejected: str
    joins: bool = True

    @property
    def method(self) -> str:
        """Full gRPC method name."""
        return f"/{self.service}/Export"


_COLLECTOR = "opentelemetry.proto.collector"

ROUTES: Mapping[Signal, Route] = MappingProxyType(
    {
        Signal.TRACES: Route(f"{_COLLECTOR}.trace.v1.TraceService", "/v1/traces", "rejectedSpans"),
        Signal.METRICS: Route(f"{_COLLECTOR}.metrics.v1.MetricsService", "/v1/metrics", "rejectedDataPoints"),
        Signal.LOGS: Route(f"{_COLLECTOR}.logs.v1.LogsService", "/v1/logs", "rejectedLogRecords"),
        # Still in development in OTLP 1.x, so it only passes through. Its requests share one table of strings and
        # stacks that all else points into by index; merged tables would point elsewhere.
        Signal.PROFILES: Route(
            f"{_COLLECTOR}.profiles.v1development.ProfilesService",
            "/v1development/profiles",
            "rejectedProfiles",
            joins=False,
        ),
    }
)


def spans_or_records(count: int) -> str:
    """What requests hold, counted, where they may be of any signal."""
    return plural(count, "span or record", "spans or records")
