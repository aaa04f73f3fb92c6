"""Arbitrary telemetry and arbitrary OTLP requests, built byte by byte so that unknown fields can stand anywhere."""

from __future__ import annotations

from hypothesis import strategies as st

from luckrate_otel.otlp.encode import encode_span, our_envelope
from luckrate_otel.otlp.wire import delimited, varint
from luckrate_otel.telemetry import Head, Span, SpanEvent, Status

TIMES = st.integers(0, 2**64 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.one_of(
    st.none(), TEXTS, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.binary(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3).map(tuple), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(TEXTS, VALUES, max_size=4)
EVENTS = st.lists(st.builds(SpanEvent, TEXTS, TIMES, ATTRIBUTES), max_size=3).map(tuple)


def _id(size: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=size, max_size=size).filter(any).map(bytes.hex)


HEADS = st.builds(
    Head,
    trace_id=_id(16),
    span_id=_id(8),
    parent_id=st.one_of(st.just(""), _id(8)),
    name=TEXTS,
    kind=st.integers(0, 5),
    start_ns=TIMES,
    end_ns=TIMES,
    status=st.sampled_from(Status),
    scope=st.just("some.scope"),
    service=st.just("shop"),
)
RESOURCE = {"service.name": "shop", "replica": 3}
SPANS = st.builds(
    Span,
    head=HEADS,
    attributes=ATTRIBUTES,
    events=EVENTS,
    status_message=TEXTS,
    scope_version=st.just("1.2"),
    resource=st.just(RESOURCE),
    dropped_attributes=st.integers(0, 2**32 - 1),
)
ENVELOPE = our_envelope(RESOURCE, "some.scope", "1.2")

# Field numbers that OTLP does not use, of each wire type that can occur in proto3.
UNKNOWN_FIELDS = st.one_of(
    st.just(b""),
    st.binary(max_size=6).map(lambda payload: varint(200 << 3 | 2) + varint(len(payload)) + payload),
    st.integers(0, 2**64 - 1).map(lambda number: varint(201 << 3) + varint(number)),
    st.binary(min_size=8, max_size=8).map(lambda payload: varint(202 << 3 | 1) + payload),
    st.binary(min_size=4, max_size=4).map(lambda payload: varint(203 << 3 | 5) + payload),
)
WIRE_SPANS = st.builds(
    lambda before, span, after: before + encode_span(span) + after, UNKNOWN_FIELDS, SPANS, UNKNOWN_FIELDS
)


# Requests are cut without looking into their spans, so here these are small.
SMALL_SPANS = st.builds(
    lambda name, unknown: delimited(0x2A, name) + unknown,
    st.binary(max_size=40),
    st.sampled_from((b"", b"\xc2\x0c\x01u")),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, list[tuple[str, str, bytes]]]:
    """A traces request, and what it holds: (service, scope, span bytes) in order."""
    body = draw(UNKNOWN_FIELDS)
    told: list[tuple[str, str, bytes]] = []
    for service in draw(st.lists(st.sampled_from(("shop", "bank", "")), max_size=3)):
        resource = our_envelope({"service.name": service} if service else {}, "").resource_wire
        group = draw(UNKNOWN_FIELDS) + resource + delimited(0x1A, b"https://schema/1")
        for scope in draw(st.lists(st.sampled_from(("a", "b")), max_size=3)):
            spans = draw(st.lists(SMALL_SPANS, max_size=3))
            told += [(service, scope, span) for span in spans]
            scope_group = our_envelope({}, scope).scope_wire + b"".join(delimited(0x12, span) for span in spans)
            group += delimited(0x12, scope_group + draw(UNKNOWN_FIELDS))
        body += delimited(0x0A, group)
    return body, told
