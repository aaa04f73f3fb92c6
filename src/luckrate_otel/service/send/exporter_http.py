"""Exports over OTLP/HTTP, protobuf encoding."""

from __future__ import annotations

import gzip as gziplib
from collections.abc import Mapping
from datetime import UTC, datetime
from io import BytesIO
from traceback import clear_frames

import aiohttp

from luckrate_otel.service.receive.answers import PROTOBUF
from luckrate_otel.service.send.replies import TIMEOUT, Kind, Reply, http_reply, rejected_count
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.service.tls import Tls, client_context

# A response says at most how many spans were rejected and why; more than this is not read.
MAX_RESPONSE_BYTES = 64 * 2**10

# Traces shrink about as well at 1 as at zlib's default of 6, at a third of the time, which the event loop waits for.
_GZIP_LEVEL = 1


class HttpTransport:
    """endpoint: base URL, to which each signal's path is appended, as with OTEL_EXPORTER_OTLP_ENDPOINT.

    exact: the endpoint is the whole URL, as with OTEL_EXPORTER_OTLP_TRACES_ENDPOINT; for one signal only.
    Create it inside the running event loop.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        exact: bool = False,
        headers: Mapping[str, str] | None = None,
        gzip: bool = False,
        tls: Tls | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        base = base_url(endpoint)
        self._urls = {signal: endpoint if exact else base + route.path for signal, route in ROUTES.items()}
        self._gzip = gzip
        encoding = {"Content-Encoding": "gzip"} if gzip else {}
        secure = endpoint.startswith("https:")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=client_context(tls) if secure else True),
            headers={**(headers or {}), "Content-Type": PROTOBUF, **encoding},
            skip_auto_headers=("User-Agent",) if any(name.lower() == "user-agent" for name in headers or {}) else (),
            timeout=aiohttp.ClientTimeout(total=timeout),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def send(self, signal: Signal, body: bytes) -> Reply:
        # As a file: aiohttp writes it in pieces, where it would write large bytes at once (and warn of it). Closed, and
        # not in this frame besides, as the library's errors refer to their own tracebacks and keep what is in them.
        with BytesIO(gziplib.compress(body, _GZIP_LEVEL, mtime=0) if self._gzip else body) as data:
            del body
            return await self._post(self._urls[signal], data)

    async def _post(self, url: str, data: BytesIO) -> Reply:
        try:
            # A redirect is refused, not followed: it could carry spans and credentials to a host nobody configured.
            async with self._session.post(url, data=data, allow_redirects=False) as response:
                answer = await _read(response)
                reply = http_reply(response.status, response.headers.get("Retry-After"), _now)
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            _let_go(error)
            return Reply(Kind.RETRY, type(error).__name__)
        if reply.kind is Kind.SENT:
            return Reply(Kind.SENT, reply.code, rejected=rejected_count(answer))
        return reply

    async def close(self) -> None:
        await self._session.close()


def base_url(endpoint: str) -> str:
    """The endpoint without its final slash, and without a signal's own path if one was given with it."""
    base = endpoint.rstrip("/")
    for route in ROUTES.values():
        base = base.removesuffix(route.path)
    return base


async def _read(response: aiohttp.ClientResponse) -> bytes:
    answer = b""
    while len(answer) < MAX_RESPONSE_BYTES:
        chunk = await response.content.read(MAX_RESPONSE_BYTES - len(answer))
        if not chunk:
            break
        answer += chunk
    return answer


def _let_go(error: BaseException | None) -> None:
    """Of what the library was writing when it failed: a quarter of a mebibyte in frames of an error that refers to
    itself, which the collector would find hundreds of attempts later."""
    known: set[int] = set()
    while error is not None and id(error) not in known:  # two may name each other
        known.add(id(error))
        clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _now() -> datetime:
    return datetime.now(UTC)
