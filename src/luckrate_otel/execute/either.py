"""One port for OTLP over gRPC and over HTTP/1.1.

An exporter is built for one of the two, whatever OTEL_EXPORTER_OTLP_PROTOCOL says, and OTEL_EXPORTER_OTLP_ENDPOINT is
one address. A gRPC client speaks first, with the preface of HTTP/2, so the first bytes of a connection tell.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

# RFC 9113 §3.4; no HTTP/1.1 request begins so.
PREFACE = b"PRI * HTTP/2.0"

# Seconds for the first bytes. A client that has connected has something to send.
FIRST = 10.0

_CHUNK = 64 * 1024


class Either:
    """Listens on a free loopback port and hands each connection to one of two others on the same machine."""

    def __init__(self, grpc_port: int, http_port: int) -> None:
        self._ports = {True: grpc_port, False: http_port}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """The port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        """Take no more connections and end those that are open."""
        if self._server is not None:
            self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._join(reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):  # it is the client that learns of it, by the close
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await asyncio.wait_for(_first(reader), FIRST)
        if not first:
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._ports[first.startswith(PREFACE)])
        try:
            far_writer.write(first)
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()


async def _first(reader: asyncio.StreamReader) -> bytes:
    """Enough bytes to tell; fewer if the client closed."""
    first = b""
    while len(first) < len(PREFACE) and PREFACE.startswith(first):
        chunk = await reader.read(_CHUNK)
        if not chunk:
            break
        first += chunk
    return first


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(_CHUNK):
        sink.write(chunk)
        await sink.drain()
    with suppress(OSError):
        sink.write_eof()
