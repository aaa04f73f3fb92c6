"""Undo a request's compression without trusting it: the size is bounded while inflating, not after."""

from __future__ import annotations

import zlib

from luckrate_otel.errors import Rejected, TooLarge

# 16 + MAX_WBITS: zlib reads a gzip header and checks its trailer.
_GZIP = 16 + zlib.MAX_WBITS

# A gzip body may be several members one after the other (pigz, appended files). An empty member is 20 bytes, so a large
# body could hold millions of them, which inflate to nothing and would only burn time; real ones hold a handful.
MAX_MEMBERS = 1024


class Body:
    """Collects one request body, chunk by chunk, inflated if it is gzip.

    Raises TooLarge as soon as either the received or the inflated size passes max_bytes; Rejected for broken gzip.
    """

    def __init__(self, *, gzip: bool, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._received = 0
        self._size = 0
        self._chunks: list[bytes] = []
        self._gzip = gzip
        self._member = zlib.decompressobj(_GZIP) if gzip else None
        self._members = 1

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._size

    def feed(self, chunk: bytes) -> None:
        self._received += len(chunk)
        if self._received > self._max_bytes:
            raise TooLarge(f"request body over {self._max_bytes} bytes")
        if self._gzip:
            self._inflate(chunk)
        else:
            self._keep(chunk)

    def finish(self) -> bytes:
        if self._member is not None and self._received and not self._member.eof:
            raise Rejected("gzip body ends early")
        return b"".join(self._chunks)

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._max_bytes:
            raise TooLarge(f"request body over {self._max_bytes} bytes once inflated")
        if data:
            self._chunks.append(data)

    def _inflate(self, chunk: bytes) -> None:
        while chunk:
            chunk = self._next_member(chunk)
            if not chunk:
                return
            assert self._member is not None
            try:
                # One byte past the limit is enough to know: zlib stops there, and keeping it raises.
                self._keep(self._member.decompress(chunk, self._max_bytes - self._size + 1))
            except zlib.error:
                raise Rejected("body is not valid gzip") from None
            chunk = self._member.unused_data

    def _next_member(self, chunk: bytes) -> bytes:
        """Open the next member if the last has ended; gzip files may be padded with zeros."""
        if self._member is None or not self._member.eof:
            return chunk
        chunk = chunk.lstrip(b"\0")
        if chunk:
            self._members += 1
            if self._members > MAX_MEMBERS:
                raise Rejected(f"gzip body of more than {MAX_MEMBERS} members")
            self._member = zlib.decompressobj(_GZIP)
        return chunk
