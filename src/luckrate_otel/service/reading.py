"""Decode and read: one request body → what leaves at once, and what the assembler must know.

Only tool, agent and wrapper spans are held, because only they can be written on. Model calls, the giants, are read and
leave at once. Everything else leaves unread; of it only the parent links of open traces are kept.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from luckrate_otel import adapters
from luckrate_otel.assemble import Held
from luckrate_otel.errors import Rejected
from luckrate_otel.facts import Facts, Role
from luckrate_otel.otlp.decode import decode_log, decode_span, is_well_formed
from luckrate_otel.otlp.encode import strip_luckrate, traces_request
from luckrate_otel.otlp.shallow import Envelope, Group, check, heads, link_of, shallow
from luckrate_otel.record import record, replace
from luckrate_otel.service.marks import is_marked
from luckrate_otel.service.recent import Link, Recent
from luckrate_otel.telemetry import Span

# Spans decoded before they are read, a bound on what a request takes beside its bytes; more at once gains nothing.
_AT_ONCE = 128

# A span with ids and times takes 60 bytes, so 64 MiB hold no more than these; empty ones, which take two, would hold a
# core for minutes.
MAX_ITEMS = 1_048_576


@record(frozen=True, slots=True)
class Payload:
    """A held span as it goes out again: its wire bytes and what stood around them."""

    envelope: Envelope
    wire: bytes


@record(frozen=True, slots=True)
class Arrival:
    """Facts of one span or log record. payload None: it has left already; source is then what it was read from."""

    facts: Facts
    payload: Payload | None = None
    source: Payload | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A request taken apart.

    count: spans or log records in it, 1 for a request of another signal. passed: the request body that leaves at once,
    b"" if nothing does; passed_count of them. links: (trace, span, parent) ids of unread spans in traces that are open.
    failed: spans that could not be read, they pass. regraded: held spans that came with findings of a luckrate before
    us, which were taken off.
    """

    count: int
    passed: bytes
    passed_count: int
    arrivals: Sequence[Arrival] = ()
    links: Sequence[Link] = ()
    failed: int = 0
    regraded: int = 0


class Reader:
    """Takes requests apart.

    conversation_keys: span or resource attributes that name the conversation where the telemetry has no
    `gen_ai.conversation.id`, first that is set.
    """

    def __init__(self, conversation_keys: Sequence[str] = ()) -> None:
        self._conversation_keys = tuple(conversation_keys)
        self._recent = Recent()

    def traces(self, body: bytes, open_traces: Container[bytes]) -> Reading:
        """Take a traces request apart. Raises Rejected if it is none, TooLarge past MAX_ITEMS.

        A request in which nothing concerns an agent run leaves as the very bytes it came with.
        """
        groups = shallow(body, MAX_ITEMS)
        count = sum(len(group.items) for group in groups)
        if not _concerns_agents(body, groups):
            links = self._links([wire for group in groups for wire in group.items], (), open_traces)
            return Reading(count, body if count else b"", count, links=links)
        arrivals: list[Arrival] = []
        passed: list[tuple[Envelope, bytes]] = []
        unread: list[bytes] = []
        failed = regraded = 0
        for around, wires in _some_at_once(groups):
            read, gone_wrong = self._read(wires, around)
            failed += gone_wrong
            for wire, facts in zip(wires, read, strict=True):
                if facts is None:
                    unread.append(wire)
                elif facts.role is not Role.MODEL:
                    own = strip_luckrate(wire)  # from a hop before us; it is neither believed nor shown twice
                    regraded += own is not wire
                    arrivals.append(Arrival(facts, Payload(around, own)))
                    continue
                else:
                    arrivals.append(Arrival(facts, source=Payload(around, wire)))
                passed.append((around, wire))
        links = self._links(unread, arrivals, open_traces)
        rest = body if len(passed) == count else traces_request(passed)
        return Reading(count, rest if passed else b"", len(passed), arrivals, links, failed, regraded)

    def _read(self, wires: Sequence[bytes], around: Envelope) -> tuple[list[Facts | None], int]:
        """Facts of each span that an adapter claims, and how many could not be read.

        All are decoded before the first is read: each of the two is a lot of code, and a processor that goes to and fro
        between them waits for it, 2.4 µs a span.
        """
        known = around.scope in adapters.SCOPES
        failed = 0
        spans: list[Span | None] = []
        for wire in wires:
            span = None
            if known or is_marked(wire):
                try:
                    span = _decoded(wire, around)
                except Exception:  # noqa: BLE001 - one unreadable span must not cost the others; it passes, counted
                    failed += 1
            spans.append(span)
        read: list[Facts | None] = []
        for span in spans:
            facts = None
            if span is not None:
                try:
                    facts = self._facts(span)
                except Exception:  # noqa: BLE001 - as above
                    failed += 1
            read.append(facts)
        return read, failed

    def _links(self, unread: Sequence[bytes], arrivals: Sequence[Arrival], open_traces: Container[bytes]) -> list[Link]:
        """Links of unread spans in traces that are open, or open now; those of the other spans may be wanted later."""
        opened = {bytes.fromhex(trace_id) for trace_id in {arrival.facts.head.trace_id for arrival in arrivals}}
        links = [link for trace_id in opened if trace_id not in open_traces for link in self._recent.of(trace_id)]
        others: list[bytes] = []
        for head in heads(unread):
            trace_id = head[2:18]
            if trace_id in opened or trace_id in open_traces:
                links.append(link_of(head))
            else:
                others.append(head)
        self._recent.put(others)
        return links

    def span(self, wire: bytes, envelope: Envelope) -> Facts | None:
        """Decode one span and let the adapters read it; None if none claims it. Rejected if its ids are not OTLP's."""
        return self._facts(_decoded(wire, envelope))

    def _facts(self, span: Span) -> Facts | None:
        facts = adapters.read(span)
        if facts is None or facts.conversation_id is not None or not self._conversation_keys:
            return facts
        return replace(facts, conversation_id=self._conversation(span))

    def _conversation(self, span: Span) -> str | None:
        for key in self._conversation_keys:
            named = span.attributes.get(key, span.resource.get(key))
            if named not in (None, ""):
                return str(named)
        return None

    def restore(self, held: Held) -> Facts:
        """The full facts of a span that was kept without its contents; the light ones if it cannot be read any more."""
        assert isinstance(held.payload, Payload)
        return self.span(held.payload.wire, held.payload.envelope) or held.facts

    def logs(self, body: bytes, open_traces: Container[bytes]) -> Reading:
        """Take a logs request apart. Log records always pass; those of agent runs are read besides. Raises as traces().

        The first of them may open a trace, as a span may.
        """
        groups = shallow(body, MAX_ITEMS)
        count = sum(len(group.items) for group in groups)
        arrivals: list[Arrival] = []
        failed = 0
        if _concerns_agents(body, groups):
            for group in groups:
                failed += _read_records(group, arrivals)
        links = self._links((), arrivals, open_traces)
        return Reading(count, body if count else b"", count, arrivals, links, failed)

    def unread(self, body: bytes) -> Reading:
        """Take a request of metrics or profiles, which pass as they came. Raises Rejected if it is none.

        Looked at all the same: requests are joined on their way out, and a length that points past the end of one would
        swallow the next.
        """
        check(body)
        count = 1 if body else 0
        return Reading(count, body, count)


def _concerns_agents(body: bytes, groups: Sequence[Group]) -> bool:
    return any(group.envelope.scope in adapters.SCOPES for group in groups) or is_marked(body)


def _some_at_once(groups: Sequence[Group]) -> Iterator[tuple[Envelope, Sequence[bytes]]]:
    for group in groups:
        for at in range(0, len(group.items), _AT_ONCE):
            yield group.envelope, group.items[at : at + _AT_ONCE]


def _decoded(wire: bytes, envelope: Envelope) -> Span:
    span = decode_span(wire, envelope)
    if not is_well_formed(span.head):  # a zero trace id would make one run of everybody's
        raise Rejected("a span with an id that is not 16 or 8 bytes, or zero")
    return span


def _read_records(group: Group, arrivals: list[Arrival]) -> int:
    failed = 0
    known = group.envelope.scope in adapters.SCOPES
    for wire in group.items:
        if not known and not is_marked(wire):
            continue
        try:
            facts = adapters.read(decode_log(wire, group.envelope))
        except Exception:  # noqa: BLE001 - as above
            failed += 1
            continue
        if facts is not None:
            arrivals.append(Arrival(facts, source=Payload(group.envelope, wire)))
    return failed
