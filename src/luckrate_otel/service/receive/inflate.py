"""Undo a request's compression without trusting it: the size is bounded while inflating, not after."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.plural import plural

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    # The same module for older interpreters, so that there is one way to call it.
    from backports import zstd

# Of one request, before and after inflating: what OTLP recommends. gRPC's own 4 MiB are passed easily by GenAI spans.
MAX_MESSAGE_BYTES = 64 * 2**20

# 16 + MAX_WBITS: zlib reads a gzip header and checks its trailer.
_GZIP = 16 + zlib.MAX_WBITS

# A gzip body may be several members one after the other (pigz, appended files), a zstd body several frames. An empty
# one is 9 to 20 bytes, so a large body could hold millions of them, which inflate to nothing and would only burn time;
# real ones hold a handful.
MAX_MEMBERS = 1024

# Bytes of content that a zstd decoder looks back on, as a power of two; it takes so much memory beside what comes out.
# RFC 9659 allows 8 MiB over HTTP, but the Collector's encoder uses up to 32 MiB at its levels `better` and `best`.
WINDOW_LOG: Final = 25


class Member(Protocol):
    """One gzip member, zlib stream or zstd frame being inflated; the calls that zlib and zstd have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _zstd() -> Member:
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: WINDOW_LOG})


@dataclass(frozen=True, slots=True)
class _Coding:
    """name: for messages. padding: bytes that may stand between and after members. window: see Body.size."""

    name: str
    member: Callable[[], Member]
    padding: bytes = b""
    window: int = 0


_ZLIB = _Coding("deflate", zlib.decompressobj)
_MEMBERS = _Coding("gzip", lambda: zlib.decompressobj(_GZIP), padding=b"\0")

# Values of Content-Encoding. OTLP asks for gzip; the Collector's exporter offers zstd, deflate and zlib (one format
# under two names) besides, and its receiver takes them. `x-gzip` is the old name (RFC 9110 §8.4.1.3).
CODINGS: Mapping[str, _Coding | None] = MappingProxyType(
    {
        "": None,
        "identity": None,
        "gzip": _MEMBERS,
        "x-gzip": _MEMBERS,
        "zstd": _Coding("zstd", _zstd, window=2**WINDOW_LOG),
        "deflate": _ZLIB,
        "zlib": _ZLIB,
    }
)

# What a sender is told to use instead of another.
OFFERED: Final = "gzip, zstd, deflate"


class Body:
    """Collects one request body, chunk by chunk, inflated if it is compressed.

    coding: a key of CODINGS. Raises TooLarge as soon as either the received or the inflated size passes max_bytes;
    Rejected if it is not what the coding says.
    """

    def __init__(self, *, coding: str, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._received = 0
        self._size = 0
        self._chunks: list[bytes] = []
        self._coding = CODINGS[coding]
        self._member = self._coding.member() if self._coding is not None else None
        self._members = 1

    @property
    def size(self) -> int:
        """Bytes held: of the body, and of the window that a zstd decoder fills with the same bytes once more."""
        return self._size + min(self._size, self._coding.window if self._coding is not None else 0)

    def feed(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self._received > self._max_bytes:
            raise TooLarge(f"request body over {plural(self._max_bytes, 'byte')}")
        if self._coding is None:
            self._keep(chunk)
        else:
            self._inflate(chunk, self._coding)

    def finish(self) -> bytes:
        if self._coding is not None and self._member is not None and self._received and not self._member.eof:
            raise Rejected(f"{self._coding.name} body ends early")
        return b"".join(self._chunks)

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._max_bytes:
            raise TooLarge(f"request body over {plural(self._max_bytes, 'byte')} once inflated")
        if data:
            self._chunks.append(data)

    def _inflate(self, chunk: bytes, coding: _Coding) -> None:
        while chunk:
            chunk = self._next_member(chunk, coding)
            if not chunk:
                return
            assert self._member is not None
            try:
                # One byte past the limit is enough to know: both libraries stop there, and keeping it raises.
                self._keep(self._member.decompress(chunk, self._max_bytes - self._size + 1))
            except (zlib.error, zstd.ZstdError):
                raise Rejected(f"body is not valid {coding.name}") from None
            chunk = self._member.unused_data

    def _next_member(self, chunk: bytes, coding: _Coding) -> bytes:
        """Open the next member if the last has ended; gzip files may be padded with zeros."""
        if self._member is None or not self._member.eof:
            return chunk
        chunk = chunk.lstrip(coding.padding) if coding.padding else chunk
        if chunk:
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise Rejected(f"{coding.name} body of more than {MAX_MEMBERS} members")
            self._member = coding.member()
        return chunk
