"""Parent links that come before their trace opens: remembered, and bounded."""

from __future__ import annotations

import pytest

from luckrate_otel.assemble import AgentClocks, Assembler, Clocks, Limits
from luckrate_otel.conversation import Conversations
from luckrate_otel.errors import Busy, TooLarge
from luckrate_otel.otlp.json import to_protobuf
from luckrate_otel.otlp.shallow import heads, link_of, shallow
from luckrate_otel.otlp.wire import varint
from luckrate_otel.service import recent
from luckrate_otel.service.intake import Intake
from luckrate_otel.service.judge import Judge
from luckrate_otel.service.ledger import Ledger
from luckrate_otel.service.reading import Reader
from luckrate_otel.service.recent import Recent
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.show.meter import Meter
from luckrate_otel.service.signals import Signal
from luckrate_otel.spec import Spec
from tests.next_hop import within

TRACE, OTHER = bytes([1] * 16), bytes([2] * 16)


def request(trace_id: bytes, *spans: tuple[int, int | None, str], name: str = "GET") -> bytes:
    """Spans as (id, parent id, operation or "" for an ordinary one)."""
    made = [
        {
            "traceId": trace_id.hex(),
            "spanId": f"{span:016x}",
            "parentSpanId": f"{parent:016x}" if parent else "",
            "name": operation or name,
            "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": operation}}] if operation else [],
        }
        for span, parent, operation in spans
    ]
    return to_protobuf("traces", {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": made}]}]})


def wires(body: bytes) -> list[bytes]:
    return [wire for group in shallow(body) for wire in group.items]


def link(trace_id: bytes, span: int, parent: int | None) -> tuple[bytes, bytes, bytes]:
    return trace_id, span.to_bytes(8, "big"), parent.to_bytes(8, "big") if parent else b""


@pytest.mark.parametrize("parent", [None, 7], ids=["without parent", "with parent"])
def test_links_are_given_by_trace(parent: int | None) -> None:
    kept = Recent()
    for trace_id in (TRACE, OTHER):
        kept.put(heads(wires(request(trace_id, (1, parent, "")))))
    assert kept.of(TRACE) == [link(TRACE, 1, parent)]
    assert kept.of(OTHER) == [link(OTHER, 1, parent)]


@pytest.mark.parametrize(("others", "known"), [(3, True), (4, False)], ids=["two generations", "one more"])
def test_what_is_older_than_two_generations_is_forgotten(
    others: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "GENERATION", 2)
    kept = Recent()
    kept.put(heads(wires(request(TRACE, (1, None, "")))))
    for _ in range(others - 1 if known else others):
        kept.put(heads(wires(request(OTHER, (5, None, "")))))
    assert bool(kept.of(TRACE)) is known


def test_a_gateway_that_exports_first_is_an_ancestor_all_the_same() -> None:
    """Its request holds nothing of an agent, and comes before the trace is known."""
    reader = Reader()
    assert reader.traces(request(TRACE, (1, None, ""), (2, 1, "")), ()).links == []
    reading = reader.traces(request(TRACE, (3, 2, "invoke_agent")), ())
    assert sorted(reading.links) == [link(TRACE, 1, None), link(TRACE, 2, 1)]


def test_a_request_that_is_refused_finds_them_again_when_it_is_retried() -> None:
    reader = Reader()
    reader.traces(request(TRACE, (1, None, "")), ())
    agent = request(TRACE, (3, 1, "invoke_agent"))
    assert reader.traces(agent, ()).links == reader.traces(agent, ()).links == [link(TRACE, 1, None)]


def test_a_log_record_that_opens_the_trace_finds_them_too() -> None:
    """The spans that come after it find the trace open."""
    reader = Reader()
    reader.traces(request(TRACE, (1, None, ""), (2, 1, "")), ())
    record = {
        "traceId": TRACE.hex(),
        "spanId": f"{3:016x}",
        "eventName": "gen_ai.user.message",
        "body": {"stringValue": "Where is my order?"},
    }
    body = to_protobuf("logs", {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})
    assert reader.logs(body, ()).links == [link(TRACE, 1, None), link(TRACE, 2, 1)]
    assert reader.logs(body, {TRACE}).links == []


@pytest.mark.parametrize("size", [1, 100_000])
@pytest.mark.parametrize("parent", [None, 7], ids=["without parent", "with parent"])
def test_what_is_remembered_of_a_span_does_not_grow_with_it(parent: int | None, size: int) -> None:
    reader = Reader()
    reader.traces(request(TRACE, (1, parent, ""), name="x" * size), ())
    assert [len(head) for head in reader._recent._new._unsorted] == [38 if parent else 28]


def test_spans_of_the_same_request_and_of_open_traces_need_no_memory() -> None:
    reader = Reader()
    assert reader.traces(request(TRACE, (1, None, ""), (2, 1, "invoke_agent")), ()).links == [link(TRACE, 1, None)]
    assert reader.traces(request(TRACE, (3, 1, "")), {TRACE}).links == [link(TRACE, 3, 1)]
    assert reader.traces(request(TRACE, (4, 1, "invoke_agent")), {TRACE}).links == []


LARGE = b"\xfa\x3f" + varint(100_000) + bytes(100_000)  # in a field that nobody knows
IDS = (b"\x0a\x10" + TRACE, b"\x12\x08" + bytes([3] * 8), b"\x22\x08" + bytes([4] * 8))
LAYOUTS = {
    "without parent": [*IDS[:2], LARGE],
    "the ids last": [LARGE, *IDS],
    "the parent last": [*IDS[:2], LARGE, IDS[2]],
    "between the ids": [IDS[0], LARGE, *IDS[1:]],
    "the parent first": [IDS[2], IDS[0], LARGE, IDS[1]],
    "without ids": [LARGE],
    "an id as long as a span": [b"\x0a" + varint(100_000) + bytes(100_000), *IDS[1:]],
    "no message at all": [b"\xff" * 100_000],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_of_a_large_span_only_its_ids_are_remembered(layout: list[bytes]) -> None:
    wire = b"".join(layout)
    kept = heads([wire])
    assert sum(map(len, kept)) <= 38
    assert [(link_of(head), head[2:18]) for head in kept] == ([(link_of(wire), TRACE)] if TRACE in wire else [])


def test_links_of_a_request_that_was_refused_are_there_when_it_comes_again() -> None:
    async def scenario() -> None:
        reader, outlet = Reader(), Outlet()
        assembler = Assembler(Clocks(AgentClocks(0, 10**18, 10**18), {}, 0), Limits(2**20, 2**20, 2**20))
        judge = Judge([Spec.from_mapping({"name": "s"})], Conversations(), Repeats(lambda: 0))
        intake = Intake(reader, [outlet], assembler, judge, Meter([], "0"), Ledger(), clock=lambda: 0, wall=lambda: 0)
        await intake.accept(Signal.TRACES, request(TRACE, (1, None, "")))
        agent = request(TRACE, (3, 1, "invoke_agent"), (4, 3, ""))
        for full in (Busy("full", 1.0), TooLarge("never")):
            outlet.full = full
            with pytest.raises(type(full)):
                await intake.accept(Signal.TRACES, agent)
        outlet.full = None
        assert link(TRACE, 1, None) in reader.traces(agent, ()).links

    within(10, scenario)


class Outlet:
    name = "one"
    signals = frozenset(Signal)
    full: Exception | None = None

    def check(self, _size: int, _ahead: int = 0) -> None:
        if self.full is not None:
            raise self.full

    def put(self, *_: object, **__: object) -> None:
        pass
