"""Our own metrics, through the OpenTelemetry SDK: instruments made from the vocabulary, pushed and scraped.

Exemplars carry the trace id of the run (OTLP only: the SDK's Prometheus exporter drops exemplars).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.metrics.view import View
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from luckrate_otel.annotate import Point
from luckrate_otel.model import OutputSource, OutputState, PathState
from luckrate_otel.vocabulary import METRICS, SCOPE, Kind

# Label values come from telemetry (tool, agent, service names), so anybody can invent them: past this many of one
# label the rest share one. 100 keeps the widest counter well under the SDK's 2,000 attribute sets for usual specs.
MAX_LABEL_VALUES: Final = 100
OVERFLOW: Final = "_OTHER"

Observe = Callable[[], Iterable[tuple[float, Mapping[str, str]]]]


class Meter:
    """Records points of the vocabulary.

    observed: metric name → a function giving (value, attributes) pairs at collection time, for gauges and for counters
    that are kept elsewhere (the ledger, the queues).
    """

    def __init__(
        self, readers: Sequence[MetricReader], version: str, observed: Mapping[str, Observe] | None = None
    ) -> None:
        resource = Resource.create({"service.name": "luckrate-otel", "service.version": version})
        views = [View(instrument_name=m.name, aggregation_cardinality_limit=10_000) for m in METRICS]
        # Without them a point takes 2 µs less.
        self._exemplars = any(not isinstance(reader, PrometheusMetricReader) for reader in readers)
        only = None if self._exemplars else AlwaysOffExemplarFilter()
        self._provider = MeterProvider(readers, resource=resource, views=views, exemplar_filter=only)
        self._labels = _Labels()
        self._record: dict[str, Callable[..., None]] = {}
        meter = self._provider.get_meter(SCOPE, version)
        observed = observed or {}
        for metric in METRICS:
            callbacks = [_callback(observed[metric.name])] if metric.name in observed else []
            if metric.kind is Kind.GAUGE:
                meter.create_observable_gauge(metric.name, callbacks, metric.unit, metric.meaning)
            elif callbacks:
                meter.create_observable_counter(metric.name, callbacks, metric.unit, metric.meaning)
            elif metric.kind is Kind.COUNTER:
                self._record[metric.name] = meter.create_counter(metric.name, metric.unit, metric.meaning).add
            else:
                self._record[metric.name] = meter.create_histogram(
                    metric.name, metric.unit, metric.meaning, explicit_bucket_boundaries_advisory=metric.buckets
                ).record

    def start_at_zero(self, spec: str) -> None:
        """Create every combination of `luckrate.runs` for a spec, so that rates and alerts see 0 and not nothing."""
        for output in OutputState:
            for source in OutputSource:
                for path in PathState:
                    self.record(
                        Point(
                            "luckrate.runs",
                            0,
                            {
                                "luckrate.spec.name": spec,
                                "luckrate.output": str(output),
                                "luckrate.output.source": str(source),
                                "luckrate.path": str(path),
                            },
                        )
                    )

    def record(self, point: Point, trace_id: str = "", span_id: str = "") -> None:
        """Record one point; the ids, if given, become its exemplar."""
        attributes = {key: self._labels.cap(key, value) for key, value in point.attributes.items()}
        context = _context(trace_id, span_id) if self._exemplars and trace_id and span_id else None
        self._record[point.metric](point.value, attributes, context=context)

    def shutdown(self) -> None:
        """Collect and push a last time, then stop. Blocks for the readers' own deadline at most."""
        self._provider.shutdown()


@lru_cache(maxsize=1)  # the points of one run come one after the other
def _context(trace_id: str, span_id: str) -> Context:
    span = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(1))
    return set_span_in_context(NonRecordingSpan(span))


class _Labels:
    """Bounds the distinct values of each label over the life of the process."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def cap(self, key: str, value: str) -> str:
        seen = self._seen.setdefault(key, set())
        if value in seen:
            return value
        if len(seen) >= MAX_LABEL_VALUES:
            return OVERFLOW
        seen.add(value)
        return value


def _callback(observe: Observe) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def call(_: CallbackOptions) -> Iterable[Observation]:
        return [Observation(value, dict(attributes)) for value, attributes in observe()]

    return call
