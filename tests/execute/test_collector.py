"""The port that takes both protocols, and what is kept of what comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from luckrate_otel.errors import Rejected
from luckrate_otel.execute.collector import Collector, collecting
from luckrate_otel.service.signals import Signal
from tests.next_hop import within

BODY = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0a" * 16, "spanId": "0b" * 8}]}]}]})
HEAD = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
REQUEST = f"{HEAD}{BODY}".encode()

Work = Callable[[Collector], Coroutine[Any, Any, None]]


def collect(work: Work) -> None:
    async def run() -> None:
        async with collecting({}) as collector:
            await work(collector)

    within(30, run)


async def connect(collector: Collector) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(collector.endpoint.rpartition(":")[2]))


@pytest.mark.parametrize("size", [1, 3, len(REQUEST)])
def test_http_in_pieces_of_any_size(size: int) -> None:
    async def work(collector: Collector) -> None:
        reader, writer = await connect(collector)
        for at in range(0, len(REQUEST), size):
            writer.write(REQUEST[at : at + size])
            await writer.drain()
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        assert [span.head.span_id for span in collector.spans] == ["0b" * 8]

    collect(work)


@pytest.mark.parametrize("first", [b"", b"P", b"PRI * HTTP/1", b"\x00" * 20])
def test_what_is_neither_costs_only_its_connection(first: bytes) -> None:
    async def work(collector: Collector) -> None:
        reader, writer = await connect(collector)
        writer.write(first)
        writer.write_eof()
        await reader.read()
        writer.close()
        reader, writer = await connect(collector)
        writer.write(REQUEST)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()

    collect(work)


def test_one_unreadable_span_costs_none_of_the_others() -> None:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(trace_id=b"a" * 16, span_id=b"b" * 8)
    good = request.SerializeToString()
    # The same request with a second span of one byte that is no protobuf.
    bad = b"\x0a\x05\x12\x03\x12\x01\xff"

    async def work(collector: Collector) -> None:
        await collector.accept(Signal.TRACES, good + bad)
        await collector.accept(Signal.METRICS, b"")
        assert (len(collector.spans), collector.unreadable) == (1, 1)
        with pytest.raises(Rejected):
            await collector.accept(Signal.TRACES, b"\xff")

    collect(work)
