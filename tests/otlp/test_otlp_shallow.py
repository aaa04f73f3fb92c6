from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp import shallow
from luckrate_otel.otlp.decode import is_well_formed
from luckrate_otel.otlp.encode import request
from luckrate_otel.otlp.shallow import Envelope, heads, link_of
from luckrate_otel.otlp.wire import delimited
from luckrate_otel.telemetry import Head
from tests.otlp.otlp_strategies import requests

TRACE, SPAN, PARENT = bytes(range(1, 17)), bytes(range(1, 9)), bytes(range(2, 10))


def _request(*services: str) -> bytes:
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=Resource(attributes=[KeyValue(key="service.name", value=AnyValue(string_value=service))]),
                scope_spans=[
                    ScopeSpans(
                        scope=InstrumentationScope(name="lib", version="2"),
                        spans=[Span(trace_id=TRACE, span_id=SPAN, name=service)],
                        schema_url="https://schema/2",
                    )
                ],
                schema_url="https://schema/1",
            )
            for service in services
        ]
    ).SerializeToString()


def test_a_request_is_cut_into_groups() -> None:
    shop, bank = shallow.shallow(_request("shop", "bank"))
    assert (shop.envelope.service, shop.envelope.scope, shop.envelope.scope_version) == ("shop", "lib", "2")
    assert shop.envelope.resource == {"service.name": "shop"}
    assert shop.items == [Span(trace_id=TRACE, span_id=SPAN, name="shop").SerializeToString()]
    assert bank.envelope.service == "bank"


def test_an_empty_request_has_no_groups() -> None:
    assert shallow.shallow(b"") == ()


def test_envelopes_of_one_process_are_one_object() -> None:
    first, second = shallow.shallow(_request("shop")), shallow.shallow(_request("shop"))
    assert first[0].envelope is second[0].envelope


def test_a_large_resource_is_read_but_not_remembered() -> None:
    first, second = (shallow.shallow(_request("s" * 9_000))[0].envelope for _ in range(2))
    assert first == second
    assert first is not second


def test_a_flood_of_scopes_is_rejected_and_a_large_resource_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shallow, "MAX_GROUPS", 20)
    resource = delimited(0x0A, b"\n\x02\n\0" * 3_000)
    group = resource + b"\x12\x02\x12\0" * 19
    groups = shallow.shallow(delimited(0x0A, group))
    assert len(groups) == 19
    assert groups[0].envelope.resource is groups[-1].envelope.resource
    with pytest.raises(TooLarge):
        shallow.shallow(delimited(0x0A, group + b"\x12\x02\x12\0"))


@pytest.mark.parametrize("scopes", [[4], [1, 3], [0, 2, 2]], ids=str)
def test_more_items_than_are_allowed_are_rejected(scopes: list[int]) -> None:
    body = b"".join(delimited(0x0A, delimited(0x12, b"\x12\0" * count)) for count in scopes)
    assert sum(len(group.items) for group in shallow.shallow(body, 4)) == 4
    with pytest.raises(TooLarge, match="more than 3 spans or log records in one request"):
        shallow.shallow(body, 3)


def test_no_more_envelopes_are_remembered_than_the_bound() -> None:
    for number in range(2_000):
        shallow.envelope(b"", ScopeSpans(schema_url=f"https://schema/{number}").SerializeToString())
        assert len(shallow._seen) <= 1024


def test_a_resource_without_a_text_service_name_has_none() -> None:
    resource = Resource(attributes=[KeyValue(key="service.name", value=AnyValue(int_value=1))])
    envelope = shallow.envelope(ResourceSpans(resource=resource).SerializeToString(), b"")
    assert (envelope.service, envelope.resource) == ("", {"service.name": 1})


def test_a_resource_given_twice_is_merged_as_protobuf_does() -> None:
    halves = [
        ResourceSpans(resource=Resource(attributes=[KeyValue(key=key)])).SerializeToString() for key in ("a", "b")
    ]
    assert shallow.envelope(b"".join(halves), b"").resource == {"a": None, "b": None}


@given(requests())
def test_shallow_decode_then_encode_keeps_each_span_and_all_around_it(
    generated: tuple[bytes, list[tuple[str, str, bytes]]],
) -> None:
    body, told = generated
    groups = shallow.shallow(body)
    assert [(g.envelope.service, g.envelope.scope, item) for g in groups for item in g.items] == told
    again = shallow.shallow(request(groups))
    assert _flat(again) == _flat(groups)


def _flat(groups: tuple[shallow.Group, ...]) -> list[tuple[Envelope, bytes]]:
    """Sorted by envelope, stably: encoding puts equal envelopes together and keeps the order in each."""
    flat = [(group.envelope, item) for group in groups for item in group.items]
    return sorted(flat, key=lambda pair: (pair[0].resource_wire, pair[0].scope_wire))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xff", "not an OTLP request"),
        (b"\n\x05abc", "not an OTLP request"),
        (b"\n\x0a\n\x02\n\x05\x12\x04\x12\x02ab", "not an OTLP resource"),
        (b"\n\x0a\x12\x08\n\x02\n\x05\x12\x02ab", "not an OTLP instrumentation scope"),
    ],
)
def test_malformed_requests_are_rejected(body: bytes, message: str) -> None:
    with pytest.raises(Rejected, match=message):
        shallow.shallow(body)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_are_read_or_rejected(body: bytes) -> None:
    for read in (shallow.shallow, link_of):
        with suppress(Rejected):
            read(body)


CANONICAL = Span(trace_id=TRACE, span_id=SPAN, parent_span_id=PARENT, name="x").SerializeToString()
ROOT = Span(trace_id=TRACE, span_id=SPAN, name="x").SerializeToString()
WITH_STATE = Span(trace_id=TRACE, span_id=SPAN, trace_state="a=b", parent_span_id=PARENT).SerializeToString()
REORDERED = b'"\x08' + PARENT + b"\x12\x08" + SPAN + b"\n\x10" + TRACE
PARENT_LAST = ROOT + b'"\x08' + PARENT


@pytest.mark.parametrize(
    ("wire", "link"),
    [
        (CANONICAL, (TRACE, SPAN, PARENT)),
        (ROOT, (TRACE, SPAN, b"")),
        (WITH_STATE, (TRACE, SPAN, PARENT)),
        (REORDERED, (TRACE, SPAN, PARENT)),
        (PARENT_LAST, (TRACE, SPAN, PARENT)),
        (Span(trace_id=b"short", span_id=SPAN).SerializeToString(), (b"short", SPAN, b"")),
        (b"", (b"", b"", b"")),
        (Span(trace_id=TRACE, span_id=SPAN, parent_span_id=bytes(8)).SerializeToString(), (TRACE, SPAN, b"")),
        (ROOT + b'"\x08' + bytes(8), (TRACE, SPAN, b"")),
    ],
)
def test_ids_are_found_wherever_they_stand(wire: bytes, link: tuple[bytes, bytes, bytes]) -> None:
    assert link_of(wire) == link


@pytest.mark.parametrize("wire", [b"\n\x10short", b"\n\x10" + TRACE + b"\x12\x08abc", CANONICAL[:30]])
def test_spans_that_break_off_in_their_ids_are_rejected(wire: bytes) -> None:
    with pytest.raises(Rejected, match="not an OTLP span"):
        link_of(wire)


# Fields of a span in any order, with others in between whose bytes look like an id's.
FIELDS = [
    b"\n\x10" + TRACE,
    b"\x12\x08" + SPAN,
    b'"\x08' + PARENT,
    b'*\x08"\x08xxxxxx',
    b"*\x08xxxxxxxx",
    b"*\x10" + b"x" * 16,
    b"*\x1a" + b"x" * 26,
    b"*\x80\x10" + b"x" * 2048,
]


@given(st.permutations(FIELDS), st.integers(0, len(FIELDS)))
@example([FIELDS[0], FIELDS[4], FIELDS[2], FIELDS[1]], 4)  # the parent where it belongs, the span id elsewhere
@example([FIELDS[6], FIELDS[2], FIELDS[0], FIELDS[1]], 4)
def test_a_head_says_what_the_span_says_and_no_more(fields: list[bytes], taken: int) -> None:
    wire = b"".join(fields[:taken])
    trace_id, span_id, parent_id = link_of(wire)
    if trace_id and span_id:
        (head,) = heads([wire])
        assert link_of(head) == (trace_id, span_id, parent_id)
        assert head[2:18] == trace_id
        assert len(head) == (38 if parent_id else 28)
    else:
        assert heads([wire]) == []


@pytest.mark.parametrize(
    "wire",
    [
        b"",
        b"\xff",
        CANONICAL[:37],
        Span(trace_id=b"short", span_id=SPAN).SerializeToString(),
        Span(trace_id=TRACE, span_id=b"long" * 8).SerializeToString(),
    ],
    ids=repr,
)
def test_what_is_no_span_of_otlp_has_no_head(wire: bytes) -> None:
    assert heads([CANONICAL, wire, CANONICAL]) == [CANONICAL[:38]] * 2


@pytest.mark.parametrize("parent", [b"x", b"x" * 9, b"x" * 4096], ids=len)
@pytest.mark.parametrize("more", [b"", b'*\x02"\x08'], ids=["", "looks like a parent"])
def test_a_parent_that_is_no_id_counts_as_none(parent: bytes, more: bytes) -> None:
    wire = Span(trace_id=TRACE, span_id=SPAN, parent_span_id=parent).SerializeToString() + more
    assert heads([wire]) == [ROOT[:28]]


@pytest.mark.parametrize(
    ("link", "well"),
    [
        ((TRACE, SPAN, b""), True),
        ((TRACE, SPAN, PARENT), True),
        ((TRACE, SPAN, bytes(8)), True),
        ((TRACE[:15], SPAN, b""), False),
        ((TRACE + b"a", SPAN, b""), False),
        ((bytes(16), SPAN, b""), False),
        ((TRACE, SPAN[:7], b""), False),
        ((TRACE, bytes(8), b""), False),
        ((TRACE, SPAN, b"a"), False),
        ((b"", b"", b""), False),
    ],
)
def test_ids_of_wrong_length_or_zero_are_told(link: tuple[bytes, bytes, bytes], *, well: bool) -> None:
    trace_id, span_id, parent_id = (part.hex() for part in link)
    assert is_well_formed(Head(trace_id, span_id, parent_id, "", 1, 0, 0)) is well
