"""Configuration → the parts of the service."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics.export import MetricExporter, MetricReader, PeriodicExportingMetricReader
from prometheus_client import CollectorRegistry

from luckrate_otel import assemble
from luckrate_otel.config import Auth, ClientTls, Clocks, Config, Destination, Limits, ServerTls
from luckrate_otel.otlp import split
from luckrate_otel.otlp.shallow import link_of, shallow
from luckrate_otel.plural import plural
from luckrate_otel.service.journal.file import JournalFile
from luckrate_otel.service.journal.journal import Journal
from luckrate_otel.service.journal.rows import Body, Change
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.receive.auth import Token, TokenFile
from luckrate_otel.service.send.batch import Item
from luckrate_otel.service.send.exporter_grpc import GrpcTransport
from luckrate_otel.service.send.exporter_http import HttpTransport
from luckrate_otel.service.send.queue import Queue
from luckrate_otel.service.send.replies import Transport
from luckrate_otel.service.send.sender import Sender
from luckrate_otel.service.signals import Signal, spans_or_records
from luckrate_otel.service.tls import Tls, channel_credentials
from luckrate_otel.spec import Spec

_log = logging.getLogger(__name__)

_NS = 10**9

# Dropped spans that one log line names; their number stands beside.
_NAMED = 8


def journal(config: Config) -> Journal | None:
    """Open the journal, None if there is to be none. Raises ConfigError. Call it inside the running event loop."""
    told = config.journal
    if told is None:
        return None
    assert told.path is not None
    return Journal(JournalFile(told.path, full_sync=told.fsync == "full"), told.max_bytes)


def senders(config: Config, journal: Journal | None) -> tuple[Sender, ...]:
    """One per destination. Call it inside the running event loop."""
    return tuple(
        Sender(
            name,
            Queue(destination.queue_bytes, store=_Delivered(journal, name) if journal else None),
            _transport(destination),
            signals=[Signal(signal) for signal in destination.signals],
            split=halves,
            identify=identify,
        )
        for name, destination in config.destinations.items()
    )


def restore(bodies: Sequence[Body], senders: Sequence[Sender], journal: Journal, ledger: Ledger) -> None:
    """Give back to the queues what waited in them when an earlier process ended."""
    for sender in senders:
        mine = [body for body in bodies if sender.name in body.destinations]
        sender.restore(Item(body.number, body.signal, body.wire, body.count, 0) for body in mine)
        sender.start()
    for name in {name for body in bodies for name in body.destinations} - {sender.name for sender in senders}:
        _let_go(name, [body for body in bodies if name in body.destinations], journal, ledger)
    journal.note(Change(delivered=[(body.number, "") for body in bodies if not body.destinations]))


def _let_go(name: str, bodies: Sequence[Body], journal: Journal, ledger: Ledger) -> None:
    """What waited for a destination that is not configured any more is wanted by nobody."""
    for body in bodies:
        ledger.replayed[body.signal] += body.count
        ledger.handed_over[body.signal] += body.count
        ledger.unwanted[body.signal] += body.count
    journal.delivered(name, [body.number for body in bodies])
    _log.warning(
        "destination %s is not configured any more; dropped: %s for it (%s)",
        name, plural(len(bodies), "request"), spans_or_records(sum(body.count for body in bodies)),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Delivered:
    """The journal, as the queue of one destination sees it."""

    journal: Journal
    destination: str

    def delete(self, numbers: Sequence[int]) -> None:
        self.journal.delivered(self.destination, numbers)


def _transport(destination: Destination) -> Transport:
    headers = {name: secret.reveal() for name, secret in destination.headers.items()}
    gzip, tls, timeout = destination.compression == "gzip", client_tls(destination.tls), destination.timeout
    if destination.protocol == "grpc":
        return GrpcTransport(destination.endpoint, headers=headers, gzip=gzip, tls=tls, timeout=timeout)
    return HttpTransport(
        destination.endpoint, headers=headers, gzip=gzip, tls=tls, timeout=timeout, exact=destination.exact
    )


def halves(signal: Signal, body: bytes) -> tuple[tuple[bytes, int], tuple[bytes, int]] | None:
    """A refused request as two, each with its count; None when it is down to one item."""
    parts = split.halve(body)
    if parts is None:
        return None
    left, right = parts
    return (left, split.count(signal, left)), (right, split.count(signal, right))


def identify(signal: Signal, body: bytes) -> str:
    """The ids in a dropped traces request, for the log."""
    if signal is not Signal.TRACES:
        return plural(len(body), "byte")
    links = [link_of(wire) for group in shallow(body) for wire in group.items[:_NAMED]]
    return ", ".join(f"{trace_id.hex()}/{span_id.hex()}" for trace_id, span_id, _ in links[:_NAMED])


def client_tls(tls: ClientTls) -> Tls | None:
    return Tls(_text(tls.cert), _text(tls.key), _text(tls.ca)) if tls.ca or tls.cert else None


def server_tls(tls: ServerTls) -> Tls | None:
    return Tls(_text(tls.cert), _text(tls.key), _text(tls.client_ca)) if tls.cert else None


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def token(auth: Auth) -> Token:
    """The bearer token senders must show, None when none is asked for. OSError if its file cannot be read."""
    if auth.bearer is not None:
        return auth.bearer.reveal()
    if auth.bearer_file is not None:
        try:
            return TokenFile(auth.bearer_file)
        except ValueError as error:
            raise OSError(str(error)) from None
    return None


def clocks(config: Clocks, specs: Sequence[Spec] = ()) -> assemble.Clocks:
    """A run is kept for correction as long as its spec waits for an evaluation, also where `late_window` is shorter."""
    default = assemble.AgentClocks(_ns(config.settle), _ns(config.release_after), _ns(config.verdict_after))
    agents = {
        name: assemble.AgentClocks(
            _ns(own.settle or config.settle),
            _ns(own.release_after or config.release_after),
            _ns(own.verdict_after or config.verdict_after),
        )
        for name, own in config.agents.items()
    }
    waits = (spec.output.wait + 2 * config.settle for spec in specs if spec.output.wait)
    return assemble.Clocks(default, agents, _ns(max(config.late_window, *waits, 0)))


def limits(config: Limits) -> assemble.Limits:
    return assemble.Limits(config.held_bytes, config.late_bytes, config.link_bytes)


def _ns(seconds: float) -> int:
    return int(seconds * _NS)


def readers(config: Config, registry: CollectorRegistry) -> list[MetricReader]:
    """Where our own metrics go: the scrape page, and the destination that the configuration names."""
    found: list[MetricReader] = []
    if config.metrics.prometheus is not None:
        found.append(PrometheusMetricReader(registry=registry))
    if config.metrics.otlp != "none":
        destination = config.destinations[config.metrics.otlp]
        exporter = _metric_exporter(destination)
        found.append(PeriodicExportingMetricReader(exporter, export_interval_millis=config.metrics.interval * 1000))
    return found


def _metric_exporter(destination: Destination) -> MetricExporter:
    headers = {name.lower(): secret.reveal() for name, secret in destination.headers.items()}
    tls, gzip = destination.tls, destination.compression == "gzip"
    if destination.protocol == "grpc":
        secure = destination.endpoint.startswith("https:")
        return GrpcMetricExporter(
            destination.endpoint,
            insecure=not secure,
            credentials=channel_credentials(client_tls(tls)) if secure else None,
            headers=tuple(headers.items()),
            timeout=destination.timeout,
            compression=grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression,
        )
    return HttpMetricExporter(
        destination.url("metrics"),
        certificate_file=_text(tls.ca),
        client_certificate_file=_text(tls.cert),
        client_key_file=_text(tls.key),
        headers=headers,
        timeout=destination.timeout,
        compression=Compression.Gzip if gzip else Compression.NoCompression,
    )
