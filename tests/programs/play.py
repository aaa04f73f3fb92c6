"""Captured traffic of real agents, sent as an application would send it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import grpc

from luckrate_otel.demo.captured import Play, read_capture, renew
from luckrate_otel.otlp.json import to_protobuf

_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

# Per scenario, what the order-support agent really did, and what collector-config/refunds.yaml says of it.
VERDICTS: Mapping[str, str] = {
    "s1": "pass",  # asks a human, as the policy says
    "s2": "pass",  # refunds after looking at the policy: this spec only asks that it looked
    "s3": "lucky",  # refunds an order id that nobody mentioned
    "s4": "lucky",  # does what a web page told it to
    "s6": "lucky",  # looks the same order up twice
}


@dataclass(frozen=True)
class Sent:
    plays: tuple[Play, ...]

    @property
    def span_count(self) -> int:
        return sum(
            len(scope["spans"])
            for play in self.plays
            for request in play.requests
            for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"]
        )

    def scenario_of(self, trace_id: str) -> str | None:
        return next((play.scenario for play in self.plays if trace_id in play.trace_ids), None)


def play(address: str, framework: str, scenarios: Iterable[str], times: int = 1) -> Sent:
    """Send each scenario to an OTLP/gRPC address, under new trace ids; returns what was sent once all is taken."""
    plays = tuple(
        renew(framework, scenario, read_capture(framework, scenario), os.urandom(16), time.time_ns())
        for _ in range(times)
        for scenario in scenarios
    )
    deliver(address, *plays)
    return Sent(plays)


def deliver(address: str, *plays: Play) -> None:
    with grpc.insecure_channel(address) as channel:
        export = channel.unary_unary(_EXPORT, request_serializer=None, response_deserializer=None)
        for one in plays:
            for request in one.requests:
                export(to_protobuf("traces", request), timeout=30, wait_for_ready=True)
