"""gzip and zstd seen through, by their magic bytes, never beyond a bound."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator

from luckrate_otel.errors import TooLarge
from luckrate_otel.plural import plural

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    # The same module for older interpreters, so that there is one way to call it.
    from backports import zstd

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

# Output per step: how far past its bound a decompression can get before it is refused.
_STEP_BYTES = 1024 * 1024


def inflate(data: bytes, max_bytes: int) -> tuple[bytes, str]:
    """The content of gzip or zstd data, all members of it; other data as it is. Second: what is wrong, "" if nothing.

    Data that breaks off or turns bad gives what came out before that. Raises TooLarge past max_bytes of content.
    """
    if data.startswith(_GZIP_MAGIC):
        return _collect(_gunzip(data), "gzip", max_bytes)
    if data.startswith(_ZSTD_MAGIC):
        return _collect(_unzstd(data), "zstd", max_bytes)
    if len(data) > max_bytes:
        raise TooLarge(f"larger than {plural(max_bytes, 'byte')}")
    return data, ""


def _collect(chunks: Iterator[bytes], form: str, max_bytes: int) -> tuple[bytes, str]:
    content = bytearray()
    try:
        for chunk in chunks:
            content += chunk
            if len(content) > max_bytes:
                raise TooLarge(f"larger than {plural(max_bytes, 'byte')} when decompressed")
    except EOFError:
        return bytes(content), f"the {form} data breaks off"
    except (zlib.error, zstd.ZstdError) as error:
        return bytes(content), f"bad {form} data: {error}"
    return bytes(content), ""


def _gunzip(data: bytes) -> Iterator[bytes]:
    while data:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            chunk = member.decompress(data, _STEP_BYTES)
            data = member.unconsumed_tail
            if not chunk and not data and not member.eof:
                raise EOFError
            yield chunk
        data = member.unused_data.lstrip(b"\0")  # tape padding, which gzip itself skips too


def _unzstd(data: bytes) -> Iterator[bytes]:
    while data:
        frame = zstd.ZstdDecompressor()
        while not frame.eof:
            chunk = frame.decompress(data, _STEP_BYTES)
            data = b""
            if not chunk and frame.needs_input and not frame.eof:
                raise EOFError
            yield chunk
        data = frame.unused_data
