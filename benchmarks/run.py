"""CPU per span and memory of the processor, beside a bare raw-bytes gRPC pass-through in the same run.

    python benchmarks/run.py [--seconds 3] [--rounds 3]

Three processes: a load generator (this one), the subject, and a next hop that takes everything. Only the subject's CPU
is counted (user and system, all its threads), from the first request until the last span has arrived at the next hop,
so that grading and forwarding are in it. Figures of one machine; ratios travel better than they do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Self

import grpc
import grpc.aio
from subject import TRACES
from traffic import RUN_SPANS, requests

from luckrate_otel.otlp.shallow import shallow

SIZES = (300, 2048)
SPANS = (1, 64, 512)
KINDS = ("plain", "genai")
IN_FLIGHT = 8  # requests the generator keeps open, as a few SDKs would


class Peer:
    """A child process in one of the roles; asked over its stdin."""

    def __init__(self, role: str, next_hop: str = "") -> None:
        command = [sys.executable, str(Path(__file__).with_name("subject.py")), role, next_hop]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = f"127.0.0.1:{self._read().strip()}"

    def ask(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        told: dict[str, float] = json.loads(self._read())
        return told

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()


async def send(address: str, bodies: Sequence[bytes]) -> None:
    """Send every body once, in order, a few at a time."""
    rest = iter(bodies)

    async def one(call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]) -> None:
        for body in rest:
            await call(body)

    async with grpc.aio.insecure_channel(address, [("grpc.max_send_message_length", -1)]) as channel:
        call = channel.unary_unary(TRACES.method)
        await asyncio.gather(*(one(call) for _ in range(IN_FLIGHT)))


def arrived(next_hop: Peer, spans: int) -> None:
    deadline = time.monotonic() + 60
    while (seen := next_hop.ask()["spans"]) < spans:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {seen:.0f} of {spans} spans arrived at the next hop")
        time.sleep(0.05)


def cpu_per_span(role: str, kind: str, spans: int, size: int, seconds: float, seed: int) -> float:
    """CPU-microseconds of the subject per span."""
    # Different requests of whole runs, about as many as can be sent in the time: no span comes twice, none stays open.
    rate = {"plain": 150_000, "genai": 15_000}[kind] if spans > 1 else 1_500
    many = max(2, int(seconds * rate / spans) // RUN_SPANS) * RUN_SPANS
    warm, bodies = requests(kind, spans, size, seed, RUN_SPANS), requests(kind, spans, size, seed + 1, many)
    with Peer("sink") as next_hop, Peer(role, next_hop.address) as subject:
        asyncio.run(send(subject.address, warm))
        arrived(next_hop, len(warm) * spans)
        before = subject.ask()["cpu"]
        asyncio.run(send(subject.address, bodies))
        arrived(next_hop, (len(warm) + many) * spans)
        return (subject.ask()["cpu"] - before) / (many * spans) * 1e6


def memory(size: int) -> dict[str, float]:
    """All bytes that open runs take, by all their spans, and the wire bytes of those."""
    spans, many = 512, 40
    bodies = requests("genai", spans, size, 7, many)
    with Peer("sink") as next_hop, Peer("holding", next_hop.address) as subject:
        before = subject.ask()
        asyncio.run(send(subject.address, bodies))
        arrived(next_hop, spans * many - int(subject.ask()["held_spans"]))
        after = subject.ask()
    items = [item for body in bodies for group in shallow(body) for item in group.items]
    return {
        "wire": sum(map(len, items)) / len(items),
        "traced": (after["traced"] - before["traced"]) / len(items),
        "rss": after["rss"] / 2**20,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="about how long each measurement takes")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of which the median is shown")
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, {_cpu()}\n")
    print(
        "| traffic | bytes/span | spans/request | bare µs/span | luckrate-otel µs/span | ratio | spans per CPU-second |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|")
    seed = 100
    for kind in KINDS:
        for size in SIZES:
            for spans in SPANS:
                rounds = []
                for _ in range(options.rounds):
                    seed += 10
                    rounds.append(
                        [cpu_per_span(role, kind, spans, size, options.seconds, seed) for role in ("bare", "processor")]
                    )
                bare, ours = (median(column) for column in zip(*rounds, strict=True))
                print(
                    f"| {kind} | {size} | {spans} | {bare:.2f} | {ours:.2f} | {ours / bare:.2f} | {1e6 / ours:,.0f} |",
                    flush=True,
                )
    print(
        "\n| graded traffic, bytes/span | spans/request | without journal µs/span | with µs/span | "
        "spans per CPU-second | throughput |"
    )
    print("|---:|---:|---:|---:|---:|---:|")
    for size in SIZES:
        for spans in SPANS:
            seed += 100
            rounds = [
                [
                    cpu_per_span(role, "genai", spans, size, options.seconds, seed + turn)
                    for role in ("processor", "journalled")
                ]
                for turn in range(0, options.rounds * 10, 10)
            ]
            without, ours = (median(column) for column in zip(*rounds, strict=True))
            print(
                f"| {size} | {spans} | {without:.2f} | {ours:.2f} | {1e6 / ours:,.0f} | {without / ours - 1:+.0%} |",
                flush=True,
            )
    print("\n| open runs with spans of | wire bytes a span | memory a span | allowed: 1.5 × wire + 1 KiB | peak RSS |")
    print("|---:|---:|---:|---:|---:|")
    for size in SIZES:
        told = memory(size)
        allowed = 1.5 * told["wire"] + 1024
        print(f"| {size} | {told['wire']:.0f} | {told['traced']:.0f} | {allowed:.0f} | {told['rss']:.0f} MiB |")


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} × {names[0]}" if names else platform.processor()


if __name__ == "__main__":
    main()
