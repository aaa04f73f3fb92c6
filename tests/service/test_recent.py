"""Parent links that come before their trace opens: remembered, each once, and bounded."""

from __future__ import annotations

import pytest

from luckrate_otel.otlp.json import to_protobuf
from luckrate_otel.otlp.shallow import heads, shallow
from luckrate_otel.service import recent
from luckrate_otel.service.reading import Reader
from luckrate_otel.service.recent import Recent

TRACE, OTHER = bytes([1] * 16), bytes([2] * 16)


def request(trace_id: bytes, *spans: tuple[int, int | None, str]) -> bytes:
    """Spans as (id, parent id, operation or "" for an ordinary one)."""
    made = [
        {
            "traceId": trace_id.hex(),
            "spanId": f"{span:016x}",
            "parentSpanId": f"{parent:016x}" if parent else "",
            "name": operation or "GET",
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
def test_links_are_given_once_and_by_trace(parent: int | None) -> None:
    kept = Recent()
    for trace_id in (TRACE, OTHER):
        kept.put(heads(wires(request(trace_id, (1, parent, "")))))
    assert kept.take(TRACE) == [link(TRACE, 1, parent)]
    assert kept.take(TRACE) == []
    assert kept.take(OTHER) == [link(OTHER, 1, parent)]


@pytest.mark.parametrize(("others", "known"), [(3, True), (4, False)], ids=["two generations", "one more"])
def test_what_is_older_than_two_generations_is_forgotten(
    others: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "GENERATION", 2)
    kept = Recent()
    kept.put(heads(wires(request(TRACE, (1, None, "")))))
    for _ in range(others - 1 if known else others):
        kept.put(heads(wires(request(OTHER, (5, None, "")))))
    assert bool(kept.take(TRACE)) is known


def test_a_gateway_that_exports_first_is_an_ancestor_all_the_same() -> None:
    """Its request holds nothing of an agent, and comes before the trace is known."""
    reader = Reader()
    assert reader.traces(request(TRACE, (1, None, ""), (2, 1, "")), ()).links == []
    reading = reader.traces(request(TRACE, (3, 2, "invoke_agent")), ())
    assert sorted(reading.links) == [link(TRACE, 1, None), link(TRACE, 2, 1)]


def test_spans_of_the_same_request_and_of_open_traces_need_no_memory() -> None:
    reader = Reader()
    assert reader.traces(request(TRACE, (1, None, ""), (2, 1, "invoke_agent")), ()).links == [link(TRACE, 1, None)]
    assert reader.traces(request(TRACE, (3, 1, "")), {TRACE}).links == [link(TRACE, 3, 1)]
    assert reader.traces(request(TRACE, (4, 1, "invoke_agent")), {TRACE}).links == []
