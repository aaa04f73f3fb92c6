from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1 import metrics_pb2 as metrics

from luckrate_otel.errors import Rejected
from luckrate_otel.otlp.encode import our_envelope, request
from luckrate_otel.otlp.shallow import Envelope, Group, shallow
from luckrate_otel.otlp.split import Split, count, halve, join, split
from tests.otlp.otlp_strategies import requests

SHOP, BANK = our_envelope({"service.name": "shop"}, "lib"), our_envelope({"service.name": "bank"}, "lib")


def _flat(*bodies: bytes) -> list[tuple[Envelope, bytes]]:
    return [(group.envelope, item) for body in bodies for group in shallow(body) for item in group.items]


def _by_envelope(flat: list[tuple[Envelope, bytes]]) -> list[tuple[Envelope, bytes]]:
    return sorted(flat, key=lambda pair: (pair[0].resource_wire, pair[0].scope_wire))


@given(requests(), st.integers(1, 600))
def test_split_loses_and_doubles_nothing_and_keeps_order(
    generated: tuple[bytes, list[tuple[str, str, bytes]]], max_bytes: int
) -> None:
    body, _ = generated
    cut = split(body, max_bytes)
    assert all(len(part) <= max_bytes for part in cut.bodies)
    assert all(len(part) > max_bytes and len(_flat(part)) == 1 for part in cut.too_large)
    if not cut.too_large:
        assert _by_envelope(_flat(*cut.bodies)) == _by_envelope(_flat(body))
    else:
        key = lambda pair: (pair[0].resource_wire, pair[0].scope_wire, pair[1])  # noqa: E731
        assert sorted(_flat(*cut.bodies, *cut.too_large), key=key) == sorted(_flat(body), key=key)


@given(requests(), requests())
def test_join_is_both(
    first: tuple[bytes, list[tuple[str, str, bytes]]], second: tuple[bytes, list[tuple[str, str, bytes]]]
) -> None:
    joined = join((first[0], second[0]))
    assert [item for _, item in _flat(joined)] == [told[2] for told in first[1] + second[1]]


@given(requests())
def test_halves_are_the_whole(generated: tuple[bytes, list[tuple[str, str, bytes]]]) -> None:
    body, told = generated
    halves = halve(body)
    if halves is None:
        assert len(told) < 2
    else:
        assert [count("traces", half) for half in halves] == [len(told) // 2, len(told) - len(told) // 2]
        assert _by_envelope(_flat(*halves)) == _by_envelope(_flat(body))


def test_an_item_at_the_limit_is_sent_and_one_byte_beyond_it_is_told() -> None:
    body = request([Group(SHOP, [b"a" * 50, b"b" * 51]), Group(BANK, [b"c" * 50])])
    limit = len(request([Group(SHOP, [b"a" * 50])]))
    assert split(body, limit) == Split(
        bodies=(request([Group(SHOP, [b"a" * 50])]), request([Group(BANK, [b"c" * 50])])),
        too_large=(request([Group(SHOP, [b"b" * 51])]),),
    )
    assert split(body, len(body)) == Split((body,))
    assert split(body, limit + 80).bodies == (
        request([Group(SHOP, [b"a" * 50, b"b" * 51])]),
        request([Group(BANK, [b"c" * 50])]),
    )


def _points(number: int) -> list[metrics.NumberDataPoint]:
    return [metrics.NumberDataPoint(as_int=index) for index in range(number)]


METRICS = ExportMetricsServiceRequest(
    resource_metrics=[
        metrics.ResourceMetrics(
            scope_metrics=[
                metrics.ScopeMetrics(
                    metrics=[
                        metrics.Metric(name="gauge", gauge=metrics.Gauge(data_points=_points(1))),
                        metrics.Metric(name="sum", sum=metrics.Sum(data_points=_points(2))),
                        metrics.Metric(
                            name="histogram",
                            histogram=metrics.Histogram(data_points=[metrics.HistogramDataPoint()] * 4),
                        ),
                        metrics.Metric(
                            name="exponential",
                            exponential_histogram=metrics.ExponentialHistogram(
                                data_points=[metrics.ExponentialHistogramDataPoint()] * 8
                            ),
                        ),
                        metrics.Metric(
                            name="summary", summary=metrics.Summary(data_points=[metrics.SummaryDataPoint()] * 16)
                        ),
                        metrics.Metric(name="empty"),
                    ]
                )
            ]
        )
    ]
).SerializeToString()


@pytest.mark.parametrize(
    ("signal", "body", "number"),
    [
        ("traces", b"", 0),
        ("traces", request([Group(SHOP, [b"a", b"b"]), Group(BANK, [b"c"])]), 3),
        ("logs", request([Group(SHOP, [b"a"])]), 1),
        ("metrics", METRICS, 31),
    ],
)
def test_count(signal: str, body: bytes, number: int) -> None:
    assert count(signal, body) == number


def test_metrics_are_split_between_metrics() -> None:
    cut = split(METRICS, 60)
    assert cut.too_large == ()
    parts = [ExportMetricsServiceRequest.FromString(body) for body in cut.bodies]
    assert [[m.name for m in part.resource_metrics[0].scope_metrics[0].metrics] for part in parts] == [
        ["gauge"],
        ["sum"],
        ["histogram"],
        ["exponential"],
        ["summary"],
        ["empty"],
    ]


@pytest.mark.parametrize("signal", ["traces", "metrics"])
def test_what_is_no_request_is_rejected(signal: str) -> None:
    with pytest.raises(Rejected, match="not an OTLP"):
        count(signal, b"\xff")
    with pytest.raises(Rejected, match="not an OTLP"):
        split(b"\xff", 0)


def test_a_damaged_metric_is_rejected_when_counted() -> None:
    with pytest.raises(Rejected, match="not an OTLP metrics request"):
        count("metrics", request([Group(SHOP, [b"\xff"])]))
