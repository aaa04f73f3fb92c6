"""What a next hop answered, and what that means for a batch: the OTLP retry rules as tables, apart from both wires."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from luckrate_otel.service.signals import Signal

# Seconds for one attempt, connecting included; OTLP exporters' own default.
TIMEOUT = 10.0


class Kind(StrEnum):
    """What to do with a batch. The value is the reason under which it is counted if it has to be dropped."""

    SENT = "sent"
    RETRY = "retry"  # keep it, try later
    TOO_LARGE = "too_large"  # divide it
    INVALID = "invalid"  # something in it is bad: divide it until only that is left
    UNSUPPORTED = "unsupported"  # the next hop does not take this signal (Jaeger and logs)
    REFUSED = "refused"  # permanent, and not for what is in it: credentials, redirects, a broken server


@dataclass(frozen=True, slots=True)
class Reply:
    """code: as on the wire ("UNAVAILABLE", "503"), or the name of the failure to connect. It is a metric label.

    rejected: count in partial_success. retry_after: seconds the next hop asked for.
    """

    kind: Kind
    code: str
    rejected: int = 0
    retry_after: float | None = None

    @property
    def blames_batch(self) -> bool:
        """A failure that may be for what was sent (too much to take in time, say), though OTLP has it retried."""
        return self.code in _BATCH_AT_FAULT


_BATCH_AT_FAULT = frozenset(
    {"CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "DATA_LOSS", "502", "504"}
    | {"TimeoutError", "ServerTimeoutError", "SocketTimeoutError", "ServerDisconnectedError", "ClientOSError"}
)


class Transport(Protocol):
    """One next hop. send() raises nothing but CancelledError, on which the batch may or may not have arrived."""

    async def send(self, signal: Signal, body: bytes) -> Reply: ...

    async def close(self) -> None: ...


_GRPC: Mapping[grpc.StatusCode, Kind] = MappingProxyType(
    {
        grpc.StatusCode.CANCELLED: Kind.RETRY,
        grpc.StatusCode.DEADLINE_EXCEEDED: Kind.RETRY,
        grpc.StatusCode.ABORTED: Kind.RETRY,
        grpc.StatusCode.OUT_OF_RANGE: Kind.RETRY,
        grpc.StatusCode.UNAVAILABLE: Kind.RETRY,
        grpc.StatusCode.DATA_LOSS: Kind.RETRY,
        grpc.StatusCode.RESOURCE_EXHAUSTED: Kind.TOO_LARGE,  # with RetryInfo: RETRY
        grpc.StatusCode.INVALID_ARGUMENT: Kind.INVALID,
        grpc.StatusCode.UNIMPLEMENTED: Kind.UNSUPPORTED,
    }
)

_HTTP: Mapping[int, Kind] = MappingProxyType(
    {
        429: Kind.RETRY,
        502: Kind.RETRY,
        503: Kind.RETRY,
        504: Kind.RETRY,
        400: Kind.INVALID,
        413: Kind.TOO_LARGE,
        404: Kind.UNSUPPORTED,
        405: Kind.UNSUPPORTED,
        501: Kind.UNSUPPORTED,
    }
)


def grpc_reply(code: grpc.StatusCode, details: bytes | None) -> Reply:
    """details: the call's grpc-status-details-bin, if it had one."""
    retry_after = _retry_info(details)
    kind = _GRPC.get(code, Kind.REFUSED)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and retry_after is not None:
        kind = Kind.RETRY
    return Reply(kind, code.name, retry_after=retry_after)


def http_reply(status: int, retry_after: str | None, now: Callable[[], datetime]) -> Reply:
    """retry_after: the header, seconds or a date; what cannot be read is as if absent."""
    if 200 <= status < 300:
        return Reply(Kind.SENT, str(status))
    return Reply(_HTTP.get(status, Kind.REFUSED), str(status), retry_after=_seconds(retry_after, now))


def rejected_count(response: bytes) -> int:
    """partial_success's count in an Export response, the same field in all four; 0 if it cannot be read.

    What the next hop says after it has taken the data is no reason to send it again.
    """
    if not response:
        return 0
    try:
        made = trace_service_pb2.ExportTraceServiceResponse.FromString(response)
    except DecodeError:
        return 0
    return max(0, made.partial_success.rejected_spans)


def _retry_info(details: bytes | None) -> float | None:
    if not details:
        return None
    info = error_details_pb2.RetryInfo()
    try:
        for detail in status_pb2.Status.FromString(details).details:
            if detail.Unpack(info):
                return max(0.0, float(info.retry_delay.ToNanoseconds()) / 1e9)
    except DecodeError:
        pass
    return None


def _seconds(retry_after: str | None, now: Callable[[], datetime]) -> float | None:
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - now()).total_seconds())
