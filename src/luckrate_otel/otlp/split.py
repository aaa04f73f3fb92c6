"""Requests taken apart and put together by size, each item kept under its envelope; and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from google.protobuf.message import DecodeError

from luckrate_otel.errors import Rejected
from luckrate_otel.otlp import schema
from luckrate_otel.otlp.encode import request
from luckrate_otel.otlp.shallow import Envelope, Group, shallow

# Tag and length of one message inside another: one byte and, below 2 GiB, at most five.
_HEADER_BYTES = 6


@dataclass(frozen=True, slots=True)
class Split:
    """bodies: requests within the limit, in order. too_large: requests of one item each that are beyond it."""

    bodies: tuple[bytes, ...]
    too_large: tuple[bytes, ...] = ()


@dataclass(slots=True)
class _Open:
    """A request being filled. size: an upper bound of its encoded size."""

    groups: list[tuple[Envelope, list[bytes]]] = field(default_factory=list)
    size: int = 0

    def cost(self, envelope: Envelope, item: bytes) -> int:
        cost = len(item) + _HEADER_BYTES
        if not self.groups or self.groups[-1][0] is not envelope:
            around = len(envelope.resource_wire) + len(envelope.scope_wire) + len(envelope.request_wire)
            cost += around + 2 * _HEADER_BYTES
        return cost

    def add(self, envelope: Envelope, item: bytes) -> None:
        self.size += self.cost(envelope, item)
        if self.groups and self.groups[-1][0] is envelope:
            self.groups[-1][1].append(item)
        else:
            self.groups.append((envelope, [item]))

    def encoded(self) -> bytes:
        return request(Group(envelope, items) for envelope, items in self.groups)


def split(body: bytes, max_bytes: int) -> Split:
    """Cut a request of any signal into requests of at most max_bytes, between its spans, log records or metrics.

    A request within the limit comes back as it is. Envelopes without items are left out of the cut ones.
    Raises Rejected if the body is not a request.
    """
    if len(body) <= max_bytes:
        return Split((body,))
    bodies: list[bytes] = []
    too_large: list[bytes] = []
    filling = _Open()
    for group in shallow(body):
        for item in group.items:
            if filling.groups and filling.size + filling.cost(group.envelope, item) > max_bytes:
                bodies.append(filling.encoded())
                filling = _Open()
            if filling.cost(group.envelope, item) > max_bytes:
                alone = request((Group(group.envelope, (item,)),))
                (too_large if len(alone) > max_bytes else bodies).append(alone)
            else:
                filling.add(group.envelope, item)
    if filling.groups:
        bodies.append(filling.encoded())
    return Split(tuple(bodies), tuple(too_large))


def halve(body: bytes) -> tuple[bytes, bytes] | None:
    """The request as two with half of the items each, to find one that is refused. None when it has fewer than two."""
    groups = shallow(body)
    total = sum(len(group.items) for group in groups)
    if total < 2:
        return None
    left: list[Group] = []
    right: list[Group] = []
    room = total // 2
    for group in groups:
        here = min(room, len(group.items))
        room -= here
        left += _part(group, group.items[:here])
        right += _part(group, group.items[here:])
    return request(left), request(right)


def _part(group: Group, items: Sequence[bytes]) -> list[Group]:
    return [Group(group.envelope, items)] if items else []


def join(bodies: Iterable[bytes]) -> bytes:
    """Requests of one signal as one, as protobuf merges them. Not for profiles: their dictionaries do not merge."""
    return b"".join(bodies)


def count(signal: str, body: bytes) -> int:
    """How many spans, log records, profiles or (metrics) data points a request holds. Raises Rejected."""
    try:
        parsed = schema.Request.FromString(body)
        scopes = [scope for resource in parsed.resources for scope in resource.scopes]
        if signal != "metrics":
            return sum(len(scope.items) for scope in scopes)
        metrics = [schema.Metric.FromString(item) for scope in scopes for item in scope.items]
    except DecodeError:
        raise Rejected(f"not an OTLP {signal} request: malformed protobuf") from None
    return sum(len(getattr(metric, kind).data_points) for metric in metrics for kind in schema.METRIC_DATA)
