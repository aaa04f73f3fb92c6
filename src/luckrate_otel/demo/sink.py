"""A tiny OTLP/gRPC backend that keeps what it is sent, so that the demo shows what any backend sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition
from time import monotonic

import grpc

from luckrate_otel.otlp.decode import decode_log, decode_span
from luckrate_otel.otlp.shallow import shallow
from luckrate_otel.telemetry import LogRecord, Span

_EXPORT = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    "metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
MAX_MESSAGE_BYTES = 64 * 2**20


class Sink(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in its stubs only
    """What arrived. All of OTLP's answers that mean "taken" are empty messages."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._spans: list[Span] = []
        self._logs: list[LogRecord] = []

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        for signal, method in _EXPORT.items():
            if handler_call_details.method == method:
                return grpc.unary_unary_rpc_method_handler(self._taker(signal))
        return None

    def _taker(self, signal: str) -> Callable[[bytes, grpc.ServicerContext], bytes]:
        def take(body: bytes, _: grpc.ServicerContext) -> bytes:
            spans: list[Span] = []
            logs: list[LogRecord] = []
            if signal != "metrics":
                for group in shallow(body):
                    if signal == "traces":
                        spans += [decode_span(wire, group.envelope) for wire in group.items]
                    else:
                        logs += [decode_log(wire, group.envelope) for wire in group.items]
            with self._changed:
                self._spans += spans
                self._logs += logs
                self._changed.notify_all()
            return b""

        return take

    def wait_for(self, done: Callable[[Sequence[Span], Sequence[LogRecord]], bool], seconds: float) -> bool:
        """Wait until done(spans, log records) holds; False if it did not within that time."""
        until = monotonic() + seconds
        with self._changed:
            while not done(self._spans, self._logs):
                if not self._changed.wait(until - monotonic()) and monotonic() >= until:
                    return False
            return True

    @property
    def spans(self) -> tuple[Span, ...]:
        with self._changed:
            return tuple(self._spans)

    @property
    def logs(self) -> tuple[LogRecord, ...]:
        with self._changed:
            return tuple(self._logs)


@contextmanager
def listening(sink: Sink) -> Iterator[str]:
    """Serve on a free loopback port while the block runs; gives its host:port."""
    server = grpc.server(
        ThreadPoolExecutor(max_workers=2),
        handlers=[sink],
        options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)],
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(1).wait()
