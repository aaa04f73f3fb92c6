"""What a sender is told: the one table of outcomes and their codes on both wires, and the bodies that carry them.

OTLP retries only HTTP 429, 502, 503, 504 and a few gRPC codes; any other refusal makes the sender throw its data away.
So an outcome here is `retry` whenever the same request could succeed later, our own faults included.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import grpc
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from luckrate_otel.errors import Busy, Rejected, TooLarge
from luckrate_otel.service.receive.inflate import OFFERED
from luckrate_otel.service.signals import ROUTES, Signal

PROTOBUF = "application/x-protobuf"
JSON = "application/json"

# gRPC peers commonly refuse more than 8 KiB of trailers. The text travels three times (grpc-message, percent-encoded;
# Status.message and BadRequest, base64), in the worst case 3 + 4/3 + 4/3 bytes each: 5.7 KiB.
MAX_WORDS_BYTES = 1024

# Seconds a sender waits after a refusal that names no time of its own; SDKs start at 1 s.
RETRY_AFTER = 1.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """A request that was taken. rejected: spans, log records or data points of it that were not, and why."""

    rejected: int = 0
    message: str = ""


# Takes one encoded Export request; raises Rejected, TooLarge or Busy. It may be cancelled at any await when the sender
# goes away, so it must not leave half a request behind.
Accept = Callable[[Signal, bytes], Awaitable[Accepted]]


class Outcome(StrEnum):
    REJECTED = "rejected"
    TOO_LARGE = "too_large"
    BUSY = "busy"
    FAULT = "fault"
    UNAUTHENTICATED = "unauthenticated"
    PATH = "path"
    METHOD = "method"
    CONTENT_TYPE = "content_type"
    ENCODING = "encoding"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Answer:
    http: int
    grpc: grpc.StatusCode
    retry: bool = False


ANSWERS: Mapping[Outcome, Answer] = MappingProxyType(
    {
        Outcome.REJECTED: Answer(400, grpc.StatusCode.INVALID_ARGUMENT),
        # Without RetryInfo, or the same large body would come for ever (OUT_OF_RANGE would be retried as well).
        Outcome.TOO_LARGE: Answer(413, grpc.StatusCode.RESOURCE_EXHAUSTED),
        Outcome.BUSY: Answer(503, grpc.StatusCode.UNAVAILABLE, retry=True),
        # Not 500 or INTERNAL: those are permanent in OTLP, and our bug must not cost the sender its data.
        Outcome.FAULT: Answer(503, grpc.StatusCode.UNAVAILABLE, retry=True),
        Outcome.UNAUTHENTICATED: Answer(401, grpc.StatusCode.UNAUTHENTICATED),
        # The next four cannot happen in a gRPC handler: the library answers before it is called, UNIMPLEMENTED to a
        # wrong path, INTERNAL to a compression it does not know.
        Outcome.PATH: Answer(404, grpc.StatusCode.UNIMPLEMENTED),
        Outcome.METHOD: Answer(405, grpc.StatusCode.UNIMPLEMENTED),
        Outcome.CONTENT_TYPE: Answer(415, grpc.StatusCode.UNIMPLEMENTED),
        Outcome.ENCODING: Answer(415, grpc.StatusCode.UNIMPLEMENTED),
        Outcome.DEADLINE: Answer(408, grpc.StatusCode.DEADLINE_EXCEEDED),
    }
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request was not taken. retry_after: seconds, only of outcomes that may be retried."""

    outcome: Outcome
    message: str
    retry_after: float | None = None

    @property
    def answer(self) -> Answer:
        return ANSWERS[self.outcome]


class Refused(Exception):
    """Raised inside a receiver, for conditions that only the transport knows."""

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


def refusal(error: Exception) -> Refusal:
    """What to tell the sender about an error; the text of an unforeseen one stays inside."""
    match error:
        case Refused():
            return Refusal(error.outcome, str(error))
        case TooLarge():
            return Refusal(Outcome.TOO_LARGE, str(error))
        case Rejected():
            return Refusal(Outcome.REJECTED, str(error))
        case Busy():
            return Refusal(Outcome.BUSY, str(error), error.retry_after)
        case _:
            return Refusal(Outcome.FAULT, "internal error; nothing was taken, try again", RETRY_AFTER)


def status(refused: Refusal) -> status_pb2.Status:
    """google.rpc.Status, with RetryInfo if the sender may try again and BadRequest if the body is at fault."""
    text = short(refused.message)
    made = status_pb2.Status(code=refused.answer.grpc.value[0], message=text)
    if refused.answer.retry:
        info = error_details_pb2.RetryInfo()
        info.retry_delay.FromNanoseconds(int((refused.retry_after or RETRY_AFTER) * 1e9))
        made.details.add().Pack(info)
    elif refused.outcome is Outcome.REJECTED:
        violation = error_details_pb2.BadRequest.FieldViolation(field="body", description=text)
        made.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    return made


def refusal_body(refused: Refusal, media: str) -> bytes:
    """HTTP body of a refusal, in the request's encoding."""
    made = status(refused)
    if media == JSON:
        return json_format.MessageToJson(made, indent=None).encode()
    return bytes(made.SerializeToString())


def refusal_headers(refused: Refusal) -> dict[str, str]:
    """HTTP headers that belong to a refusal, besides its content type."""
    if refused.answer.retry:
        # Whole seconds on this wire; rounding down could ask for a retry at once.
        return {"Retry-After": str(max(1, math.ceil(refused.retry_after or RETRY_AFTER)))}
    extra = {
        Outcome.UNAUTHENTICATED: {"WWW-Authenticate": "Bearer"},
        Outcome.METHOD: {"Allow": "POST"},
        Outcome.ENCODING: {"Accept-Encoding": OFFERED},
    }
    return extra.get(refused.outcome, {})


def accepted_body(signal: Signal, accepted: Accepted, media: str = PROTOBUF) -> bytes:
    """Export<Signal>ServiceResponse; partial_success is set only if there is something to say.

    The four response messages have the same field numbers, so one of them encodes all.
    """
    if not accepted.rejected and not accepted.message:
        return b"{}" if media == JSON else b""
    text = short(accepted.message)
    if media == JSON:
        partial = {ROUTES[signal].rejected: str(accepted.rejected), "errorMessage": text}
        return json.dumps({"partialSuccess": partial}).encode()
    partial_success = trace_service_pb2.ExportTracePartialSuccess(rejected_spans=accepted.rejected, error_message=text)
    return trace_service_pb2.ExportTraceServiceResponse(partial_success=partial_success).SerializeToString()


def short(message: str) -> str:
    """The message cut to MAX_WORDS_BYTES of UTF-8, whole characters only."""
    return message.encode(errors="replace")[:MAX_WORDS_BYTES].decode(errors="ignore")
