"""The processor: start, run, stop."""

from __future__ import annotations

import asyncio
import logging
import signal as signals
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from aiohttp import web
from prometheus_client import CollectorRegistry

from luckrate_otel.annotate import Point
from luckrate_otel.assemble import Assembler
from luckrate_otel.config import Address, Config, find_warnings
from luckrate_otel.conversation import Conversations
from luckrate_otel.errors import Busy, ConfigError, Problem
from luckrate_otel.service import build, logs, opening
from luckrate_otel.service.intake import Intake
from luckrate_otel.service.journal.journal import Journal
from luckrate_otel.service.journal.keeping import Keeping
from luckrate_otel.service.judge import Judge
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.memory import share_the_interpreter, spare_the_collector, tune_the_allocator
from luckrate_otel.service.reading import Reader
from luckrate_otel.service.receive.receiver_grpc import GrpcReceiver
from luckrate_otel.service.receive.receiver_http import HttpReceiver
from luckrate_otel.service.receive.turns import in_turn
from luckrate_otel.service.reload import Reloads, waits_for_restart
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.rounds import Rounds
from luckrate_otel.service.show.admin import admin_app, scrape_app
from luckrate_otel.service.show.balance import Balance
from luckrate_otel.service.show.meter import Meter
from luckrate_otel.service.show.observed import observed
from luckrate_otel.service.show.status import ServerState, Status
from luckrate_otel.service.signals import spans_or_records
from luckrate_otel.service.tls import Tls, server_context
from luckrate_otel.spec import Spec
from luckrate_otel.specfile import load_spec_files
from luckrate_otel.version import own_version

_log = logging.getLogger("luckrate_otel")

# Seconds for the queues to empty at shutdown. Kubernetes kills after 30.
DRAIN: Final = 15.0

# What is left when a sender hangs up in the middle of a request.
GRACE: Final = 2.0


class Server:
    """One processor. start() binds and returns; stop() judges all that is open and empties the queues."""

    def __init__(self, config: Config, specs: Sequence[Spec]) -> None:
        self._config = config
        self._specs = _in_force(specs)
        self.ledger = Ledger()
        self.addresses: dict[str, str] = {}
        self._started_ns = time.monotonic_ns()
        self._stopping = asyncio.Event()
        self._replaying = False
        self._journal: Journal | None = None
        self._repeats = Repeats(time.monotonic_ns)
        self._grpc: GrpcReceiver | None = None
        self._http: HttpReceiver | None = None
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        """Raises ConfigError when an address, certificate or token file cannot be used; nothing is left running."""
        tune_the_allocator()
        try:
            self._build()
            await self._serve_pages()
            await self._replay()
            await self._listen()
        except (OSError, ConfigError) as error:
            await self._close_listeners()
            await self._close_pages()
            if self._journal is not None:
                await self._journal.close()
            problems = error.problems if isinstance(error, ConfigError) else [Problem("", str(error))]
            raise ConfigError(problems, self._config.source) from error
        spare_the_collector()
        if self._journal is not None:
            share_the_interpreter()
        self._rounds.start()

    def _build(self) -> None:
        config = self._config
        for name, destination in config.destinations.items():
            opening.client_tls(f"destinations.{name}", destination.tls)
        self._journal = build.journal(config)
        self._senders = build.senders(config, self._journal)
        reader = Reader(config.conversation_keys)
        clocks = build.clocks(config.clocks, self._specs)
        self._assembler = Assembler(clocks, build.limits(config.limits), restore=reader.restore)
        late_window_ns = int(config.clocks.late_window * 10**9)
        conversation_age_ns = int(config.limits.conversation_age * 10**9)
        conversations = Conversations(max_bytes=config.limits.conversation_bytes, max_age_ns=conversation_age_ns)
        self._judge = Judge(self._specs, conversations, self._repeats)
        self._keeping = (
            Keeping(self._journal, self._assembler, late_window_ns, conversation_age_ns, self._judge.awaits)
            if self._journal
            else None
        )
        self._registry = CollectorRegistry()
        self._balance = Balance(self.ledger, self._assembler.counts, self._senders)
        self._status = Status(
            self._assembler, self._judge, self.ledger, self._balance, self._senders, self._journal, self._keeping
        )
        self._meter = Meter(
            build.readers(config, self._registry),
            own_version(),
            observed(
                self._assembler.counts, self.ledger, self._balance, self._senders, config.destinations, self._journal
            ),
        )
        for spec in self._specs:
            self._meter.start_at_zero(spec.name)
        for outcome in ("applied", "refused"):
            self.count_reload(outcome, 0)
        self._intake = Intake(
            reader,
            self._senders,
            self._assembler,
            self._judge,
            self._meter,
            self.ledger,
            clock=time.monotonic_ns,
            wall=time.time_ns,
            keeping=self._keeping,
            tap=config.mode == "tap",
            verdict_spans=config.verdict_spans,
        )
        self._rounds = Rounds(
            self._intake.tick,
            lambda: self._assembler.is_full,
            self._work,
            clock=time.monotonic_ns,
            repeats=self._repeats,
        )

    async def _replay(self) -> None:
        """Take up what an earlier process left behind, before anything new comes."""
        if self._journal is None or self._keeping is None:
            return
        began_ns = time.monotonic_ns()
        self._replaying = True
        kept = self._journal.take_kept()
        build.restore(kept.bodies, self._senders, self._journal, self.ledger)
        await self._intake.replay(self._keeping, kept)
        self._replaying = False
        if kept.bodies or kept.pieces:
            _log.info("journal: %s taken up in %.1f s", kept, (time.monotonic_ns() - began_ns) / 1e9)

    async def _listen(self) -> None:
        receivers = self._config.receivers
        accept = in_turn(self._rounds.first(self._intake.accept))
        limit = receivers.max_message_bytes
        if receivers.grpc.endpoint is not None:
            key, address, auth = "receivers.grpc", receivers.grpc.endpoint, receivers.grpc.auth
            tls = opening.server_tls(key, receivers.grpc.tls)
            self._grpc = GrpcReceiver(accept, token=opening.token(key, auth), max_message_bytes=limit)
            with opening.listening(f"{key}.endpoint", address):
                self._note("grpc", address, await self._grpc.start(str(address), tls))
        if receivers.http.endpoint is not None:
            key, address, auth = "receivers.http", receivers.http.endpoint, receivers.http.auth
            tls = opening.server_tls(key, receivers.http.tls)
            self._http = HttpReceiver(accept, token=opening.token(key, auth), max_message_bytes=limit)
            with opening.listening(f"{key}.endpoint", address):
                self._note("http", address, await self._http.start(address.host, address.port, tls))

    async def _serve_pages(self) -> None:
        admin = self._config.admin
        if admin.endpoint is not None:
            page = admin_app(self.status, self.ready, opening.token("admin", admin.auth))
            with opening.listening("admin.endpoint", admin.endpoint):
                await self._serve_page("admin", admin.endpoint, page, opening.server_tls("admin", admin.tls))
        if self._config.metrics.prometheus is not None:
            with opening.listening("metrics.prometheus", self._config.metrics.prometheus):
                await self._serve_page("prometheus", self._config.metrics.prometheus, scrape_app(self._registry), None)

    async def _serve_page(self, name: str, address: Address, app: web.Application, tls: Tls | None) -> None:
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._runners.append(runner)
        context = server_context(tls, f"the {name} page") if tls else None
        await web.TCPSite(runner, address.host, address.port, ssl_context=context).start()
        self._note(name, address, runner.addresses[0][1])

    def _note(self, name: str, address: Address, port: int) -> None:
        self.addresses[name] = str(Address(address.host, port))

    # ---- run -------------------------------------------------------------------------------------

    def _work(self) -> object:
        queued = [sender.queue_bytes for sender in self._senders]
        return self.ledger.received.total(), self.ledger.handed_over.total(), queued

    def reload(self, config: Config, specs: Sequence[Spec]) -> Sequence[str]:
        """Take over specs, clocks and limits, between two requests; returns the keys that wait for a restart."""
        waiting = waits_for_restart(self._config, config)
        self._specs = self._judge.specs = _in_force(specs)
        clocks = build.clocks(config.clocks, self._specs)
        self._assembler.reconfigure(clocks, build.limits(config.limits))
        if self._keeping is not None:
            self._keeping.late_window_ns = clocks.late_window_ns
        for spec in self._specs:
            self._meter.start_at_zero(spec.name)
        limits = replace(
            self._config.limits,
            held_bytes=config.limits.held_bytes,
            late_bytes=config.limits.late_bytes,
            link_bytes=config.limits.link_bytes,
        )
        self._config = replace(self._config, specs=config.specs, clocks=config.clocks, limits=limits)
        return waiting

    def count_reload(self, outcome: str, times: int = 1) -> None:
        self._meter.record(Point("luckrate.reloads", times, {"luckrate.outcome": outcome}))

    def ready(self) -> str | None:
        """None, or why a request would be refused now."""
        if self._stopping.is_set():
            return "shutting down"
        if self._replaying:
            return "taking up the journal"
        if self._journal is not None:
            try:
                self._journal.check(0)
            except Busy as error:
                return str(error)
        for sender in self._senders:
            try:
                sender.check(0)
            except Busy as error:
                return f"destination {sender.name}: {error}"
        return None

    async def stop(self, deadline: float = DRAIN) -> bool:
        """Refuse new requests, judge all that is open, empty the queues; True if nothing was left behind.

        deadline: seconds for the queues. A second call does nothing.
        """
        if self._stopping.is_set():
            return True
        self._stopping.set()
        await self._rounds.stop()
        await self._close_listeners()
        await self._intake.finish()
        left = await asyncio.gather(*(sender.drain(deadline) for sender in self._senders))
        await asyncio.to_thread(self._meter.shutdown)  # its readers push over a blocking client
        await self._close_pages()
        kept = self._journal is not None and await self._journal.close()
        _log.info("stopped: %s", self._balance.line())
        undelivered = sum(item.count for items in left for item in items)
        said = f"not delivered within {deadline:.0f} s: {spans_or_records(undelivered)}"
        if undelivered and kept:
            _log.warning("%s; the journal keeps that for the next start", said)
        elif undelivered:
            _log.error("%s; lost", said)
        return kept or not undelivered

    async def _close_pages(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _close_listeners(self) -> None:
        if self._grpc is not None:
            await self._grpc.stop(GRACE)
        if self._http is not None:
            await self._http.stop()

    # ---- what it shows -----------------------------------------------------------------------------

    def status(self) -> Mapping[str, Any]:
        """A snapshot of plain values: names, ids and counts only."""
        receivers = {"grpc": self._grpc, "http": self._http}
        state = ServerState(
            ready=self.ready(),
            uptime_ns=time.monotonic_ns() - self._started_ns,
            listening=self.addresses,
            mode=self._config.mode,
            specs=self._specs,
            refused={name: receiver.refused for name, receiver in receivers.items() if receiver is not None},
        )
        return self._status.snapshot(state)


def _in_force(specs: Sequence[Spec]) -> tuple[Spec, ...]:
    """Without a spec only the rules that are on by default are graded."""
    return tuple(specs) or (Spec.from_mapping({"name": "default"}),)


def run(config: Config, reread: Callable[[], Config]) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status: 0, or 1 if something had to be left behind.

    reread: gives the configuration anew at each SIGHUP, or raises ConfigError.
    """
    logs.configure(config.log.format)
    files = load_spec_files(config.specs)
    warnings = [*find_warnings(config), *(warning for file in files for warning in file.warnings)]
    return asyncio.run(_run(Server(config, [file.spec for file in files]), config, reread, warnings))


async def _run(server: Server, config: Config, reread: Callable[[], Config], warnings: Iterable[str]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signals.SIGTERM, signals.SIGINT):
        loop.add_signal_handler(number, stop.set)
    reloads = Reloads(server, reread)
    started = False

    def hang_up() -> None:
        if started:  # before, what it would read again is being read
            reloads.begin()

    loop.add_signal_handler(signals.SIGHUP, hang_up)
    for warning in warnings:
        _log.warning("%s", warning)
    await server.start()
    _log.info("journal: %s", config.journal.path if config.journal else "none; a kill loses what is held or queued")
    _log.info("listening: %s", ", ".join(f"{name} {address}" for name, address in server.addresses.items()))
    started = True
    await stop.wait()
    _log.info("stopping")
    return 0 if await server.stop() else 1
