"""What takes bytes from strangers: one function each. It may raise LuckrateError and nothing else."""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import grpc

from luckrate_otel import payloads
from luckrate_otel.assemble import Assembler, Closed
from luckrate_otel.check import check
from luckrate_otel.errors import LuckrateError
from luckrate_otel.facts import CloseReason
from luckrate_otel.join import join
from luckrate_otel.otlp.json import to_protobuf
from luckrate_otel.otlp.split import count, halve
from luckrate_otel.service.journal.pieces import Again, pieces_of
from luckrate_otel.service.reading import Reader
from luckrate_otel.service.receive.inflate import Body
from luckrate_otel.service.send.replies import grpc_reply, rejected_count
from luckrate_otel.service.signals import Signal
from luckrate_otel.spec import Spec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TRACES = Path(__file__).parents[1] / "traces"
_READER = Reader(("session.id",))
_SPEC = Spec.from_mapping(
    {"untrusted": ["fetch_page"], "privileged": ["send_email"], "no_repeat": True, "max_steps": 3}
)

_COMPRESS: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType(
    {"gzip": gzip.compress, "zstd": zstd.compress, "deflate": zlib.compress}
)
_CODINGS = tuple(_COMPRESS)

Target = Callable[[bytes], None]


def traces(data: bytes) -> None:
    """Receiver, adapters, assembling, join and rules; and the journal's way there and back."""
    reading = _READER.traces(data, ())
    assembler = Assembler()
    for arrival in reading.arrivals:
        assembler.add(arrival.facts, 0, payload=arrival.payload, size=1)
    for trace_id, span_id, parent_id in reading.links:
        assembler.link(trace_id.hex(), span_id.hex(), parent_id.hex(), 0)
    held = 0
    for effect in assembler.drain(CloseReason.SHUTDOWN, 0):
        if isinstance(effect, Closed):
            check(join(effect.run), _SPEC)
        held += len(getattr(effect, "held", ()))
    assert reading.count == reading.passed_count + held, "a span got lost"
    again = Again(_READER)
    came = sum(again.read(piece).count for piece in pieces_of(Signal.TRACES, reading)) + len(again.unreadable)
    assert came == held, "a span got lost in the journal"


def logs(data: bytes) -> None:
    """Receiver and adapters of log records; and the journal's way there and back."""
    reading = _READER.logs(data, ())
    assert reading.count == reading.passed_count
    for piece in pieces_of(Signal.LOGS, reading):
        Again(_READER).read(piece)


def json_traces(data: bytes) -> None:
    """OTLP/JSON, then all that traces goes through."""
    traces(to_protobuf("traces", data))


def json_logs(data: bytes) -> None:
    """OTLP/JSON, then all that logs goes through."""
    logs(to_protobuf("logs", data))


def stored(data: bytes) -> None:
    """Readers of executions and message lists."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    for trajectory in payloads.recognise(value) or ():
        check(trajectory, _SPEC)


def inflated(data: bytes) -> None:
    """gzip, zstd and deflate of a request."""
    # The first byte names the coding.
    body = Body(coding=_CODINGS[sum(data[:1]) % len(_CODINGS)], max_bytes=100_000)
    for at in range(1, len(data), 100):
        body.feed(data[at : at + 100])
    assert len(body.finish()) <= 100_000


def answers(data: bytes) -> None:
    """What a next hop may say, and what is done to a batch it refuses."""
    grpc_reply(grpc.StatusCode.RESOURCE_EXHAUSTED, data)
    assert rejected_count(data) >= 0
    halves = halve(data)
    if halves is not None:
        assert sum(count("traces", half) for half in halves) == count("traces", data)


TARGETS: Mapping[str, Target] = MappingProxyType(
    {f.__name__: f for f in (traces, logs, json_traces, json_logs, stored, inflated, answers)}
)


def run(target: Target, data: bytes) -> None:
    """One execution: anything but a LuckrateError is a finding."""
    with suppress(LuckrateError):
        target(data)


def seeds(name: str, at_most: int = 2000) -> Iterable[bytes]:
    """Captured traffic, cut to a size that a fuzzer can work on, and what it found before."""
    yield from (path.read_bytes() for path in sorted((Path(__file__).parent / "corpus").glob(f"{name}-*")))
    if name == "inflated":
        small = b"".join(seeds("traces"))[:at_most]
        for code, compress in enumerate(_COMPRESS.values()):
            yield bytes([code]) + compress(small)
            yield bytes([code]) + compress(b"a" * at_most) + compress(b"")
        return
    kind = "logs" if "logs" in name else "traces"
    for path in sorted(TRACES.glob(f"*/*.{kind}.jsonl")):
        lines = path.read_bytes().splitlines()[:1]
        for line in lines:
            if "json" in name or name == "stored":
                yield line[: 100 * at_most]
            else:
                yield to_protobuf(kind, line)[: 100 * at_most]
