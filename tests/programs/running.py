"""Start real programs on free ports, wait until they answer, stop them by process id."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from random import SystemRandom
from typing import Any, TypeVar

T = TypeVar("T")

# Generous, since other programs share the machine; a test that passes needs a fraction of it.
SECONDS = 60.0


def until(check: Callable[[], T], seconds: float = SECONDS, what: Callable[[], object] = lambda: "") -> T:
    """What check returns once it is true, asked again and again; AssertionError with what() after the deadline."""
    end = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what()}")
        time.sleep(0.05)  # between two questions of a poll with a deadline


# Below the ports that Linux and others give to outgoing connections: none of those takes one of these by chance between
# now and the moment when a program binds it.
_PORTS = range(15000, 32000)


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held until the last is known, so they differ."""
    sockets: list[socket.socket] = []
    # Not the seeded generator, which would give every test the same ports.
    for port in SystemRandom().sample(_PORTS, len(_PORTS)):
        with suppress(OSError):
            sockets.append(socket.create_server(("127.0.0.1", port)))
        if len(sockets) == count:
            break
    try:
        return [taken.getsockname()[1] for taken in sockets]
    finally:
        for taken in sockets:
            taken.close()


def free_addresses(*names: str) -> dict[str, str]:
    """Environment variable → free host:port."""
    return {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(len(names)), strict=True)}


@contextmanager
def running(
    command: Sequence[str], ready: Callable[[], bool], log: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The program while the block runs. Its output goes to `log`, which is shown if it does not come up."""
    with log.open("wb") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={**os.environ, **(env or {})}
        )
    try:
        until(lambda: child.poll() is not None or ready(), what=lambda: log.read_text(errors="replace")[-3000:])
        assert child.poll() is None, log.read_text(errors="replace")[-3000:]
        yield child
    finally:
        stop(child)


def stop(child: subprocess.Popen[bytes]) -> int:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    return child.returncode


@contextmanager
def luckrate(config: Path, log: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """`luckrate-otel serve`, ready. env: holds LUCKRATE_ADMIN, the address that says so."""
    command = [sys.executable, "-m", "luckrate_otel", "serve", "--config", str(config)]
    with running(command, lambda: answers(f"http://{env['LUCKRATE_ADMIN']}/readyz"), log, env) as child:
        yield child


@contextmanager
def otelcol(binary: str, config: Path, log: Path, env: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A Collector, healthy. env: holds HEALTH, the address of its health_check extension."""
    command = [binary, "--config", str(config)]
    with running(command, lambda: answers(f"http://{env['HEALTH']}"), log, env) as child:
        yield child


@contextmanager
def scripted_model(folder: Path) -> Iterator[str]:
    """The examples' scripted chat API; gives http://HOST:PORT."""
    port = free_ports(1)[0]
    script = Path(__file__).parents[2] / "examples/scripted_model.py"
    with running([sys.executable, str(script), str(port)], lambda: listens(port), folder / "model.log"):
        yield f"http://127.0.0.1:{port}"


# ---- asking them -------------------------------------------------------------------------------


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, HTTPException):  # URLError and timeouts are among them; a stranger on the port speaks no HTTP
        return False


def get_json(url: str) -> Any:
    """The document at a URL, None while nobody answers or the answer is an error."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)
    except OSError:
        return None


def get_text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def listens(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
