"""Exemplars of our own metrics: the run's trace, for readers that show it."""

from __future__ import annotations

from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from luckrate_otel.annotate import Point
from luckrate_otel.service.show.meter import Meter


def test_an_exemplar_names_the_run() -> None:
    reader = InMemoryMetricReader()
    meter = Meter([reader], "0")
    meter.record(Point("luckrate.run.steps", 3, {"luckrate.spec.name": "s"}), "0a" * 16, "0b" * 8)
    meter.record(Point("luckrate.run.steps", 4, {"luckrate.spec.name": "s"}))
    data = reader.get_metrics_data()
    assert data is not None
    points = [
        point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "luckrate.run.steps"
        for point in metric.data.data_points
    ]
    shown = [(e.value, e.trace_id, e.span_id) for point in points for e in point.exemplars or ()]
    assert shown == [(3, int("0a" * 16, 16), int("0b" * 8, 16))]
    meter.shutdown()
