"""One destination from queue to next hop: retry, division, order, independence and shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import context as otel_context

from luckrate_otel.errors import Busy
from luckrate_otel.service.send.batch import ITEM_BYTES
from luckrate_otel.service.send.exporter_grpc import GrpcTransport
from luckrate_otel.service.send.exporter_http import HttpTransport
from luckrate_otel.service.send.queue import JOIN_BYTES, Account, Queue
from luckrate_otel.service.send.replies import Kind, Reply
from luckrate_otel.service.send.sender import Backoff, Sender
from luckrate_otel.service.signals import Signal
from tests.next_hop import OK, Say, grpc_next_hop, http_next_hop, within
from tests.service.test_queue import halve

TRACES, LOGS = Signal.TRACES, Signal.LOGS
SOON = Backoff(first=0.001, longest=0.002)
C = grpc.StatusCode


class Scripted:
    """A transport that answers from a function and remembers what it was given."""

    def __init__(self, answer: Callable[[bytes], Reply]) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []
        self.suppressed: set[object] = set()
        self.flying = self.most_flying = 0
        self.gate: asyncio.Event | None = None
        self.closed = False

    async def send(self, _signal: Signal, body: bytes) -> Reply:
        assert not self.closed
        self.bodies.append(body)
        self.suppressed.add(otel_context.get_value("suppress_instrumentation"))
        self.flying += 1
        self.most_flying = max(self.flying, self.most_flying)
        try:
            if self.gate is not None:
                await self.gate.wait()
            else:
                await asyncio.sleep(0)
        finally:
            self.flying -= 1
        return self.answer(body)

    async def close(self) -> None:
        self.closed = True


async def _turn() -> None:
    """Let the loop do what is ready."""
    await asyncio.sleep(0.001)


SENT = Reply(Kind.SENT, "OK")
DOWN = Reply(Kind.RETRY, "UNAVAILABLE")


def sender(
    transport: Any, *, max_bytes: int = 10**6, join_bytes: int = 1, linger_ns: int = 0, **options: Any
) -> Sender:
    line = Queue(max_bytes, join_bytes=join_bytes, linger_ns=linger_ns)
    return Sender("backend", line, transport, join_bytes=join_bytes, **{"backoff": SOON, **options})


def balanced(account: Account) -> bool:
    return account.put == account.sent + account.rejected + sum(account.dropped.values()) + account.queued


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Of the program itself: gRPC logs to asyncio when an earlier test's loop has closed under its poller."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("luckrate_otel")]


@pytest.mark.parametrize(
    ("failures", "chance", "delay"),
    [(1, 0.0, 0.0), (1, 0.5, 0.1), (2, 0.5, 0.2), (5, 1.0, 3.2), (6, 1.0, 5.0), (5000, 0.5, 2.5)],
)
def test_backoff_is_exponential_with_full_jitter_and_a_cap(failures: int, chance: float, delay: float) -> None:
    assert Backoff(first=0.2, longest=5.0).delay(failures, chance) == pytest.approx(delay)


def test_small_bodies_leave_joined_in_one_request() -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            made = sender(GrpcTransport(hop.endpoint), join_bytes=100, linger_ns=20_000_000)
            for body in (b"a", b"b", b"c"):
                made.put(TRACES, body, 1)
            await hop.until(lambda hop: len(hop.requests) == 1)
            assert hop.taken == [b"abc"]
            assert await made.drain(5) == ()
            assert made.account(TRACES) == Account(put=3, sent=3)

    within(30, scenario)


@pytest.mark.parametrize(
    ("say", "http_hop"),
    [
        *[(Say(code), False) for code in (C.UNAVAILABLE, C.ABORTED, C.DATA_LOSS, C.OUT_OF_RANGE, C.DEADLINE_EXCEEDED)],
        (Say(C.RESOURCE_EXHAUSTED, retry_after=0.01), False),
        *[(Say(http=status), True) for status in (429, 502, 503, 504)],
        (Say(reset=True), True),
    ],
)
def test_what_may_succeed_later_is_sent_again_until_it_does(say: Say, http_hop: bool) -> None:
    async def scenario() -> None:
        answers = [say, say, OK]
        hop_of = http_next_hop if http_hop else grpc_next_hop
        async with hop_of(lambda _signal, _body: answers.pop(0) if answers else OK) as hop:
            made = sender((HttpTransport if http_hop else GrpcTransport)(hop.endpoint))
            made.put(TRACES, b"a", 1)
            made.put(TRACES, b"b", 1)
            assert await made.drain(5) == ()
            assert sorted(hop.taken) == [b"a", b"b"]
            assert made.account(TRACES) == Account(put=2, sent=2)

    within(30, scenario)


@pytest.mark.parametrize("http_hop", [False, True])
def test_the_time_a_next_hop_asks_for_is_waited(http_hop: bool) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        times: list[float] = []
        retry_after: float | str = "1" if http_hop else 1.0

        def script(_signal: Signal, _body: bytes) -> Say:
            times.append(loop.time())
            return OK if len(times) > 1 else Say(C.UNAVAILABLE, 503, retry_after=retry_after)

        async with (http_next_hop if http_hop else grpc_next_hop)(script) as hop:
            made = sender((HttpTransport if http_hop else GrpcTransport)(hop.endpoint))
            made.put(TRACES, b"a", 1)
            assert await made.drain(5) == ()
            assert 1.0 <= times[1] - times[0] < 2.0

    within(30, scenario)


def test_only_the_poison_of_a_joined_batch_is_dropped() -> None:
    async def scenario() -> None:
        def script(_signal: Signal, body: bytes) -> Say:
            return Say(C.INVALID_ARGUMENT) if b"!" in body else OK

        async with grpc_next_hop(script) as hop:
            made = sender(GrpcTransport(hop.endpoint), join_bytes=1000, linger_ns=10**10, split=halve)
            for body in (b"abc", b"def", b"g!h", b"ijk", b"lmn"):
                made.put(TRACES, body, 3)
            assert await made.drain(5) == ()
            assert sorted(b"".join(hop.taken)) == sorted(b"abcdefghijklmn")
            assert made.account(TRACES) == Account(put=15, sent=14, dropped={"invalid": 1})

    within(30, scenario)


def test_a_body_over_the_next_hops_limit_is_divided_down_to_it() -> None:
    async def scenario() -> None:
        def script(_signal: Signal, body: bytes) -> Say:
            return Say(C.RESOURCE_EXHAUSTED, 413) if len(body) > 3 else OK

        for hop_of, transport_of in ((grpc_next_hop, GrpcTransport), (http_next_hop, HttpTransport)):
            async with hop_of(script) as hop:
                made = sender(transport_of(hop.endpoint), split=halve)
                made.put(TRACES, b"abcdefghij", 10)
                assert await made.drain(5) == ()
                assert sorted(b"".join(hop.taken)) == sorted(b"abcdefghij")
                assert max(map(len, hop.taken)) <= 3
                assert made.account(TRACES) == Account(put=10, sent=10)

    within(30, scenario)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(Kind.INVALID, "400"), "invalid"),
        (Reply(Kind.TOO_LARGE, "413"), "too_large"),
        (Reply(Kind.REFUSED, "401"), "refused"),
        (Reply(Kind.UNSUPPORTED, "404"), "unsupported"),
    ],
)
def test_what_can_never_be_delivered_is_dropped_once_with_its_reason(reply: Reply, reason: str) -> None:
    async def scenario() -> None:
        transport = Scripted(lambda _body: reply)
        made = sender(transport)
        made.put(TRACES, b"a", 4)
        assert await made.drain(5) == ()
        assert transport.bodies == [b"a"]
        assert made.account(TRACES) == Account(put=4, dropped={reason: 4})

    within(30, scenario)


def test_a_next_hop_without_logs_keeps_getting_traces_and_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        def script(signal: Signal, _body: bytes) -> Say:
            return Say(C.UNIMPLEMENTED) if signal is LOGS else OK

        async with grpc_next_hop(script) as hop:
            made = sender(GrpcTransport(hop.endpoint))
            for _ in range(3):
                made.put(LOGS, b"secret", 1)
                made.put(TRACES, b"t", 1)
            assert await made.drain(5) == ()
            assert hop.taken == [b"t"] * 3
            assert made.account(LOGS) == Account(put=3, dropped={"unsupported": 3})

    within(30, scenario)
    assert messages(caplog) == ["destination backend: does not take logs (UNIMPLEMENTED); counted from now on"]


def test_partial_success_is_counted_and_not_sent_again() -> None:
    async def scenario() -> None:
        async with http_next_hop(lambda _signal, _body: Say(rejected=2)) as hop:
            made = sender(HttpTransport(hop.endpoint))
            made.put(TRACES, b"a", 5)
            assert await made.drain(5) == ()
            assert len(hop.requests) == 1
            assert made.account(TRACES) == Account(put=5, sent=3, rejected=2)

    within(30, scenario)


def test_a_dead_destination_fills_its_own_queue_and_holds_up_no_other() -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            alive = sender(GrpcTransport(hop.endpoint))
            dead = sender(GrpcTransport("http://127.0.0.1:1"), max_bytes=3 * (ITEM_BYTES + 1))
            for _ in range(3):
                alive.put(TRACES, b"a", 1)
                dead.put(TRACES, b"a", 1)
            with pytest.raises(Busy, match="queue is full"):
                dead.check(1)
            alive.put(TRACES, b"b", 1)
            assert await alive.drain(5) == ()
            assert b"".join(sorted(hop.taken)) == b"aaab"
            assert [item.body for item in await dead.drain(0.05)] == [b"a"] * 3
            assert dead.account(TRACES) == Account(put=3, queued=3)

    within(30, scenario)


def test_a_next_hop_that_comes_back_gets_all_of_it_oldest_first(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with grpc_next_hop() as hop:
            port = int(hop.endpoint.rpartition(":")[2])
            made = sender(GrpcTransport(hop.endpoint), concurrency=1, backoff=Backoff(0.05, 0.1))
            made.put(TRACES, b"0", 1)
            await hop.until(lambda hop: hop.taken == [b"0"])
            while made.queue_bytes:  # else its answer may be lost with the hop, and it is rightly sent again
                await _turn()
        expected = [str(number).encode() for number in range(1, 30)]
        for body in expected:
            made.put(TRACES, body, 1)
        async with grpc_next_hop(port=port) as hop:
            assert await made.drain(50) == ()  # gRPC may wait for seconds before it connects again
            assert hop.taken == expected
            assert made.account(TRACES) == Account(put=30, sent=30)

    with caplog.at_level(logging.INFO):
        within(60, scenario)


@pytest.mark.parametrize("code", [C.DEADLINE_EXCEEDED, C.OUT_OF_RANGE])
def test_a_body_that_fails_each_time_is_kept_but_holds_up_no_other(code: grpc.StatusCode) -> None:
    async def scenario() -> None:
        async with grpc_next_hop(lambda _signal, body: Say(code) if b"!" in body else OK) as hop:
            made = sender(GrpcTransport(hop.endpoint), join_bytes=4, concurrency=1)
            for body in (b"a!", b"b", b"c", b"d", b"e"):
                made.put(TRACES, body, 1)
            await hop.until(lambda hop: sorted(b"".join(hop.taken)) == sorted(b"bcde"))
            hop.script = lambda _signal, _body: OK
            assert await made.drain(5) == ()
            assert hop.taken[-1] == b"a!"
            assert made.account(TRACES) == Account(put=5, sent=5)

    within(30, scenario)


def test_at_most_so_many_are_in_flight_and_a_failing_next_hop_is_probed_by_one() -> None:
    async def scenario() -> None:
        transport = Scripted(lambda _body: DOWN)
        transport.gate = asyncio.Event()
        made = sender(transport, concurrency=3)
        for _ in range(10):
            made.put(TRACES, b"a", 1)
        await asyncio.sleep(0)
        assert transport.most_flying == 3
        transport.gate.set()
        transport.gate = None
        while len(transport.bodies) < 8:
            transport.most_flying = 0 if len(transport.bodies) == 3 else transport.most_flying
            await asyncio.sleep(0)
        assert transport.most_flying == 1
        transport.answer = lambda _body: SENT
        assert await made.drain(5) == ()
        assert made.account(TRACES) == Account(put=10, sent=10)
        assert transport.suppressed == {True}

    within(30, scenario)


def test_requests_shrink_while_the_next_hop_fails_and_grow_again_when_it_is_well() -> None:
    async def scenario() -> None:
        answers = [DOWN, DOWN]
        transport = Scripted(lambda _body: answers.pop() if answers else SENT)
        made = sender(transport, concurrency=1, join_bytes=4, linger_ns=10**10)
        for _ in range(8):
            made.put(TRACES, b"a", 1)
        assert await made.drain(5) == ()
        assert [len(body) for body in transport.bodies] == [4, 2, 1, 2, 4, 1]

    within(30, scenario)


def test_sends_that_fail_together_are_one_failure() -> None:
    async def scenario() -> None:
        transport = Scripted(lambda _body: DOWN)
        transport.gate = asyncio.Event()
        made = sender(transport, concurrency=3, backoff=Backoff(100, 100), chance=lambda: 0.5)
        for _ in range(3):
            made.put(TRACES, b"a", 1)
        await asyncio.sleep(0)
        transport.gate.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert (transport.flying, made.failures) == (0, 1)
        assert len(await made.drain(0)) == 3

    within(30, scenario)


def test_nothing_is_sent_after_the_shutdown() -> None:
    async def scenario() -> None:
        transport = Scripted(lambda _body: SENT)
        transport.gate = asyncio.Event()
        made = sender(transport, concurrency=1)
        made.put(TRACES, b"a", 1)
        made.put(TRACES, b"b", 1)
        await asyncio.sleep(0)
        assert len(await made.drain(0)) == 2
        for _ in range(10):
            await asyncio.sleep(0)
        assert transport.bodies == [b"a"]

    within(30, scenario)


def test_shutdown_returns_what_was_cut_off_in_flight_and_takes_nothing_more() -> None:
    async def scenario() -> None:
        held = Say(wait_for=asyncio.Event())
        async with grpc_next_hop(lambda _signal, _body: held) as hop:
            made = sender(GrpcTransport(hop.endpoint), concurrency=1)
            made.put(TRACES, b"a", 1)
            made.put(TRACES, b"b", 1)
            await hop.until(lambda hop: len(hop.requests) == 1)
            assert [item.body for item in await made.drain(0.05)] == [b"a", b"b"]
            with pytest.raises(Busy, match="shutting down"):
                made.put(TRACES, b"c", 1)
            assert made.account(TRACES) == Account(put=2, queued=2)
            assert held.wait_for is not None
            held.wait_for.set()

    within(30, scenario)


def test_logs_name_the_destination_the_code_and_ids_but_nothing_of_the_data(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        answers = iter([DOWN, DOWN, Reply(Kind.SENT, "OK", rejected=1), Reply(Kind.INVALID, "400")])
        made = sender(
            Scripted(lambda _body: next(answers)), concurrency=1, identify=lambda _signal, _body: "trace 4bf9"
        )
        made.put(TRACES, b"secret", 2)
        made.put(TRACES, b"secret", 2)
        assert await made.drain(5) == ()

    with caplog.at_level(logging.INFO):
        within(30, scenario)
    assert messages(caplog) == [
        "destination backend: export failed, 524 bytes wait, trying again (UNAVAILABLE)",
        "destination backend: reachable again",
        "destination backend: next hop rejected 1 of 2 (OK)",
        "destination backend: dropped 2 of traces as invalid: trace 4bf9 (400)",
    ]


def test_a_transport_that_raises_loses_nothing() -> None:
    async def scenario() -> None:
        calls = iter([ZeroDivisionError(), None])

        def answer(_body: bytes) -> Reply:
            error = next(calls)
            if error is not None:
                raise error
            return SENT

        made = sender(Scripted(answer))
        made.put(TRACES, b"a", 1)
        assert await made.drain(5) == ()
        assert made.account(TRACES) == Account(put=1, sent=1)

    within(30, scenario)


@settings(max_examples=40, deadline=None)
@given(
    bodies=st.lists(st.integers(1, 5), min_size=1, max_size=12),
    answers=st.lists(st.sampled_from([*Kind]), max_size=40),
    join=st.integers(1, 12),
    cut=st.booleans(),
)
def test_whatever_is_answered_every_span_ends_in_one_place(
    bodies: list[int], answers: list[Kind], join: int, cut: bool
) -> None:
    """Spans are unique letters. Delivered, dropped or still queued: each is in exactly one of the three."""

    async def scenario() -> None:
        delivered: list[int] = []
        left = list(answers)

        def answer(body: bytes) -> Reply:
            kind = left.pop(0) if left else Kind.SENT
            if kind is Kind.SENT:
                delivered.extend(body)
            return Reply(kind, kind.value)

        made = sender(Scripted(answer), join_bytes=join, split=halve)
        start = 0
        for size in bodies:
            made.put(TRACES, bytes(range(start, start + size)), size)
            start += size
        remaining = await made.drain(0.0 if cut else 5)
        account = made.account(TRACES)
        waiting = [span for item in remaining for span in item.body]
        assert balanced(account)
        assert (account.put, account.queued) == (start, len(waiting))
        assert (len(delivered), account.rejected) == (account.sent, 0)
        assert len({*delivered, *waiting}) == len(delivered) + len(waiting)
        assert len(delivered) + len(waiting) + sum(account.dropped.values()) == start
        assert waiting == sorted(waiting)
        assert cut or waiting == []

    within(20, scenario)


@pytest.mark.parametrize(
    "reply", [Reply(Kind.RETRY, "DEADLINE_EXCEEDED"), Reply(Kind.RETRY, "TimeoutError"), Reply(Kind.RETRY, "504")]
)
def test_a_giant_that_takes_too_long_each_time_is_divided_until_it_gets_through(reply: Reply) -> None:
    """A next hop that manages 3 MB in its time; 16 MB were taken as one. A small one that hangs stays whole."""

    async def scenario() -> None:
        transport = Scripted(lambda body: SENT if len(body) < 3 * 10**6 and body != b"hangs" else reply)
        made = sender(transport, max_bytes=10**8, join_bytes=JOIN_BYTES, split=halve)
        giant = bytes(range(256)) * 62_500
        made.put(TRACES, giant, len(giant))
        made.put(LOGS, b"hangs", 5)
        while made.account(TRACES).queued:
            await _turn()
        taken = [body for body in transport.bodies if len(body) < 3 * 10**6 and body != b"hangs"]
        assert b"".join(taken) == giant
        assert set(map(len, taken)) == {2 * 10**6}
        assert made.account(LOGS).queued == 5
        assert {body for body in transport.bodies if len(body) < 10} == {b"hangs"}
        await made.drain(0)

    within(30, scenario)
