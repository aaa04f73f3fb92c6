"""Real OpenTelemetry SDK exporters as senders, over both wires, plain and gzip."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from luckrate_otel.errors import Busy
from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.signals import Signal
from tests.next_hop import within
from tests.service.test_contract import Intake


def spans(count: int = 3) -> tuple[ReadableSpan, ...]:
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("test")
    for index in range(count):
        tracer.start_span(f"span {index}").end()
    provider.shutdown()
    return memory.get_finished_spans()


def names(body: bytes) -> list[str]:
    request = ExportTraceServiceRequest.FromString(body)
    return [span.name for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]


Make = Callable[[int, dict[str, str]], Any]

GRPC: dict[str, Make] = {
    "plain": lambda port, headers: GrpcSpans(f"http://127.0.0.1:{port}", headers=headers, insecure=True),
    "gzip": lambda port, headers: GrpcSpans(
        f"http://127.0.0.1:{port}", headers=headers, insecure=True, compression=grpc.Compression.Gzip
    ),
}
HTTP: dict[str, Make] = {
    "plain": lambda port, headers: HttpSpans(f"http://127.0.0.1:{port}/v1/traces", headers=headers),
    "gzip": lambda port, headers: HttpSpans(
        f"http://127.0.0.1:{port}/v1/traces", headers=headers, compression=Compression.Gzip
    ),
}


class Hesitant(Intake):
    """Busy once, then takes all."""

    def __init__(self) -> None:
        super().__init__(Accepted())
        self.calls = 0

    async def accept(self, signal: Signal, body: bytes) -> Accepted:
        self.calls += 1
        if self.calls == 1:
            raise Busy("queue is full", 0.05)
        return await super().accept(signal, body)


@pytest.mark.parametrize("compression", ["plain", "gzip"])
def test_spans_over_grpc(compression: str) -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        receiver = GrpcReceiver(intake.accept, token="t0ken")
        port = await receiver.start("127.0.0.1:0")
        exporter = GRPC[compression](port, {"authorization": "Bearer t0ken"})
        assert await asyncio.to_thread(exporter.export, spans()) is SpanExportResult.SUCCESS
        await asyncio.to_thread(exporter.shutdown)
        await receiver.stop(0)
        assert [(signal, names(body)) for signal, body in intake.taken] == [
            (Signal.TRACES, ["span 0", "span 1", "span 2"])
        ]

    within(20, scenario)


@pytest.mark.parametrize("compression", ["plain", "gzip"])
def test_spans_over_http(compression: str) -> None:
    async def scenario() -> None:
        intake = Intake(Accepted())
        receiver = HttpReceiver(intake.accept, token="t0ken")
        port = await receiver.start("127.0.0.1", 0)
        exporter = HTTP[compression](port, {"Authorization": "Bearer t0ken"})
        assert await asyncio.to_thread(exporter.export, spans()) is SpanExportResult.SUCCESS
        await asyncio.to_thread(exporter.shutdown)
        await receiver.stop()
        assert [(signal, names(body)) for signal, body in intake.taken] == [
            (Signal.TRACES, ["span 0", "span 1", "span 2"])
        ]

    within(20, scenario)


def test_an_sdk_told_to_come_back_does_and_loses_nothing() -> None:
    async def scenario() -> None:
        over_grpc, over_http = Hesitant(), Hesitant()
        grpc_receiver = GrpcReceiver(over_grpc.accept)
        http_receiver = HttpReceiver(over_http.accept)
        for exporter in (
            GRPC["plain"](await grpc_receiver.start("127.0.0.1:0"), {}),
            HTTP["plain"](await http_receiver.start("127.0.0.1", 0), {}),
        ):
            assert await asyncio.to_thread(exporter.export, spans()) is SpanExportResult.SUCCESS
            await asyncio.to_thread(exporter.shutdown)
        await grpc_receiver.stop(0)
        await http_receiver.stop()
        assert (over_grpc.calls, over_http.calls) == (2, 2)
        assert names(over_grpc.taken[0][1]) == names(over_http.taken[0][1]) == ["span 0", "span 1", "span 2"]

    within(20, scenario)
