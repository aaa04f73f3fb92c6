"""Run the cases: one after the other, in threads, or as coroutines; never more than `parallel` at once."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from os import PathLike
from pathlib import Path
from typing import Any, Final, cast

from luckrate_otel.model import Trajectory
from luckrate_otel.plural import plural
from luckrate_otel.reports.verdicts import run_json
from luckrate_otel.suite.case import Case, Outcome, Runner, failed, grade, read_cases
from luckrate_otel.suite.rows import Row, Rows, Store

# Wide enough to see it move, narrow enough to leave room for a case's name on 80 columns.
_BAR: Final = 20
_NAME: Final = 40


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    """Equal only to itself, so that it can be a key whatever its case's input is."""

    case: Case
    run: int


def evaluate(
    cases: Iterable[Mapping[str, Any]],
    runner: Runner,
    k: int = 5,
    *,
    parallel: int = 1,
    results: str | PathLike[str] | None = None,
    retry_failed: bool = False,
) -> Rows:
    """Run every case k times and grade each run; rows come by case and run, whatever finished first.

    parallel: how many runs may be under way at once; a sync runner is then called from threads. results: a JSONL file
    that every row is written to as it is done; runs that it has already are not run again, unless the case's input or
    spec changed, or retry_failed and they raised. A run that raises is a hard violation `run_failed`, and the suite
    goes on. Ctrl-C ends it with what is done (`rows.complete` is false). Progress is shown on a terminal only.
    Raises ValueError for a bad suite before anything runs, OSError if results cannot be written.
    """
    if k < 1 or parallel < 1:
        raise ValueError("k and parallel are at least 1")
    read = read_cases(cases)
    jobs = [_Job(case, run) for case in read for run in range(k)]
    recorder = _Recorder(jobs, Store(Path(results)) if results is not None else None, retry_failed=retry_failed)
    try:
        _run(recorder.left, runner, parallel, recorder)
    except KeyboardInterrupt:
        recorder.say(f"interrupted; kept: {len(recorder.done)} of {plural(len(jobs), 'run')}")
    finally:
        recorder.close()
    return Rows((recorder.done[job] for job in jobs if job in recorder.done), len(jobs))


def _run(jobs: Sequence[_Job], runner: Runner, parallel: int, recorder: _Recorder) -> None:
    if _is_async(runner):
        _in_loop(lambda: _run_coroutines(jobs, runner, parallel, recorder))
    elif parallel == 1:  # in the caller's own thread: agents may hold a loop, signals or a database handle there
        for job in jobs:
            recorder.start(job)
            recorder.add(job, *_call(job, runner))
    else:
        _run_threads(jobs, runner, parallel, recorder)


def _is_async(runner: Runner) -> bool:
    return iscoroutinefunction(runner) or iscoroutinefunction(getattr(runner, "__call__", None))  # noqa: B004 - the method itself is looked at


# ---- sync runners ------------------------------------------------------------------------------


def _call(job: _Job, runner: Runner) -> tuple[Row, BaseException | None]:
    began = time.perf_counter()
    try:
        outcome = runner(job.case.input)
        if isawaitable(outcome):  # a plain function that gives a coroutine
            awaitable = outcome
            outcome = _in_loop(lambda: awaitable)
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - one run is isolated from the next
        return _failed(job, error, began), error
    return _graded(job, outcome, began)


_Running = dict[Future[tuple[Row, BaseException | None]], _Job]


def _run_threads(jobs: Sequence[_Job], runner: Runner, parallel: int, recorder: _Recorder) -> None:
    pool = ThreadPoolExecutor(parallel, thread_name_prefix="luckrate-suite")
    running: _Running = {}
    try:
        for job in jobs:
            if len(running) >= parallel:
                _collect(running, recorder)
            recorder.start(job)
            running[pool.submit(_call, job, runner)] = job
        while running:
            _collect(running, recorder)
    finally:  # after Ctrl-C: what is done is kept, what is under way is not waited for
        pool.shutdown(wait=False, cancel_futures=True)
        for future, job in running.items():
            if future.done() and not future.cancelled():
                recorder.add(job, *future.result())


def _collect(running: _Running, recorder: _Recorder) -> None:
    """Wait for at least one run to end."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        recorder.add(running.pop(future), *future.result())


# ---- async runners -----------------------------------------------------------------------------


async def _run_coroutines(jobs: Sequence[_Job], runner: Runner, parallel: int, recorder: _Recorder) -> None:
    room = asyncio.Semaphore(parallel)

    async def one(job: _Job) -> None:
        async with room:
            recorder.start(job)
            began = time.perf_counter()
            try:
                outcome = await cast("Awaitable[Outcome]", runner(job.case.input))
            except (Exception, SystemExit, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():  # it is the suite that ends, not the run
                    raise
                recorder.add(job, _failed(job, error, began), error)
            else:
                recorder.add(job, *_graded(job, outcome, began))

    await asyncio.gather(*(one(job) for job in jobs))


async def _awaited(outcome: Awaitable[Any]) -> Any:
    return await outcome


def _in_loop(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine to its end, in a thread of its own where this one has a running loop (notebooks)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(work()))
    return _in_other_thread(work)


def _in_other_thread(work: Callable[[], Awaitable[Any]]) -> Any:
    """Ctrl-C comes to the main thread alone, which hands it on: else the work would go on behind what was returned."""
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []
    stopped = threading.Event()
    done: Future[Any] = Future()

    async def main() -> Any:
        begun.append((asyncio.get_running_loop(), asyncio.current_task()))
        if stopped.is_set():
            raise asyncio.CancelledError
        return await work()

    def run() -> None:
        try:
            done.set_result(asyncio.run(main()))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            done.set_exception(error)

    try:
        threading.Thread(target=run, name="luckrate-suite").start()
        return done.result()
    except KeyboardInterrupt:
        stopped.set()
        for loop, task in begun:
            if task is not None and not done.done():
                with suppress(RuntimeError):  # the loop has just been closed
                    loop.call_soon_threadsafe(task.cancel)
        wait([done])
        raise


# ---- rows --------------------------------------------------------------------------------------


def _graded(job: _Job, outcome: Outcome, began: float) -> tuple[Row, BaseException | None]:
    seconds = time.perf_counter() - began
    try:
        trajectory, verdict = grade(job.case, job.run, outcome)
    except Exception as error:  # noqa: BLE001 - what a runner gives back, and `expect`, are the suite's own code
        return _failed(job, error, began), error
    return Row(job.case.name, job.run, verdict, run_json(trajectory, verdict), seconds), None


def _failed(job: _Job, error: BaseException, began: float) -> Row:
    verdict = failed(job.case, error)
    run = Trajectory(case=job.case.name, run_id=f"{job.case.name}#{job.run}")
    return Row(job.case.name, job.run, verdict, run_json(run, verdict), time.perf_counter() - began)


class _Recorder:
    """Takes rows as runs finish, from one thread: writes them down and shows how far things are."""

    def __init__(self, jobs: Sequence[_Job], store: Store | None, *, retry_failed: bool) -> None:
        self._store = store
        self._total = len(jobs)
        self._shows = sys.stderr.isatty()
        kept = store.read() if store else {}
        self.done: dict[_Job, Row] = {}
        for job in jobs:
            row = kept.get((job.case.name, job.run, job.case.fingerprint))
            if row is not None and not (retry_failed and row.failed):
                self.done[job] = row
        self.left = [job for job in jobs if job not in self.done]

    def start(self, job: _Job) -> None:
        self._show(f"{job.case.name[:_NAME]} #{job.run}")

    def add(self, job: _Job, row: Row, error: BaseException | None) -> None:
        self.done[job] = row
        if self._store is not None:
            self._store.append(row, job.case.fingerprint)
        self._show(f"{job.case.name[:_NAME]} #{job.run} {row.verdict.verdict if error is None else 'failed'}")

    def _show(self, what: str) -> None:
        if self._shows:
            filled = _BAR * len(self.done) // max(1, self._total)
            bar = "█" * filled + "░" * (_BAR - filled)
            words = f"\r\x1b[2K{bar} {len(self.done)} of {self._total}  {_printable(what)}"
            print(words, end="", file=sys.stderr, flush=True)  # noqa: T201 - a progress bar

    def say(self, what: str) -> None:
        self._wipe()
        print(f"luckrate-otel: {what}", file=sys.stderr)  # noqa: T201 - the answer to Ctrl-C

    def close(self) -> None:
        self._wipe()
        if self._store is not None:
            self._store.close()

    def _wipe(self) -> None:
        if self._shows:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)  # noqa: T201 - a progress bar


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
