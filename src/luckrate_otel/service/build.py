"""Configuration → the parts of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcMetricExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from prometheus_client import CollectorRegistry

from luckrate_otel import assemble
from luckrate_otel.config import Auth, ClientTls, Clocks, Config, Destination, ServerTls
from luckrate_otel.otlp import split
from luckrate_otel.otlp.shallow import link_of, shallow
from luckrate_otel.service.exporter import Transport
from luckrate_otel.service.exporter_grpc import GrpcTransport
from luckrate_otel.service.exporter_http import HttpTransport
from luckrate_otel.service.queue import Queue
from luckrate_otel.service.sender import Sender
from luckrate_otel.service.signals import Signal
from luckrate_otel.service.tls import Tls

_NS = 10**9

# Dropped spans that one log line names; their number stands beside.
_NAMED = 8


def senders(config: Config) -> tuple[Sender, ...]:
    """One per destination. Call it inside the running event loop."""
    return tuple(
        Sender(
            name,
            Queue(destination.queue_bytes),
            _transport(destination),
            signals=[Signal(signal) for signal in destination.signals],
            split=halves,
            identify=identify,
        )
        for name, destination in config.destinations.items()
    )


def _transport(destination: Destination) -> Transport:
    make: Callable[..., Transport] = GrpcTransport if destination.protocol == "grpc" else HttpTransport
    return make(
        destination.endpoint,
        headers={name: str(secret.reveal()) for name, secret in destination.headers.items()},
        gzip=destination.compression == "gzip",
        tls=client_tls(destination.tls),
        timeout=destination.timeout,
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
        return f"{len(body)} bytes"
    links = [link_of(wire) for group in shallow(body) for wire in group.items[:_NAMED]]
    return ", ".join(f"{trace_id.hex()}/{span_id.hex()}" for trace_id, span_id, _ in links[:_NAMED])


def client_tls(tls: ClientTls) -> Tls | None:
    return Tls(_text(tls.cert), _text(tls.key), _text(tls.ca)) if tls.ca or tls.cert else None


def server_tls(tls: ServerTls) -> Tls | None:
    return Tls(_text(tls.cert), _text(tls.key), _text(tls.client_ca)) if tls.cert else None


def _text(path: Path | None) -> str | None:
    return str(path) if path else None


def token(auth: Auth) -> str | None:
    """The bearer token senders must show, None when none is asked for. OSError if its file cannot be read."""
    if auth.bearer is not None:
        return auth.bearer.reveal()
    if auth.bearer_file is not None:
        return Path(auth.bearer_file).read_text().partition("\n")[0].strip()
    return None


def clocks(config: Clocks) -> assemble.Clocks:
    default = assemble.AgentClocks(_ns(config.settle), _ns(config.release_after), _ns(config.verdict_after))
    agents = {
        name: assemble.AgentClocks(
            _ns(own.settle or config.settle),
            _ns(own.release_after or config.release_after),
            _ns(own.verdict_after or config.verdict_after),
        )
        for name, own in config.agents.items()
    }
    return assemble.Clocks(default, agents)


def _ns(seconds: float) -> int:
    return int(seconds * _NS)


def readers(config: Config, registry: CollectorRegistry) -> list[MetricReader]:
    """Where our own metrics go: the scrape page, and the destination that the configuration names."""
    found: list[MetricReader] = []
    if config.metrics.prometheus is not None:
        found.append(PrometheusMetricReader(registry=registry))
    if config.metrics.otlp != "none":
        destination = config.destinations[config.metrics.otlp]
        headers = {name.lower(): secret.reveal() for name, secret in destination.headers.items()}
        exporter = (
            GrpcMetricExporter(
                destination.endpoint, insecure=destination.endpoint.startswith("http:"), headers=tuple(headers.items())
            )
            if destination.protocol == "grpc"
            else HttpMetricExporter(destination.url("metrics"), headers=headers)
        )
        found.append(PeriodicExportingMetricReader(exporter, export_interval_millis=config.metrics.interval * 1000))
    return found
