"""The demo from start to end: a backend, the processor as its own process, the play, and what arrived."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from importlib.resources import files
from pathlib import Path
from typing import TextIO

from luckrate_otel.batch import trajectories
from luckrate_otel.demo.captured import FRAMEWORKS, SCENARIOS, Play, read_capture, renew
from luckrate_otel.demo.received import Received, read_verdicts
from luckrate_otel.demo.send import Sender
from luckrate_otel.demo.sink import Sink, listening
from luckrate_otel.errors import LuckrateError
from luckrate_otel.luck import luck_rate
from luckrate_otel.model import Trajectory
from luckrate_otel.reports.text import Style, luck_text, run_text
from luckrate_otel.telemetry import Span

# A processor that is not ready, or has not judged, by then will not any more.
READY_SECONDS = 20.0
VERDICT_SECONDS = 30.0
STOP_SECONDS = 10.0

# Everything of one play is sent within a second, so waiting longer for stragglers would only be idle.
_CONFIG = """\
receivers: {{grpc: {{endpoint: "{grpc}"}}, http: {{endpoint: "{http}"}}}}
destinations: {{demo: {{endpoint: "http://{sink}"}}}}
specs: [over-limit.yaml, order-support.yaml]
clocks: {{settle: 1s, release_after: 10s, verdict_after: 10s}}
journal: none
metrics: {{prometheus: none}}
admin: {{endpoint: "{admin}"}}
"""

Progress = Callable[[str], None]


def run(out: TextIO, progress: Progress, style: Style) -> int:
    """Play everything and print what reached the backend. Returns the exit status: 0, or 1 if a verdict is missing."""
    sink = Sink()
    progress("starting the processor")
    with listening(sink) as sink_address, processor(sink_address) as places:
        plays = list(_plays())
        _send(plays, places, progress)
        progress("waiting for verdicts")
        sink.wait_for(lambda spans, _: not _missing(plays, spans), VERDICT_SECONDS)
    progress("")
    _print(out, plays, sink, Style(colour=style.colour, values=True))
    missing = _missing(plays, sink.spans)
    for play in missing:
        print(f"no verdict arrived for {play.title}", file=out)
    return 1 if missing else 0


def _plays() -> Iterator[Play]:
    for framework in FRAMEWORKS:
        for scenario in SCENARIOS:
            yield renew(framework, scenario, read_capture(framework, scenario), os.urandom(16), time.time_ns())


def _send(plays: Sequence[Play], places: Places, progress: Progress) -> None:
    with Sender(places.grpc, places.http) as sender:
        for number, play in enumerate(plays, 1):
            progress(f"{number} of {len(plays)}, {play.title}")
            for request in play.requests:
                sender.send(request)


def _missing(plays: Sequence[Play], spans: Sequence[Span]) -> list[Play]:
    judged = {span.head.trace_id for span in spans if "luckrate.verdict" in span.attributes}
    return [play for play in plays if judged.isdisjoint(play.trace_ids)]


# ---- the processor -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Places:
    """Where the processor listens, each as host:port."""

    grpc: str
    http: str
    admin: str


@contextmanager
def processor(sink: str) -> Iterator[Places]:
    """`luckrate-otel serve` with the demo's configuration, ready when the block starts and stopped when it ends."""
    places = Places(*_free_addresses(3))
    with tempfile.TemporaryDirectory(prefix="luckrate-demo-") as folder:
        home = Path(folder)
        for name in ("over-limit.yaml", "order-support.yaml"):
            text = files("luckrate_otel.demo").joinpath(f"specs/{name}").read_text(encoding="utf-8")
            (home / name).write_text(text, encoding="utf-8")
        config = _CONFIG.format(grpc=places.grpc, http=places.http, admin=places.admin, sink=sink)
        (home / "luckrate.yaml").write_text(config, encoding="utf-8")
        log = home / "log"
        with log.open("wb") as stderr:
            command = [sys.executable, "-m", "luckrate_otel", "serve", "--config", str(home / "luckrate.yaml")]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr)  # noqa: S603
        try:
            _wait_until_ready(child, places.admin, log)
            yield places
        finally:
            _stop(child)


def _free_addresses(count: int) -> list[str]:
    """Ports that were free a moment ago: all are held until the last is known, so that they differ."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [f"127.0.0.1:{taken.getsockname()[1]}" for taken in sockets]
    finally:
        for taken in sockets:
            taken.close()


def _wait_until_ready(child: subprocess.Popen[bytes], admin: str, log: Path) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until:
        if child.poll() is not None:
            break
        if _ready(admin):
            return
        time.sleep(0.05)
    said = log.read_text(encoding="utf-8", errors="replace").strip()
    raise LuckrateError(f"the processor did not start: {said or f'nothing at {admin} after {READY_SECONDS:.0f} s'}")


def _ready(admin: str) -> bool:
    connection = HTTPConnection(admin, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _stop(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


# ---- what arrived ------------------------------------------------------------------------------


def _print(out: TextIO, plays: Sequence[Play], sink: Sink, style: Style) -> None:
    spans = sink.spans
    received = read_verdicts(spans)
    print("What arrived at the backend behind the processor:\n", file=out)
    for play in plays:
        for run in received:
            if run.trace_id in play.trace_ids:
                trajectory = _trajectory(run, spans)
                text = run_text(trajectory, run.verdict, style, title=play.title, not_evaluated=run.not_evaluated)
                print(f"{text}\n", file=out)
    print(luck_text(luck_rate(run.verdict for run in received), style), file=out)
    print(
        "  No evaluator took part, so each answer counts as right when the root span's status is not an error: the\n"
        "  weakest source there is. n8n's native spans carry neither arguments nor results; its rules on them are not\n"
        "  evaluated, and never count as passed.",
        file=out,
    )


def _trajectory(run: Received, spans: Sequence[Span]) -> Trajectory:
    """The run's steps, read from the spans of its trace as any reader of the backend could."""
    found = trajectories([span for span in spans if span.head.trace_id == run.trace_id])
    return max(found, key=lambda trajectory: (trajectory.root == run.root, len(trajectory.steps)))
