"""The little of the protobuf wire format that is needed to cut bytes without decoding them."""

from __future__ import annotations

from collections.abc import Iterator

from luckrate_otel.errors import Rejected

_VARINT, _FIXED64, _LENGTH, _START_GROUP, _END_GROUP, _FIXED32 = range(6)


def varint(number: int) -> bytes:
    """A non-negative number as a base-128 varint."""
    if number < 0x80:
        return bytes((number,))
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def delimited(tag: int, payload: bytes) -> bytes:
    """A length-delimited field. tag: below 128, which is any field number below 16."""
    size = len(payload)
    if size < 0x80:
        return bytes((tag, size)) + payload
    return bytes((tag,)) + varint(size) + payload


def fields(wire: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a message in their order: (tag, start, start of the payload, end).

    A group is one field. Raises Rejected where the bytes are not a message.
    """
    at = 0
    while at < len(wire):
        start = at
        tag, payload = _read_varint(wire, at)
        payload, at = _payload(wire, tag, payload)
        yield tag, start, payload, at


def _payload(wire: bytes, tag: int, at: int) -> tuple[int, int]:
    """Start and end of the payload of the field whose tag ends at `at`."""
    if tag & 7 != _START_GROUP:
        return _plain_payload(wire, tag, at)
    start = at
    open_groups = [tag >> 3]
    while open_groups:
        tag, at = _read_varint(wire, at)
        if tag & 7 == _START_GROUP:
            open_groups.append(tag >> 3)
        elif tag & 7 == _END_GROUP:
            if open_groups.pop() != tag >> 3:
                raise Rejected("malformed protobuf: a group ends that did not start")
        else:
            _, at = _plain_payload(wire, tag, at)
    return start, at


def _plain_payload(wire: bytes, tag: int, at: int) -> tuple[int, int]:
    kind = tag & 7
    start = at
    if kind == _VARINT:
        _, end = _read_varint(wire, at)
    elif kind == _FIXED64:
        end = at + 8
    elif kind == _FIXED32:
        end = at + 4
    elif kind == _LENGTH:
        size, start = _read_varint(wire, at)
        end = start + size
    else:
        raise Rejected(f"malformed protobuf: wire type {kind}")
    if end > len(wire):
        raise Rejected("malformed protobuf: a field is longer than its message")
    return start, end


def _read_varint(wire: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends. Ten bytes at most, as in every parser."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(wire):
            raise Rejected("malformed protobuf: breaks off")
        byte = wire[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise Rejected("malformed protobuf: a number of more than ten bytes")
