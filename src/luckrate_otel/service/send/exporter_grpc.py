"""Exports over OTLP/gRPC: raw bytes in, no message is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast
from urllib.parse import urlsplit

import grpc
import grpc.aio

from luckrate_otel.service.send.replies import TIMEOUT, Kind, Reply, grpc_reply, rejected_count
from luckrate_otel.service.signals import ROUTES, Signal
from luckrate_otel.service.tls import Tls, channel_credentials

DEFAULT_PORT = 4317

_OPTIONS = (
    # Bodies are bounded where they come in; a limit here could only strand one that was acknowledged.
    ("grpc.max_send_message_length", -1),
    # The library would wait up to two minutes to reconnect; a restarted next hop should have its data within seconds.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 3000),
    # Notices a next hop that vanished without closing, as behind a load balancer.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)


class GrpcTransport:
    """endpoint: http://host:port (plain), https://host:port (TLS) or host:port (plain unless tls is given)."""

    def __init__(
        self,
        endpoint: str,
        *,
        headers: Mapping[str, str] | None = None,
        gzip: bool = False,
        tls: Tls | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        target, secure = grpc_target(endpoint)
        self._timeout = timeout
        # gRPC takes header names in lower case only; HTTP users write them as they like.
        self._metadata = tuple((name.lower(), value) for name, value in (headers or {}).items())
        compression = grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression
        if secure or (tls is not None and "://" not in endpoint):
            self._channel = grpc.aio.secure_channel(target, channel_credentials(tls), _OPTIONS, compression)
        else:
            self._channel = grpc.aio.insecure_channel(target, _OPTIONS, compression)
        self._calls: dict[Signal, grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = {
            signal: self._channel.unary_unary(route.method, None, None) for signal, route in ROUTES.items()
        }

    async def send(self, signal: Signal, body: bytes) -> Reply:
        try:
            response = await self._calls[signal](body, timeout=self._timeout, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            if _was_reset(error):
                return Reply(Kind.RETRY, "RST_STREAM")
            return grpc_reply(error.code(), _details(error))
        return Reply(Kind.SENT, "OK", rejected=rejected_count(response))

    async def close(self) -> None:
        await self._channel.close(None)


def grpc_target(endpoint: str) -> tuple[str, bool]:
    """(target for the gRPC library, TLS wanted). A path is ignored, as the OTel exporter specification says."""
    if not endpoint.startswith(("http://", "https://")):
        return endpoint, False
    parts = urlsplit(endpoint)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or DEFAULT_PORT}", parts.scheme == "https"


def _was_reset(error: grpc.aio.AioRpcError) -> bool:
    """The library calls a stream reset by a proxy or a dying server INTERNAL, as if the server had answered that."""
    return error.code() is grpc.StatusCode.INTERNAL and "Received RST_STREAM" in (error.details() or "")


def _details(error: grpc.aio.AioRpcError) -> bytes | None:
    trailers = cast("Iterable[tuple[str, str | bytes]]", error.trailing_metadata() or ())
    for key, value in trailers:
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            return value
    return None
