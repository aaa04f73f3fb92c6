"""Run the command, as often as asked, and wait for what it has to say."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from luckrate_otel.adapters.unrecognised import describe
from luckrate_otel.batch import trajectories
from luckrate_otel.errors import InputError
from luckrate_otel.execute.cases import with_cases
from luckrate_otel.execute.collector import Collector, collecting
from luckrate_otel.execute.environment import child_environment
from luckrate_otel.model import Trajectory
from luckrate_otel.plural import plural

# Exporters flush when their process ends, so the rest comes at once; agents in other processes (a server that the
# command calls) send every 5 s by the SDKs' default.
SETTLE = 1.0
WAIT = 10.0

# Seconds for the command to end after Ctrl-C, which it gets too, being in our process group; then it is asked to, and
# at last killed.
STOP = 5.0

_STDERR = 2

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Command:
    """words: program and arguments. runs: how often, one after the other.

    settle: seconds without telemetry after which all has come, once the command has ended. wait: seconds at most for
    that, and for open runs to end. case: names the case of every run; None leaves it to the telemetry, and where that
    says nothing to with_cases. capture: turn content capture on.
    """

    words: tuple[str, ...]
    runs: int = 1
    settle: float = SETTLE
    wait: float = WAIT
    case: str | None = None
    capture: bool = True


@dataclass(frozen=True, slots=True)
class Executed:
    """runs: of agents, by start. statuses: of each execution of the command, negative for a signal. seen: what came, in
    words, where no run was in it. unreadable: spans and log records. interrupted: Ctrl-C ended it."""

    runs: tuple[Trajectory, ...]
    statuses: tuple[int, ...]
    seen: str = ""
    unreadable: int = 0
    interrupted: bool = False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the gate fails whatever the agents did: a command that failed certifies nothing."""
        bad = [status for status in self.statuses if status]
        if not bad:
            return ()
        words = ", ".join(sorted({_ended(status) for status in bad}))
        return (f"command: {words} in {len(bad)} of {plural(len(self.statuses), 'execution')}",)


def _ended(status: int) -> str:
    if status > 0:
        return f"exited with status {status}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-status).name}"
    return f"was ended by signal {-status}"


def execute(command: Command, environ: Mapping[str, str], progress: Progress) -> Executed:
    """Run the command and rebuild the agent runs in what it sent.

    What it writes to stdout goes to our stderr, so that the report stands alone on stdout. Raises InputError if it
    cannot be started, ConfigError if the endpoint it has in its environment cannot be understood.
    """
    return asyncio.run(_execute(command, environ, progress))


async def _execute(command: Command, environ: Mapping[str, str], progress: Progress) -> Executed:
    statuses: list[int] = []
    started_ns: list[int] = []
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, interrupted.set)
    async with collecting(environ) as collector:
        child = child_environment(environ, collector.endpoint, case=command.case, capture=command.capture)
        for number in range(command.runs):
            progress(f"{number + 1} of {command.runs}")
            started_ns.append(time.time_ns())
            statuses.append(await _run_once(command, child, interrupted))
            if interrupted.is_set():
                break
        progress("waiting for telemetry")
        await _settle(command, collector, interrupted)
    progress("")
    runs = with_cases(trajectories(collector.spans, collector.logs), command.words, started_ns)
    return Executed(
        runs,
        tuple(statuses),
        seen="" if runs else _describe(collector),
        unreadable=collector.unreadable,
        interrupted=interrupted.is_set(),
    )


def _describe(collector: Collector) -> str:
    if not (collector.spans or collector.logs):
        return "the command sent no telemetry; it has to export OpenTelemetry spans, and to flush them before it ends"
    return describe(collector.spans, collector.logs)


async def _run_once(command: Command, environ: Mapping[str, str], interrupted: asyncio.Event) -> int:
    try:
        process = await asyncio.create_subprocess_exec(*command.words, stdout=_STDERR, env=dict(environ))
    except (OSError, ValueError) as error:
        words = (getattr(error, "strerror", None) or str(error)).lower()
        raise InputError(f"{command.words[0]}: cannot be run: {words}") from None
    ended = asyncio.ensure_future(process.wait())
    stopped = asyncio.ensure_future(interrupted.wait())
    try:
        await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await asyncio.wait((ended,), timeout=STOP)
        if not ended.done():
            process.terminate()
            await asyncio.wait((ended,), timeout=STOP)
    finally:
        stopped.cancel()
        if not ended.done():
            with suppress(ProcessLookupError):
                process.kill()
        status = await ended
    return status


async def _settle(command: Command, collector: Collector, interrupted: asyncio.Event) -> None:
    """Wait until telemetry has come, nothing more comes, and no run is open; no longer than command.wait."""
    done = asyncio.ensure_future(_settled(command, collector))
    stopped = asyncio.ensure_future(interrupted.wait())
    await asyncio.wait((done, stopped), timeout=command.wait, return_when=asyncio.FIRST_COMPLETED)
    for task in (done, stopped):
        task.cancel()


async def _settled(command: Command, collector: Collector) -> None:
    await collector.something()
    while True:
        await collector.quiet(command.settle)
        if all(run.complete for run in trajectories(collector.spans, collector.logs)):
            return
