"""What the command sends: received on free ports, kept for grading, passed on to where it would have gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from luckrate_otel.config import ClientTls, Config, Destination
from luckrate_otel.config.environment import read_environment
from luckrate_otel.errors import ConfigError, Problem, Rejected
from luckrate_otel.execute.either import Either
from luckrate_otel.otlp import split
from luckrate_otel.otlp.decode import decode_log, decode_span
from luckrate_otel.otlp.shallow import Envelope, shallow
from luckrate_otel.service import build, opening
from luckrate_otel.service.receive.answers import Accepted
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.send.sender import Sender
from luckrate_otel.service.signals import Signal, spans_or_records
from luckrate_otel.telemetry import LogRecord, Span

_log = logging.getLogger(__name__)

_READ = frozenset({Signal.TRACES, Signal.LOGS})

# Seconds for what is passed on to leave, when the command has ended. The report waits for it.
DRAIN = 10.0
GRACE = 1.0


class Collector:
    """spans, logs: everything that came. unreadable: items that could not be read; they are passed on all the same.

    Use collecting() to make one.
    """

    def __init__(self, senders: Sequence[Sender]) -> None:
        self.spans: list[Span] = []
        self.logs: list[LogRecord] = []
        self.unreadable = 0
        self.endpoint = ""
        self._senders = tuple(senders)
        self._came = asyncio.Event()

    async def accept(self, signal: Signal, body: bytes) -> Accepted:
        """Take a request, or raise as receivers expect it, having taken nothing."""
        groups = shallow(body) if signal in _READ else ()
        self._pass_on(signal, body)
        for group in groups:
            for wire in group.items:
                self._keep(signal, wire, group.envelope)
        self._came.set()
        return Accepted()

    def _keep(self, signal: Signal, wire: bytes, envelope: Envelope) -> None:
        try:
            if signal is Signal.TRACES:
                self.spans.append(decode_span(wire, envelope))
            else:
                self.logs.append(decode_log(wire, envelope))
        except Rejected:  # one of them must not cost the others
            self.unreadable += 1

    def _pass_on(self, signal: Signal, body: bytes) -> None:
        wanted = [sender for sender in self._senders if signal in sender.signals]
        for sender in wanted:
            sender.check(len(body))
        for sender in wanted:
            sender.put(signal, body, split.count(signal, body))

    async def quiet(self, seconds: float) -> None:
        """Return when nothing has come for so long."""
        while True:
            self._came.clear()
            try:
                await asyncio.wait_for(self._came.wait(), seconds)
            except TimeoutError:
                return

    async def something(self) -> None:
        """Return when anything has come at all."""
        while not (self.spans or self.logs):
            self._came.clear()
            await self._came.wait()

    async def drain(self) -> None:
        for sender in self._senders:
            lost = sum(item.count for item in await sender.drain(DRAIN))
            if lost:
                _log.warning("%s did not reach %s", spans_or_records(lost), sender.name)


@asynccontextmanager
async def collecting(environ: Mapping[str, str]) -> AsyncIterator[Collector]:
    """A collector that listens while the block runs.

    environ: names the endpoint that telemetry is passed on to, if any; ConfigError if that cannot be understood.
    """
    destinations, problems = read_environment(environ)
    if problems:
        raise ConfigError(problems, "environment")
    usable = {name: _with_tls_tried(destination) for name, destination in destinations.items()}
    collector = Collector(build.senders(replace(Config(), destinations=usable), None))
    async with AsyncExitStack() as stack:
        grpc = GrpcReceiver(collector.accept)
        stack.push_async_callback(grpc.stop, GRACE)
        http = HttpReceiver(collector.accept)
        stack.push_async_callback(http.stop)
        either = Either(await grpc.start("127.0.0.1:0"), await http.start("127.0.0.1", 0))
        stack.push_async_callback(either.stop)
        collector.endpoint = f"http://127.0.0.1:{await either.start()}"
        yield collector
        await collector.drain()


def _with_tls_tried(destination: Destination) -> Destination:
    """Certificates are for secure connections only, says OpenTelemetry. Raises ConfigError for one that is no use."""
    if not destination.endpoint.startswith("https://"):
        return replace(destination, tls=ClientTls())
    try:
        opening.client_tls("", destination.tls)
    except ConfigError as error:
        told = [Problem(f"certificates for {destination.endpoint}", problem.message) for problem in error.problems]
        raise ConfigError(told, "environment") from error
    return destination
