"""The processor: start, run, stop."""

from __future__ import annotations

import asyncio
import logging
import signal as signals
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry

from luckrate_otel.assemble import Assembler, Limits
from luckrate_otel.config import Address, Config, find_warnings
from luckrate_otel.conversation import Conversations
from luckrate_otel.errors import ConfigError, Problem
from luckrate_otel.otlp.json import traces_from_json
from luckrate_otel.service import build
from luckrate_otel.service.admin import admin_app, scrape_app
from luckrate_otel.service.intake import Intake
from luckrate_otel.service.judge import Judge
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.meter import Meter
from luckrate_otel.service.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receiver_http import HttpReceiver
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.restore import restore
from luckrate_otel.service.signals import Signal
from luckrate_otel.spec import Spec
from luckrate_otel.specfile import load_specs

_log = logging.getLogger("luckrate_otel")

# How often deadlines are looked at, in seconds: finer than any sensible clock of a run, and free when nothing is due.
TICK: Final = 0.2

# Seconds for the queues to empty at shutdown. Kubernetes kills after 30.
DRAIN: Final = 15.0

# What is left when a sender hangs up in the middle of a request.
GRACE: Final = 2.0


class Server:
    """One processor. start() binds and returns; stop() judges all that is open and empties the queues."""

    def __init__(self, config: Config, specs: Sequence[Spec]) -> None:
        self._config = config
        self._specs = tuple(specs) or (Spec.from_mapping({"name": "default"}),)
        self.ledger = Ledger()
        self.addresses: dict[str, str] = {}
        self._started_ns = time.time_ns()
        self._stopping = asyncio.Event()
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        """Raises ConfigError when an address, certificate or token file cannot be used; nothing is left running."""
        try:
            self._build()
            await self._listen()
        except OSError as error:
            await self._close_listeners()
            raise ConfigError([Problem("", str(error))], self._config.source) from error
        self._ticking = asyncio.create_task(self._tick())

    def _build(self) -> None:
        config = self._config
        repeats = Repeats(time.monotonic_ns)
        self._senders = build.senders(config)
        limits = Limits(held_bytes=config.limits.held_bytes)
        self._assembler = Assembler(build.clocks(config.clocks), limits, restore=restore)
        conversations = Conversations(
            max_bytes=config.limits.conversation_bytes, max_age_ns=int(config.limits.conversation_age * 10**9)
        )
        self._judge = Judge(self._specs, conversations, repeats)
        self._registry = CollectorRegistry()
        self._meter = Meter(build.readers(config, self._registry), version("luckrate-otel"), self._observed())
        for spec in self._specs:
            self._meter.start_at_zero(spec.name)
        self._intake = Intake(
            self._senders,
            self._assembler,
            self._judge,
            self._meter,
            self.ledger,
            clock=time.monotonic_ns,
            wall=time.time_ns,
            tap=config.mode == "tap",
        )

    async def _listen(self) -> None:
        receivers = self._config.receivers
        accept = self._intake.accept
        limit = receivers.max_message_bytes
        if receivers.grpc.endpoint is not None:
            grpc = GrpcReceiver(accept, token=build.token(receivers.grpc.auth), max_message_bytes=limit)
            address = receivers.grpc.endpoint
            port = await grpc.start(str(address), build.server_tls(receivers.grpc.tls))
            self._grpc: GrpcReceiver | None = grpc
            self._note("grpc", address, port)
        if receivers.http.endpoint is not None:
            http = HttpReceiver(
                accept, traces_from_json, token=build.token(receivers.http.auth), max_message_bytes=limit
            )
            address = receivers.http.endpoint
            port = await http.start(address.host, address.port, build.server_tls(receivers.http.tls))
            self._http: HttpReceiver | None = http
            self._note("http", address, port)
        admin = self._config.admin
        if admin.endpoint is not None:
            await self._serve_page("admin", admin.endpoint, admin_app(self.status, self.ready, build.token(admin.auth)))
        if self._config.metrics.prometheus is not None:
            await self._serve_page("prometheus", self._config.metrics.prometheus, scrape_app(self._registry))
