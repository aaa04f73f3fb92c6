"""OTLP over HTTP/1.1: protobuf and JSON, plain or compressed, read as a stream within limits of size and time."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from luckrate_otel.errors import Busy, LuckrateError, Rejected, TooLarge
from luckrate_otel.otlp.json import to_protobuf
from luckrate_otel.plural import plural
from luckrate_otel.service.receive.answers import (
    JSON,
    PROTOBUF,
    RETRY_AFTER,
    Accept,
    Accepted,
    Outcome,
    Refusal,
    Refused,
    accepted_body,
    refusal,
    refusal_body,
    refusal_headers,
)
from luckrate_otel.service.receive.auth import Token, authorise
from luckrate_otel.service.receive.inflate import CODINGS, MAX_MESSAGE_BYTES, OFFERED, Body
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.service.tls import Tls, server_context

_log = logging.getLogger(__name__)

# Seconds for a whole request body, not per read: a sender that trickles a byte a second holds a connection this long.
DEADLINE = 30.0

# Seconds a connection may be idle, or take to send its first head; above the minute between two metric exports.
KEEP_ALIVE = 75.0

# All bodies in work together. Four of the largest; past it a sender is asked to come back, so that memory does not grow
# with the number of connections.
MAX_BUFFERED_BYTES = 4 * MAX_MESSAGE_BYTES

# Seconds that requests in work get when the receiver stops.
GRACE = 5.0

_SIGNALS = {route.path: signal for signal, route in ROUTES.items()}

# JSON body → the same request in protobuf; raises Rejected.
FromJson = Callable[[Signal, bytes], bytes]


class HttpReceiver:
    """One HTTP server for all signals; hands each body, as protobuf, to `accept`; answers by the table of answers.py.

    token: bearer token that senders must give, None for none. max_message_bytes holds before and after inflating.
    deadline: seconds for a whole body. max_buffered_bytes: of all bodies in work together.
    grace: seconds for requests in work when it stops. refused: requests not taken, by outcome.
    """

    def __init__(
        self,
        accept: Accept,
        from_json: FromJson = to_protobuf,
        *,
        token: Token = None,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        deadline: float = DEADLINE,
        max_buffered_bytes: int = MAX_BUFFERED_BYTES,
        grace: float = GRACE,
    ) -> None:
        self._accept = accept
        self._from_json = from_json
        self._token = token
        self._max_message_bytes = max_message_bytes
        self._deadline = deadline
        self._max_buffered_bytes = max_buffered_bytes
        self._grace = grace
        self.refused: Counter[Outcome] = Counter()
        self._buffered_bytes = 0
        self._repeats = Repeats(time.monotonic_ns)
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int, tls: Tls | None = None) -> int:
        """Listen and return the port (given 0: any free). OSError if it cannot be had."""
        server = _Server(
            self._answer,
            auto_decompress=False,  # the library would inflate without our limit
            keepalive_timeout=KEEP_ALIVE,
            access_log=None,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=self._grace)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=server_context(tls) if tls else None)
        try:
            await site.start()
        except BaseException:
            await self._runner.cleanup()
            raise
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Refuse new requests, wait for those in work, then cut them off."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        media = JSON if _media(request) == JSON else PROTOBUF
        try:
            signal = _signal(request)
            authorise(request.headers.get("Authorization"), self._token)
            accepted = await self._receive(signal, request)
        except (LuckrateError, Refused) as error:
            return self._refuse(refusal(error), media)
        except ConnectionError:
            raise  # the sender is gone; nobody is left to answer
        except Exception as error:  # noqa: BLE001 - one request is isolated from the next
            self._report(error)
            return self._refuse(refusal(error), media)
        return web.Response(body=accepted_body(signal, accepted, media), content_type=media)

    async def _receive(self, signal: Signal, request: web.BaseRequest) -> Accepted:
        media = _media(request)
        if media not in (PROTOBUF, JSON):
            raise Refused(Outcome.CONTENT_TYPE, f"content type must be {PROTOBUF} or {JSON}")
        if media == JSON and signal is Signal.PROFILES:
            raise Refused(Outcome.CONTENT_TYPE, f"profiles are taken as {PROTOBUF} only")
        encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in CODINGS:
            raise Refused(Outcome.ENCODING, f"content encoding must be one of {OFFERED}, or none")
        body = Body(coding=encoding, max_bytes=self._max_message_bytes)
        try:
            await self._read(request, body)
            data = body.finish()
            if media == JSON:
                data = self._from_json(signal, data)
            return await self._accept(signal, data)
        finally:
            self._buffered_bytes -= body.size

    async def _read(self, request: web.BaseRequest, body: Body) -> None:
        if (request.content_length or 0) > self._max_message_bytes:
            raise TooLarge(f"request body over {plural(self._max_message_bytes, 'byte')}")
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            async with asyncio.timeout(self._deadline):
                async for chunk in request.content.iter_any():
                    self._feed(body, chunk)
        except TimeoutError:
            raise Refused(Outcome.DEADLINE, f"request body took longer than {self._deadline:g} s") from None
        except (web.RequestPayloadError, HttpProcessingError):
            raise Rejected("request body is not valid HTTP") from None

    def _feed(self, body: Body, chunk: bytes) -> None:
        before = body.size
        try:
            body.feed(chunk)
        finally:
            self._buffered_bytes += body.size - before
        if self._buffered_bytes > self._max_buffered_bytes:
            raise Busy("too many large requests at once", RETRY_AFTER)

    def _refuse(self, refused: Refusal, media: str) -> web.Response:
        self.refused[refused.outcome] += 1
        return _refuse(refused, media)

    def _report(self, error: Exception) -> None:
        quiet = self._repeats.due(type(error).__name__)
        if quiet is not None:
            # The type, not the text: an error may quote the data it failed on.
            _log.error("receive failed: HTTP, %s%s", type(error).__name__, quiet)


class _Connection(web.RequestHandler):
    """Answers what is not even HTTP by the same table, in place of the library's HTML page and traceback."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,  # noqa: ARG002 - the library's signature
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,  # noqa: ARG002
        message: str | None = None,  # noqa: ARG002 - may quote what the client sent
    ) -> web.StreamResponse:
        broken = status == HTTPStatus.BAD_REQUEST
        refused = Refusal(Outcome.REJECTED, "not a valid HTTP request") if broken else refusal(Exception())
        return _refuse(refused, PROTOBUF, close=True)


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


def _signal(request: web.BaseRequest) -> Signal:
    signal = _SIGNALS.get(request.path)
    if signal is None:
        raise Refused(Outcome.PATH, f"no such path; OTLP is taken on {', '.join(_SIGNALS)}")
    if request.method != "POST":
        raise Refused(Outcome.METHOD, "method must be POST")
    return signal


def _media(request: web.BaseRequest) -> str:
    """Content type without parameters: clients send `application/json; charset=utf-8`."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _refuse(refused: Refusal, media: str, *, close: bool = False) -> web.Response:
    response = web.Response(
        status=refused.answer.http,
        body=refusal_body(refused, media),
        content_type=media,
        headers=refusal_headers(refused),
    )
    if close or refused.outcome is Outcome.DEADLINE:
        response.force_close()
    return response
