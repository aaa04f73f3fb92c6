"""After a crash: what was held is held again, nothing leaves twice, and verdicts are what they would have been.

A crash is played by copying the journal's files at that moment and starting a second processor on the copy.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from luckrate_otel.config import parse
from luckrate_otel.otlp.decode import decode_log, decode_span
from luckrate_otel.otlp.encode import LogEvent, encode_span, logs_request, our_envelope, traces_request
from luckrate_otel.otlp.shallow import Envelope, shallow
from luckrate_otel.record import replace
from luckrate_otel.service.journal.rows import Body, Change
from luckrate_otel.service.send.queue import JOIN_BYTES
from luckrate_otel.service.server import Server
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import Head, Span, Value
from tests.next_hop import NextHop, grpc_next_hop, within

SPEC = Spec.from_mapping({"name": "s", "required": ["lookup"], "forbidden": ["refund"], "before": [["lookup", "mail"]]})
WAITS = Spec.from_mapping({"output": {"evaluation": {"name": "correct", "label": "yes", "wait": "2s"}}})
TRACE = "ab" * 16
AGENT: dict[str, Value] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}


def span(span_id: str, parent: str, attributes: dict[str, Value], at: int = 1) -> bytes:
    """Ids are given by one byte."""
    head = Head(TRACE, span_id * 8, parent * 8, "n", 1, at, at + 1)
    return encode_span(Span(head, attributes))


def agent(span_id: str, parent: str = "") -> bytes:
    return span(span_id, parent, AGENT)


def tool(span_id: str, parent: str, name: str, at: int = 1) -> bytes:
    called: dict[str, Value] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return span(span_id, parent, {**called, "gen_ai.tool.call.arguments": '{"order": "A-1029"}'}, at)


def chat(span_id: str, parent: str, text: str = "Where is order A-1029?", at: int = 1) -> bytes:
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])
    return span(span_id, parent, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages}, at)


@dataclass
class Life:
    """One processor between its start and its end, with a next hop of its own."""

    server: Server
    hop: NextHop
    folder: Path

    async def send(self, *wires: bytes) -> None:
        body = traces_request((our_envelope({"service.name": "shop"}, "shop.agent"), wire) for wire in wires)
        async with grpc.aio.insecure_channel(self.server.addresses["grpc"]) as channel:
            await channel.unary_unary(ROUTES[Signal.TRACES].method, None, None)(body)

    async def label(self, of: str, label: str) -> None:
        """An evaluation of a span, as a log record of its own."""
        told: dict[str, Value] = {"gen_ai.evaluation.name": "correct", "gen_ai.evaluation.score.label": label}
        event = LogEvent(TRACE, of * 8, "gen_ai.evaluation.result", 5, 9, told)
        body = logs_request(our_envelope({"service.name": "shop"}, "shop.judge"), [event])
        async with grpc.aio.insecure_channel(self.server.addresses["grpc"]) as channel:
            await channel.unary_unary(ROUTES[Signal.LOGS].method, None, None)(body)

    async def crashed(self, name: str = "x") -> Path:
        """The journal as a kill at this moment would leave it."""
        assert self.server._journal is not None
        await self.server._journal.flush()
        copy = self.folder.with_name(f"{self.folder.name}{name}")
        shutil.copytree(self.folder, copy)
        return copy

    def came(self) -> list[str]:
        """First byte of each span's id, in order of arrival."""
        return [s.head.span_id[:2] for s in self.spans()]

    def spans(self) -> list[Span]:
        return [
            decode_span(wire, group.envelope)
            for request in self.hop.requests
            if request.signal is Signal.TRACES
            for group in shallow(request.body)
            for wire in group.items
        ]

    def verdicts(self) -> list[tuple[str, str]]:
        """(run id, verdict) of each log event."""
        records = [
            decode_log(wire, group.envelope).attributes
            for request in self.hop.requests
            if request.signal is Signal.LOGS
            for group in shallow(request.body)
            for wire in group.items
            if b"luckrate.run_id" in wire
        ]
        return [(str(r["luckrate.run_id"]), str(r["luckrate.verdict"])) for r in records]

    def found(self) -> Mapping[str, Mapping[str, Any]]:
        """What of ours is on each span."""
        return {
            s.head.span_id[:2]: {k: v for k, v in s.attributes.items() if k.startswith("luckrate.")}
            for s in self.spans()
        }

    async def until(self, verdicts: int) -> None:
        """So many have come, and it is known here that they have: a crash before that repeats them."""
        await self.hop.until(lambda _: len(self.verdicts()) >= verdicts)
        await self._known()

    async def until_came(self, *span_ids: str) -> None:
        """As until(), of spans."""
        await self.hop.until(lambda _: set(span_ids) <= set(self.came()))
        await self._known()

    async def _known(self) -> None:
        while any(sender.queue_bytes for sender in self.server._senders):  # noqa: ASYNC110 - a queue tells nobody
            await asyncio.sleep(0.001)


@asynccontextmanager
async def life(
    folder: Path, clocks: str = "settle: 200ms, verdict_after: 1h", spec: Spec = SPEC
) -> AsyncIterator[Life]:
    async with grpc_next_hop() as hop:
        config = parse(
            f"""
            receivers: {{grpc: {{endpoint: "127.0.0.1:0"}}, http: {{endpoint: none}}}}
            destinations: {{backend: {{endpoint: "{hop.endpoint}"}}}}
            clocks: {{{clocks}}}
            journal: {{path: {folder}}}
            metrics: {{prometheus: none}}
            admin: {{endpoint: none}}
            """,
            "test.yaml",
            {},
        )
        server = Server(config, [spec])
        await server.start()
        try:
            yield Life(server, hop, folder)
        finally:
            await server.stop(5)
            for entry in dict(server.status())["ledger"].values():
                assert entry["unaccounted"] == 0


def test_a_verdict_after_a_crash_is_the_one_without(tmp_path: Path) -> None:
    """Held spans, a model call that had left, and the parent of a span nobody reads are all known again."""

    async def scenario() -> None:
        parts: Sequence[Sequence[bytes]] = [
            [tool("03", "02", "mail"), chat("04", "01")],
            [span("02", "01", {"http.request.method": "GET"}), tool("05", "01", "refund", 5)],
        ]
        async with life(tmp_path / "one") as one:
            for part in parts:
                await one.send(*part)
            async with life(await one.crashed()) as two:
                for each in (one, two):
                    await each.send(agent("01"))
                    await each.until(verdicts=1)
                    await each.until_came("01")
                assert two.verdicts() == one.verdicts()
                told = {key: value for key, value in one.found().items() if key in two.found()}
                assert two.found() == told
                assert two.found()["01"]["luckrate.violation_count.hard"] == 3
                assert two.server.ledger.replayed[Signal.TRACES] == 2

    within(40, scenario)


def test_a_run_below_a_root_that_nobody_reads_is_known_to_be_whole_after_a_crash(tmp_path: Path) -> None:
    """Otherwise it would wait for an ancestor until verdict_after."""

    async def scenario() -> None:
        async with life(tmp_path / "one", "settle: 2s, verdict_after: 1h") as one:
            await one.send(span("09", "", {"http.request.method": "POST"}), agent("01", "09"))
            async with life(await one.crashed(), "settle: 200ms, verdict_after: 1h") as two:
                await two.until(verdicts=1)
                await two.until_came("01")
                assert two.found()["01"]["luckrate.close_reason"] == "root"

    within(40, scenario)


def test_what_the_user_said_before_a_crash_is_missing_and_not_invented(tmp_path: Path) -> None:
    """The second turn is about an order of the first: grounded there without the crash, and unknown after it."""
    grounds = Spec.from_mapping({"name": "s", "ground": True})
    clocks = "settle: 200ms, verdict_after: 1h"

    def turn(first: str, start_ns: int, *said: bytes) -> list[bytes]:
        talk: dict[str, Value] = {**AGENT, "gen_ai.conversation.id": "customer-17"}
        head = Head(first * 16, first * 8, "", "n", 1, start_ns, start_ns + 9)
        return [_in_trace(first * 16, wire) for wire in said] + [encode_span(Span(head, talk))]

    async def scenario() -> None:
        async with life(tmp_path / "one", clocks, grounds) as one:
            await one.send(*turn("01", 10, chat("11", "01", at=11)))
            await one.until(verdicts=1)
            async with life(await one.crashed(), clocks, grounds) as two:
                for each in (one, two):
                    await each.send(*turn("02", 20, chat("12", "02", "Cancel it.", 21), tool("13", "02", "lookup", 23)))
                await one.until(verdicts=2)
                await two.until(verdicts=1)
                assert one.found()["02"]["luckrate.path"] == "ok"
                assert two.found()["02"]["luckrate.path"] == "unknown"
                assert "ground" in two.found()["02"]["luckrate.not_evaluated"]

    within(40, scenario)


def _in_trace(trace_id: str, wire: bytes) -> bytes:
    decoded = decode_span(wire, Envelope())
    return encode_span(replace(decoded, head=replace(decoded.head, trace_id=trace_id)))


def test_what_was_released_does_not_leave_twice_but_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        clocks = "settle: 200ms, release_after: 200ms, verdict_after: 1h"
        async with life(tmp_path / "one", clocks) as one:
            await one.send(tool("03", "01", "lookup"))
            await one.until_came("03")
            async with life(await one.crashed(), clocks) as two:
                await two.send(agent("01"))
                await two.until(verdicts=1)
                await two.server.stop(5)
                assert two.came() == ["01"]
                assert two.found()["01"]["luckrate.steps"] == 1
                assert two.found()["01"]["luckrate.violation_count.hard"] == 0

    within(40, scenario)


def test_of_two_runs_of_a_trace_only_the_open_one_is_judged_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path / "one") as one:
            await one.send(tool("13", "11", "lookup"), chat("14", "11"))
            await one.send(tool("03", "01", "refund"), agent("01"), chat("04", "01"))
            await one.until(verdicts=1)
            async with life(await one.crashed()) as two:
                assert two.server.ledger.replayed[Signal.TRACES] == 1
                await two.send(agent("11"))
                await two.until(verdicts=1)
                await two.server.stop(5)
                assert [run_id for run_id, _ in two.verdicts()] == [f"{TRACE}:{'11' * 8}"]
                assert sorted(set(two.came()) - {"14", "04"}) == ["11", "13"]
                assert two.found()["11"]["luckrate.steps"] == 1

    within(40, scenario)


def test_what_comes_late_for_a_run_judged_before_the_crash_is_no_second_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        clocks = "settle: 200ms, verdict_after: 300ms"
        async with life(tmp_path / "one", clocks) as one:
            await one.send(tool("03", "01", "lookup"), agent("01"))
            await one.until(verdicts=1)
            async with life(await one.crashed(), clocks) as two:
                assert two.server.ledger.replayed[Signal.TRACES] == 0
                await two.send(tool("05", "01", "refund", 5))
                await two.until_came("05")
                await two.server.stop(5)
                assert two.verdicts() == []
                assert two.found()["05"].get("luckrate.late") is True
            again = shutil.copytree(two.folder, tmp_path / "three")
            async with life(again, clocks) as three:  # a clean stop remembers it too
                await three.send(tool("06", "01", "refund", 6))
                await three.until_came("06")
                assert three.verdicts() == []

    within(40, scenario)


def test_a_run_that_waits_for_its_evaluation_is_judged_once_whatever_dies_meanwhile(tmp_path: Path) -> None:
    """Its spans have left, undecided; what is still to be said of it is said by whoever lives when the label comes."""

    async def scenario() -> None:
        async with life(tmp_path / "one", spec=WAITS) as one:
            await one.send(tool("03", "01", "lookup"), chat("04", "01"), agent("01"))
            await one.until_came("01")
            async with life(await one.crashed(), spec=WAITS) as two:
                assert two.server.ledger.replayed[Signal.TRACES] == 0  # no span of it is owed any more
                await two.label("01", "yes")
                await two.until(verdicts=1)
                async with life(await two.crashed(), spec=WAITS) as three:
                    assert three.server.status()["journal"]["open_traces"] == 0
                    await three.label("01", "no")
                await two.server.stop(5)
                assert two.verdicts() == [(f"{TRACE}:{'01' * 8}", "pass")]
                assert (two.came(), three.came(), three.verdicts()) == ([], [], [])
            assert one.verdicts() == []

    within(40, scenario)


def test_an_evaluation_that_never_comes_is_waited_for_once_and_the_run_counted_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path / "one", spec=WAITS) as one:
            await one.send(tool("03", "01", "lookup"), agent("01"))
            await one.until_came("01")
            before = await one.crashed()
            await one.until(verdicts=1)  # the wait is over
            async with life(before, spec=WAITS) as two, life(await one.crashed("z"), spec=WAITS) as three:
                await two.until(verdicts=1)
                await two.server.stop(5)
                assert three.server.status()["journal"]["open_traces"] == 0
                await three.server.stop(5)
                assert two.verdicts() == one.verdicts() == [(f"{TRACE}:{'01' * 8}", "pass")]  # by its status
                assert (two.came(), three.came(), three.verdicts()) == ([], [], [])
                assert (one.server.ledger.graded, two.server.ledger.graded, three.server.ledger.graded) == (1, 1, 0)

    within(40, scenario)


def test_of_a_waiting_run_and_another_of_its_trace_each_is_judged_once(tmp_path: Path) -> None:
    """Late spans of the waiting run are part of it; the other run's rows stay when the wait is over."""

    async def scenario() -> None:
        async with life(tmp_path / "one", spec=WAITS) as one:
            await one.send(tool("13", "11", "lookup"), chat("14", "11"))
            await one.send(tool("03", "01", "lookup"), chat("04", "01"), agent("01"))
            await one.until_came("01")
            await one.send(tool("05", "01", "lookup", 5))  # late, and it waits on
            await one.until_came("05")
            async with life(await one.crashed(), spec=WAITS) as two:
                assert two.server.ledger.replayed[Signal.TRACES] == 1
                await two.label("01", "yes")
                await two.until(verdicts=1)
                async with life(await two.crashed(), spec=WAITS) as three:
                    assert three.server.ledger.replayed[Signal.TRACES] == 1
                    await three.send(agent("11"))
                    await three.label("11", "yes")
                    await three.until(verdicts=1)
                    await three.server.stop(5)
                    assert three.verdicts() == [(f"{TRACE}:{'11' * 8}", "pass")]
                    assert sorted(three.came()) == ["11", "13"]
                assert two.verdicts() == [(f"{TRACE}:{'01' * 8}", "pass")]
                assert two.came() == []

    within(40, scenario)


def test_a_round_of_verdicts_leaves_in_bodies_of_the_usual_size(tmp_path: Path) -> None:
    """Ten megabytes that were held, judged at once: after a start, and when it stops."""

    async def scenario() -> None:
        filler: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "lookup",
            "gen_ai.tool.call.result": "r" * 100_000,
        }
        ids = [f"{number:02x}" for number in range(2, 102)]
        async with life(tmp_path / "one", "settle: 1h, release_after: 1h, verdict_after: 1h") as one:
            for at in range(0, 100, 20):
                await one.send(*(span(each, "01", filler) for each in ids[at : at + 20]))
            await one.send(agent("01"), span("fe", "01", {**filler, "gen_ai.tool.call.result": "r" * 3_000_000}))
            async with life(await one.crashed()) as two:
                await two.until(verdicts=1)
        for each in (one, two):
            assert sorted(each.came()) == ["01", *ids, "fe"]
            sizes = [len(request.body) for request in each.hop.requests if request.signal is Signal.TRACES]
            assert [size > JOIN_BYTES for size in sizes].count(True) == 1, sizes
            assert max(sizes) < 3_010_000

    within(60, scenario)


def test_what_waits_for_a_destination_that_is_gone_is_counted_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of three spans and a verdict that waited for two destinations, the one that is left has all."""

    async def scenario() -> None:
        async with life(tmp_path / "one") as one:
            await one.send(chat("04", "01"), agent("01"), tool("05", "01", "refund"))
            await one.until(verdicts=1)
            assert one.server._journal is not None
            names = ("backend", "old")
            bodies = [
                Body(900 + n, s, c, b"", names) for n, (s, c) in enumerate([(Signal.TRACES, 3), (Signal.LOGS, 1)])
            ]
            await one.server._journal.write(Change(bodies), owed=True)
            async with life(await one.crashed()) as two:
                status = dict(two.server.status())
                assert {name: entry["unwanted"] for name, entry in status["ledger"].items() if entry["unwanted"]} == {
                    "traces": 3,
                    "logs": 1,
                }
                accounts = status["destinations"]["backend"]["signals"]
                assert (accounts["traces"]["replayed"], accounts["logs"]["replayed"]) == (3, 1)
            async with life(two.folder) as three:
                assert dict(three.server.status())["ledger"]["traces"]["replayed"] == 0

    within(30, scenario)
    assert [line for line in caplog.messages if "not configured" in line] == [
        "destination old is not configured any more; dropped: 2 requests for it (4 spans or records)"
    ]
