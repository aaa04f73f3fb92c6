"""OTLP over gRPC. Handlers take and give raw bytes: no protobuf message is built to receive a request."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import cast

import grpc
import grpc.aio

from luckrate_otel.errors import LuckrateError, Rejected, TooLarge
from luckrate_otel.service.receive.answers import (
    Accept,
    Accepted,
    Outcome,
    Refusal,
    Refused,
    accepted_body,
    refusal,
    status,
)
from luckrate_otel.service.receive.auth import Token, authorise
from luckrate_otel.service.receive.inflate import MAX_MESSAGE_BYTES, Body
from luckrate_otel.service.receive.turns import LARGE_BYTES
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.service.tls import Tls, server_credentials

_log = logging.getLogger(__name__)

# Requests in work per connection; more wait in HTTP/2 flow control, which loses nothing. (The library's own cap on
# concurrent calls answers RESOURCE_EXHAUSTED, on which a sender drops its data.)
MAX_STREAMS = 100

# How the library's compressions begin: it writes no others, and refuses others.
_GZIP = b"\x1f\x8b"
_DEFLATE = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")

Context = grpc.aio.ServicerContext[bytes, bytes]


class GrpcReceiver:
    """One gRPC server for all signals; hands each body to `accept` and answers by the table of answers.py.

    token: bearer token that senders must give, None for none. max_message_bytes holds before and after inflating.
    refused: requests not taken, by outcome; without those that the library refuses itself (too large as sent, no such
    method).
    """

    def __init__(self, accept: Accept, *, token: Token = None, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._accept = accept
        self._token = token
        self._max_message_bytes = max_message_bytes
        self._repeats = Repeats(time.monotonic_ns)
        self.refused: Counter[Outcome] = Counter()
        self._inflating = asyncio.Lock()
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", max_message_bytes),
                # It would inflate all that come at once, each up to the limit, before a handler is asked: twenty bodies
                # of 60 KB took two gigabytes.
                ("grpc.per_message_decompression", 0),
                ("grpc.max_concurrent_streams", MAX_STREAMS),
                # Two processes on one port would share its traffic by chance, and with it the spans of a trace.
                ("grpc.so_reuseport", 0),
            ]
        )
        self._server.add_generic_rpc_handlers([self._service(signal) for signal in ROUTES])

    async def start(self, endpoint: str, tls: Tls | None = None) -> int:
        """Listen on host:port (port 0: any free) and return the port. OSError if it cannot be had."""
        _try(endpoint)
        try:
            if tls is None:
                port = self._server.add_insecure_port(endpoint)
            else:
                port = self._server.add_secure_port(endpoint, server_credentials(tls))
        except RuntimeError:
            raise OSError(f"gRPC cannot listen on {endpoint}; its own line above says why") from None
        await self._server.start()
        return port

    async def stop(self, grace: float = 5.0) -> None:
        """Refuse new requests, wait `grace` seconds for those in work, then cut them off."""
        await self._server.stop(grace)

    def _service(self, signal: Signal) -> grpc.GenericRpcHandler[bytes, bytes]:
        export = grpc.unary_unary_rpc_method_handler(self._export(signal))
        return grpc.method_handlers_generic_handler(ROUTES[signal].service, {"Export": export})

    def _export(self, signal: Signal) -> Callable[[bytes, Context], Awaitable[bytes]]:
        async def export(body: bytes, context: Context) -> bytes:
            try:
                if self._token is not None:
                    authorise(_authorization(context), self._token)
                accepted = await self._take(signal, body)
            except (LuckrateError, Refused) as error:
                refused = refusal(error)
            except Exception as error:  # noqa: BLE001 - one request is isolated from the next
                self._report(signal, error)
                refused = refusal(error)
            else:
                return accepted_body(signal, accepted)
            # Not in the handler of the error, whose traceback holds the whole request while the answer is on its way;
            # nor with the body in this frame, as the library answers by an error that refers to its own traceback.
            del body
            return await self._refuse(context, refused)

        return export

    async def _take(self, signal: Signal, body: bytes) -> Accepted:
        """Inflate and accept. What inflates to a large request is inflated only when the one before it is taken:
        thirty bodies of 30 KB that waited for the disk took 1.2 GB."""
        small = min(LARGE_BYTES, self._max_message_bytes)
        try:
            inflated = _inflated(body, small)
        except TooLarge:
            if small == self._max_message_bytes:
                raise
        else:
            return await self._accept(signal, inflated)
        async with self._inflating:
            return await self._accept(signal, _inflated(body, self._max_message_bytes))

    async def _refuse(self, context: Context, refused: Refusal) -> bytes:
        self.refused[refused.outcome] += 1
        made = status(refused)
        details = (("grpc-status-details-bin", made.SerializeToString()),)
        await context.abort(refused.answer.grpc, made.message, details)

    def _report(self, signal: Signal, error: Exception) -> None:
        quiet = self._repeats.due((signal, type(error)))
        if quiet is not None:
            # The type and place, not the text: an error may quote the data it failed on.
            _log.error("receive failed: %s, %s%s", signal, type(error).__name__, quiet)


def _try(endpoint: str) -> None:
    """OSError, with the system's reason, if no address of it can be bound: the library tells that to stderr alone."""
    host, _, port = endpoint.rpartition(":")
    found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    failed: list[OSError] = []
    for family, kind, protocol, _, address in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the library does
            try:
                probe.bind(address)
            except OSError as error:
                failed.append(error)
    if len(failed) == len(found):
        raise failed[0]


def _inflated(body: bytes, max_bytes: int) -> bytes:
    """A message as it was before its compression, of which the library tells nothing; as Body raises.

    No protobuf begins as gzip does. One may begin as deflate does, but none of OTLP's: then it is what it is.
    """
    if body.startswith(_GZIP):
        return _whole(body, "gzip", max_bytes)
    if body.startswith(_DEFLATE):
        try:
            return _whole(body, "deflate", max_bytes)
        except TooLarge:
            raise
        except Rejected:
            return body
    return body


def _whole(body: bytes, coding: str, max_bytes: int) -> bytes:
    made = Body(coding=coding, max_bytes=max_bytes)
    made.feed(body)
    return made.finish()


def _authorization(context: Context) -> str | bytes | None:
    metadata = cast("Iterable[tuple[str, str | bytes]]", context.invocation_metadata() or ())
    for key, value in metadata:
        if key == "authorization":
            return value
    return None
