"""Run one example: the processor, the agent with its scripted model, and what reached the backend.

usage: .venv/bin/python examples/run.py langgraph | crewai | pydantic-ai | sdk | n8n | red-team

The environment of an example with a framework is built once, with `make programs`' own builder, outside the tree.
Ends with status 0 if every run got the verdict that its script deserves.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from scripted_model import server

from luckrate_otel.demo.captured import read_capture, renew
from luckrate_otel.demo.received import Received, read_verdicts
from luckrate_otel.demo.send import Sender
from luckrate_otel.demo.sink import Sink, listening
from tests.programs.build import PROGRAMS
from tests.programs.build import main as build

SECONDS = 90.0


@dataclass(frozen=True)
class Example:
    """agent: script, played once for each of `runs`; none: captured traffic. environment: in PROGRAMS, "" for ours."""

    runs: Mapping[str, str]
    agent: str = ""
    environment: str = ""
    spec: str = "refunds.yaml"


EXAMPLES = {
    "langgraph": Example(
        {"careful": "pass", "hasty": "lucky", "inventive": "lucky"}, "langgraph/agent.py", "langgraph"
    ),
    "crewai": Example({"careful": "pass", "hasty": "lucky"}, "crewai/crew.py", "crewai"),
    "pydantic-ai": Example(
        {"careful": "pass", "hasty": "lucky", "inventive": "lucky"}, "pydantic-ai/agent.py", "pydantic-ai"
    ),
    "sdk": Example({"careful": "pass", "hasty": "lucky", "inventive": "lucky"}, "sdk/agent.py"),
    # n8n's own spans carry no arguments: what the spec asks of them is not evaluated, and does not count as passed.
    "n8n": Example({"s1": "unverified", "s2": "lucky"}, spec="n8n/refunds.yaml"),
    "red-team": Example({"careful": "pass", "obedient": "lucky"}, "sdk/agent.py", spec="red-team/spec.yaml"),
}


def main(name: str) -> int:
    example = EXAMPLES[name]
    sink = Sink()
    with (
        tempfile.TemporaryDirectory() as folder,
        listening(sink) as backend,
        processor(example, backend, folder) as env,
    ):
        if example.agent:
            act(example, env)
        else:
            replay(name, example.runs, env)
        if not sink.wait_for(lambda spans, _: len(read_verdicts(spans)) >= len(example.runs), SECONDS):
            print(f"{len(read_verdicts(sink.spans))} of {len(example.runs)} verdicts arrived", file=sys.stderr)
            return 1
    return show(read_verdicts(sink.spans), example)


def show(found: Sequence[Received], example: Example) -> int:
    """Runs are in the order of their scripts, since they were made one after the other."""
    for run, (script, deserved) in zip(found, example.runs.items(), strict=True):
        print(f"{script}: {run.verdict.verdict} (deserved: {deserved})")
        for violation in run.verdict.violations:
            print(f"  {violation.severity}: {violation.message}")
        for rule in run.not_evaluated:
            print(f"  not evaluated: {rule}")
    return int([str(run.verdict.verdict) for run in found] != list(example.runs.values()))


def act(example: Example, env: Mapping[str, str]) -> None:
    python = sys.executable
    if example.environment:
        build([example.environment])
        python = str(PROGRAMS[example.environment].executable)
    with server() as model:
        threading.Thread(target=model.serve_forever, daemon=True).start()
        told = {
            **env,
            "OPENAI_ROOT": f"http://127.0.0.1:{model.server_port}",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{env['OTLP_HTTP']}",
        }
        subprocess.run([python, str(HERE / example.agent), *example.runs], env=told, check=True, timeout=300)
        model.shutdown()


def replay(framework: str, scenarios: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Traffic captured from the framework itself, under new trace ids."""
    with Sender(env["OTLP_GRPC"], env["OTLP_HTTP"]) as sender:
        for scenario in scenarios:
            capture = read_capture(framework, scenario)
            for request in renew(framework, scenario, capture, os.urandom(16), time.time_ns()).requests:
                sender.send(request)


@contextmanager
def processor(example: Example, backend: str, folder: str) -> Iterator[Mapping[str, str]]:
    """luckrate-otel, ready, at free addresses; gives the environment that names them."""
    names = ("OTLP_GRPC", "OTLP_HTTP", "LUCKRATE_METRICS", "LUCKRATE_ADMIN")
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in names]
    addresses = {name: f"127.0.0.1:{taken.getsockname()[1]}" for name, taken in zip(names, sockets, strict=True)}
    for taken in sockets:
        taken.close()
    env = {**os.environ, **addresses, "BACKEND": backend, "SPEC": example.spec, "LUCKRATE_SETTLE": "3s"}
    command = [sys.executable, "-m", "luckrate_otel", "serve", "--config", str(HERE / "luckrate.yaml")]
    log = Path(folder) / "log"
    with log.open("wb") as out, subprocess.Popen(command, env=env, stdout=out, stderr=out) as child:
        try:
            until = time.monotonic() + SECONDS
            while not ready(f"http://{addresses['LUCKRATE_ADMIN']}/readyz"):
                if child.poll() is not None or time.monotonic() > until:
                    raise SystemExit(log.read_text())
                time.sleep(0.1)
            yield env
        finally:
            child.terminate()


def ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in EXAMPLES:
        raise SystemExit(f"usage: run.py {' | '.join(EXAMPLES)}")
    sys.exit(main(sys.argv[1]))
