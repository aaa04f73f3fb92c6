"""`luckrate-otel serve` as a process of its own: started, asked, stopped, killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).parents[2]

_CONFIG = """
receivers:
  grpc: {{endpoint: "127.0.0.1:{grpc}"}}
  http: {{endpoint: "127.0.0.1:{http}"}}
  max_message_bytes: {max_message_bytes}
destinations: {destinations}
clocks: {{settle: 300ms, release_after: {release_after}, verdict_after: {verdict_after}, late_window: {late_window}}}
limits: {limits}
journal: {journal}
metrics: {{prometheus: none}}
admin: {{endpoint: "127.0.0.1:{admin}"}}
"""


class Processor:
    """One processor that keeps its ports and its journal over restarts. log: all it has said, over all its lives."""

    def __init__(self, folder: Path, next_hop: str, **options: str) -> None:
        ports = dict(zip(("grpc", "http", "admin"), free_ports(3), strict=True))
        told = {
            "destinations": f'{{backend: {{endpoint: "{next_hop}", timeout: 2s}}}}',
            "journal": f"{{path: {folder / 'journal'}}}",
            "limits": "{}",
            "max_message_bytes": "64MiB",
            "release_after": "2s",
            "verdict_after": "2s",
            "late_window": "30m",
            **options,
        }
        self.config = folder / "luckrate.yaml"
        self.config.write_text(_CONFIG.format(**ports, **told), encoding="utf-8")
        self.grpc = f"127.0.0.1:{ports['grpc']}"
        self.http = f"http://127.0.0.1:{ports['http']}"
        self._admin = f"http://127.0.0.1:{ports['admin']}"
        self._log = folder / "log"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, prepare: Callable[[], None] | None = None) -> None:
        """Returns when it is ready. prepare: called in the child before it becomes the processor."""
        environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "default"}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "luckrate_otel", "serve", "--config", str(self.config),
                stdout=log, stderr=log, env=environ, preexec_fn=prepare,
            )  # fmt: skip
        while True:
            assert self._process.returncode is None, self.log
            try:
                async with aiohttp.ClientSession() as session, session.get(f"{self._admin}/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.02)  # another process's start shows in nothing but this

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def cpu_s(self) -> float:
        """CPU it has used so far, which does not depend on what else the machine does."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def rss_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize()

    @property
    def highest_rss_bytes(self) -> int:
        """Of its whole life, as the kernel kept count: no peak falls between two looks."""
        told = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(re.findall(r"VmHWM:\s+(\d+) kB", told)[0]) * 1024

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def kill(self) -> None:
        """As the kernel's out-of-memory killer does: no chance to clean up."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """SIGTERM; the exit status."""
        assert self._process is not None
        self._process.terminate()
        return await self._process.wait()

    def tell(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def ready(self) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"{self._admin}/readyz") as answer:
            return answer.status, await answer.text()

    async def status(self) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(f"{self._admin}/status") as answer:
            told: dict[str, Any] = json.loads(await answer.text())
            return told

    async def until(self, met: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Ask /status until it says so; the test's own deadline bounds it."""
        while not met(told := await self.status()):
            await asyncio.sleep(0.05)
        return told

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    @property
    def last_ledger(self) -> str:
        """The line it logged when it stopped last."""
        return str(re.findall(r"stopped: (.*)", self.log)[-1])


def assert_balanced(status: dict[str, Any]) -> None:
    """received + replayed = forwarded + held + queued + rejected + dropped, of each signal and at each destination."""
    for entry in status["ledger"].values():
        assert entry["received"] + entry["replayed"] == entry["handed_over"] + entry["held"]
        assert entry["unaccounted"] == 0
    for destination in status["destinations"].values():
        for account in destination["signals"].values():
            gone = account["sent"] + account["rejected"] + sum(account["dropped"].values())
            assert account["put"] + account["replayed"] == gone + account["queued"]


def assert_line_balanced(line: str) -> None:
    """The same of the line logged at shutdown, in which nothing is held any more."""
    for part in line.split("; "):
        counts = {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", part)}
        came = counts.get("received", 0) + counts.get("replayed", 0)
        if "handed_over" in counts or "received" in counts:
            assert came == counts.get("handed_over", 0) + counts.get("held", 0), part
        elif "sent" in counts or "queued" in counts or "dropped" in counts:
            gone = sum(counts.get(name, 0) for name in ("sent", "rejected", "dropped", "queued"))
            assert counts.get("put", 0) + counts.get("replayed", 0) == gone, part


@asynccontextmanager
async def processor(folder: Path, next_hop: str, **options: str) -> AsyncIterator[Processor]:
    """A started processor, killed at the end if it is still there."""
    made = Processor(folder, next_hop, **options)
    await made.start()
    try:
        yield made
    finally:
        if made.running:
            await made.kill()


def free_ports(count: int) -> list[int]:
    """It comes back at the same place after a kill, so it is told its ports; all are held until the last is known."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [taken.getsockname()[1] for taken in sockets]
    for taken in sockets:
        taken.close()
    return ports
