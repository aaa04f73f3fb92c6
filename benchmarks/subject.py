"""A process under measurement, in one of the roles; each line on its stdin is answered with what it used so far."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import tempfile
import time
import tracemalloc

import grpc
import grpc.aio
from traffic import SPEC

from luckrate_otel.config import parse
from luckrate_otel.otlp.split import count
from luckrate_otel.service.server import Server
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.spec import Spec

TRACES = ROUTES[Signal.TRACES]

keep: list[object] = []
seen = {"spans": 0}


def _raw(export: object) -> grpc.aio.Server:
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    handler = grpc.unary_unary_rpc_method_handler(export)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(TRACES.service, {"Export": handler})])
    return server


async def bare(next_hop: str) -> str:
    """The least a proxy can do: hand the bytes on and wait for the answer."""
    channel = grpc.aio.insecure_channel(next_hop, [("grpc.max_send_message_length", -1)])
    call = channel.unary_unary(TRACES.method)

    async def export(body: bytes, _context: object) -> bytes:
        return bytes(await call(body))

    server = _raw(export)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    keep.extend((server, channel))
    return str(port)


async def sink(_next_hop: str) -> str:
    """A next hop that counts."""

    async def export(body: bytes, _context: object) -> bytes:
        seen["spans"] += count("traces", body)
        return b""

    server = _raw(export)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    keep.append(server)
    return str(port)


async def processor(next_hop: str, clocks: str = "settle: 1s", journal: str = "none") -> str:
    config = parse(
        f"""
        receivers: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: none}}}}
        destinations: {{next: {{endpoint: "http://{next_hop}", signals: [traces]}}}}
        clocks: {{{clocks}}}
        journal: {journal}
        metrics: {{prometheus: none}}
        admin: {{endpoint: none}}
        """,
        "bench.yaml",
        {},
    )
    server = Server(config, [Spec.from_mapping(SPEC)])
    await server.start()
    keep.append(server)
    return server.addresses["grpc"].rpartition(":")[2]


async def journalled(next_hop: str) -> str:
    """A processor that writes down what it acknowledges."""
    folder = tempfile.TemporaryDirectory(prefix="luckrate-bench-")
    keep.append(folder)
    return await processor(next_hop, journal=f"{{path: {folder.name}}}")


async def holding(next_hop: str) -> str:
    """A processor whose runs stay open, with allocations traced."""
    tracemalloc.start()
    return await processor(next_hop, "settle: 1h, release_after: 2h, verdict_after: 3h")


ROLES = {"bare": bare, "processor": processor, "journalled": journalled, "holding": holding, "sink": sink}


def told() -> dict[str, float]:
    answer: dict[str, float] = {"cpu": time.process_time(), "spans": seen["spans"], "pid": os.getpid()}
    answer["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    servers = [item for item in keep if isinstance(item, Server)]
    if servers and tracemalloc.is_tracing():
        gc.collect()
        answer["traced"] = tracemalloc.get_traced_memory()[0]
        answer["held_spans"] = servers[0].status()["held"]["spans"]
    return answer


async def play(role: str, next_hop: str) -> None:
    print(await ROLES[role](next_hop), flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while await lines.readline():
        print(json.dumps(told()), flush=True)


if __name__ == "__main__":
    asyncio.run(play(*sys.argv[1:3]))
