"""Bytes as they lie in the journal: packed with zstd where that pays.

What a row costs is its bytes: SQLite sums them up, writes them, and writes over them when the row goes. To pack them,
at a gigabyte a second, costs less. Agents' spans shrink to a sixth; what does not is passed several times as fast.
"""

from __future__ import annotations

import sys
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    # The same module for older interpreters, so that there is one way to call it.
    from backports import zstd

# The fastest level that still looks for what comes again. Level 1 takes a third longer for a tenth less.
LEVEL: Final = -1

# Shorter bytes stay as they are: to begin a frame costs as much as SQLite takes for so many.
SHORT: Final = 512

# How every zstd frame begins. Bytes that are not packed never do, however they were chosen.
_MAGIC: Final = b"\x28\xb5\x2f\xfd"

# As much as SQLite takes in one value, so no row was ever larger; a damaged one is not inflated beyond it.
_MOST: Final = 10**9


class Packer:
    """Keeps the tables of the compressor between calls. For one thread."""

    __slots__ = ("_compressor",)

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(
            options={zstd.CompressionParameter.compression_level: LEVEL, zstd.CompressionParameter.checksum_flag: 1}
        )

    def pack(self, data: bytes) -> bytes:
        """Bytes from which unpack() gives these."""
        if len(data) < SHORT and not data.startswith(_MAGIC):
            return data
        return self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)


def unpack(packed: bytes) -> bytes:
    """What was packed. ValueError if it is damaged."""
    if not packed.startswith(_MAGIC):
        return packed
    frame = zstd.ZstdDecompressor()
    try:
        data = frame.decompress(packed, _MOST)
    except zstd.ZstdError:
        raise ValueError("a packed row is damaged") from None
    if not frame.eof or frame.unused_data:
        raise ValueError("a packed row is cut off")
    return data
