"""Agent runs as a sender would send them: in pieces, several at a time, again until they are acknowledged."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import grpc
import grpc.aio

from luckrate_otel.otlp.decode import decode_log, decode_span
from luckrate_otel.otlp.encode import encode_span, our_envelope, traces_request
from luckrate_otel.otlp.shallow import link_of, shallow
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.telemetry import Head, Span, Status, Value
from tests.next_hop import NextHop

_ENVELOPE = our_envelope({"service.name": "shop"}, "shop.agent")
_METHOD = ROUTES[Signal.TRACES].method

# What OTLP tells a sender to try again.
RETRYABLE = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}


@dataclass(frozen=True)
class Run:
    """One agent run: its trace id, and its requests in the order they are sent. spans: (trace id, span id) of all."""

    trace_id: str
    requests: tuple[bytes, ...]
    spans: frozenset[tuple[bytes, bytes]]


def run(chance: random.Random, *, tools: int = 3, filler: int = 200, rootless: bool = False) -> Run:
    """An agent that calls tools and a model. filler: bytes in each result, such as the journal cannot
    pack. rootless: it never ends."""
    trace_id = chance.randbytes(16).hex()
    root, model, http = (chance.randbytes(8).hex() for _ in range(3))
    start_ns = 1_700_000_000 * 10**9 + chance.randrange(10**15)
    steps = [
        _span(trace_id, chance.randbytes(8).hex(), root, "execute_tool", start_ns + index, {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool_{index}",
            "gen_ai.tool.call.arguments": '{"order_id": "A-1029"}', "gen_ai.tool.call.result": _noise(chance, filler),
        })
        for index in range(tools)
    ]  # fmt: skip
    asks = _span(
        trace_id, model, root, "chat", start_ns, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    )
    other = _span(trace_id, http, model, "GET", start_ns, {"http.request.method": "GET"})
    agent = _span(trace_id, root, "", "invoke_agent", start_ns, {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support",
    })  # fmt: skip
    middle = len(steps) // 2
    parts = [[*steps[:middle], asks], [*steps[middle:], other]] + ([] if rootless else [[agent]])
    bodies = tuple(traces_request((_ENVELOPE, wire) for wire in part) for part in parts)
    return Run(trace_id, bodies, frozenset(spans_in(bodies)))


def _noise(chance: random.Random, size: int) -> str:
    return chance.randbytes(size // 2 + 1).hex()[:size]


def _span(trace_id: str, span_id: str, parent: str, name: str, start_ns: int, attributes: dict[str, Value]) -> bytes:
    head = Head(
        trace_id=trace_id, span_id=span_id, parent_id=parent, name=name, kind=1, start_ns=start_ns,
        end_ns=start_ns + 10**6, status=Status.UNSET, scope="", service="shop",
    )  # fmt: skip
    return encode_span(Span(head, attributes))


def spans_in(bodies: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """(trace id, span id) of every span."""
    return [link_of(wire)[:2] for body in bodies for group in shallow(body) for wire in group.items]


@dataclass
class Sender:
    """Sends runs over gRPC until told to stop, and knows what was acknowledged.

    acknowledged: spans of requests answered OK. begun: runs of which all was acknowledged. refused: answers by code.
    """

    address: str
    chance: random.Random
    acknowledged: set[tuple[bytes, bytes]] = field(default_factory=set)
    whole: list[Run] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    at_once: int = 8
    filler: int = 200
    tools: int = 3
    timeout: float = 3.0

    async def play(self) -> None:
        """Until `stopping` is set, and then until every run that was begun is through."""
        await asyncio.gather(*(self._agent() for _ in range(self.at_once)))

    async def _agent(self) -> None:
        while not self.stopping.is_set():
            await self.send(run(self.chance, tools=self.tools, filler=self.filler))

    async def send(self, made: Run) -> None:
        for body in made.requests:
            await self.until_taken(body)
        self.whole.append(made)

    async def until_taken(self, body: bytes) -> None:
        while True:
            # A channel of its own: one that has lost its server waits up to minutes before it looks again.
            async with grpc.aio.insecure_channel(
                self.address, [("grpc.enable_http_proxy", 0), ("grpc.max_send_message_length", -1)]
            ) as channel:
                try:
                    await channel.unary_unary(_METHOD, None, None)(body, timeout=self.timeout)
                except grpc.aio.AioRpcError as error:
                    self.refused[error.code().name] += 1
                    assert error.code() in RETRYABLE, error
                    await asyncio.sleep(0.05)  # what a sender does; ours says a second, the test has less time
                else:
                    self.acknowledged.update(spans_in([body]))
                    return


@dataclass(frozen=True)
class Arrived:
    """What the next hop took: each span and how often; run ids and how often a first verdict on them came."""

    spans: Counter[tuple[bytes, bytes]]
    verdicts: Counter[str]

    @property
    def doubled(self) -> int:
        return sum(count - 1 for count in self.spans.values())


def arrived(hops: Sequence[NextHop]) -> Arrived:
    spans: Counter[tuple[bytes, bytes]] = Counter()
    verdicts: Counter[str] = Counter()
    for request in (request for hop in hops for request in hop.requests if request.said.good):
        if request.signal is Signal.TRACES:
            spans.update(spans_in([request.body]))
        elif request.signal is Signal.LOGS:
            records = [decode_log(wire, g.envelope) for g in shallow(request.body) for wire in g.items]
            first = [record for record in records if "luckrate.revision" not in record.attributes]
            verdicts.update(str(record.attributes["luckrate.run_id"]) for record in first)
    return Arrived(spans, verdicts)


def annotated(hop: NextHop) -> dict[str, str]:
    """Trace id → verdict on its root span, of what the hop took."""
    found = {}
    for request in hop.requests:
        if request.said.good and request.signal is Signal.TRACES:
            for group in shallow(request.body):
                for wire in group.items:
                    if b"luckrate.verdict" in wire:
                        span = decode_span(wire, group.envelope)
                        found[span.head.trace_id] = str(span.attributes["luckrate.verdict"])
    return found
