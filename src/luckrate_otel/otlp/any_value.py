"""AnyValue and attribute lists, protobuf ↔ plain values.

Plain: str, bool, int, float, bytes, None, tuples and dicts of these. Reading never raises on well-formed protobuf:
invalid UTF-8 becomes U+FFFD, and what lies deeper than MAX_DEPTH, or past MAX_VALUES, becomes TRUNCATED.
Of duplicate keys the last one is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from struct import pack
from typing import Any, Final

from google.protobuf.message import DecodeError

from luckrate_otel.otlp import schema
from luckrate_otel.otlp.wire import delimited, varint
from luckrate_otel.telemetry import Value

# Protobuf parsers stop at 100 nested messages; a span lies 6 deep in its request and one map level is 3 messages.
# Deeper data could not be read by the next hop either.
MAX_DEPTH: Final = 30
# Values of one attribute list, or of all events of a span, nested ones included. SDKs default to 128 attributes; the
# rest is hostile.
MAX_VALUES: Final = 65_536
# So many bytes hold no more than half as many values, each of which takes two at least.
FEW_BYTES: Final = MAX_VALUES
# Stands for a value that was cut by one of the bounds above.
TRUNCATED: Final = "[truncated by luckrate-otel]"

# Most attributes of a process recur in every span: model, operation, agent and tool names. Remembering those that are
# short takes about 3 MiB at most, saves three quarters of the reading, and lets held spans share their texts.
_SEEN: Final = 8192
_SHORT_BYTES: Final = 128
_seen: dict[bytes, tuple[str, Value]] = {}

# Keys of values that are too long to be remembered: a few dozen in practice.
_KEYS: Final = 1024
_keys: dict[bytes, str] = {}

_INT64_MIN, _INT64_MAX, _UINT64_MAX = -(2**63), 2**63 - 1, 2**64 - 1

# Tags of AnyValue fields: number and wire type.
_STRING, _BOOL, _INT, _DOUBLE, _ARRAY, _KVLIST, _BYTES = 0x0A, 0x10, 0x18, 0x21, 0x2A, 0x32, 0x3A


def attributes(pairs: Sequence[bytes], budget: list[int] | None = None) -> dict[str, Value]:
    """Read a list of encoded KeyValues. Raises DecodeError if one is not a message.

    budget: one number, how many values may still be read; counted down, so that several lists can share it.
    """
    result: dict[str, Value] = {}
    pairs = pairs[:]  # one list instead of asking the parsed message for each
    count = len(pairs)
    room = MAX_VALUES if budget is None else budget[0]
    if budget is not None:
        budget[0] = max(0, room - count)
    for wire in pairs if count <= room else pairs[:room]:
        known = _seen.get(wire) if (size := len(wire)) < _SHORT_BYTES else _long_text(wire, 0, size)
        if known is None:
            if budget is None:
                budget = [max(0, room - count)]
            known = _pair(wire, budget)
        key, plain = known
        result[key] = plain
    return result


def attributes_from(wire: bytes, at: int, tag: int) -> tuple[dict[str, Value], int]:
    """Read the KeyValues that stand one after the other from `at` on, each in a field of this tag; and where they end.

    As attributes() does, but out of a wire of up to FEW_BYTES that was not parsed, which saves two copies of each. The
    end is that of the last one that is as encoders write it; past the end of the wire, if that is cut. Raises
    IndexError where a length is cut, DecodeError where one is no message.
    """
    result: dict[str, Value] = {}
    size = len(wire)
    while at < size and wire[at] == tag:
        length = wire[at + 1]
        start = at + 2
        if length < 0x80:
            at = start + length
            known = _seen.get(wire[start:at])
        else:
            high = wire[start]
            if not 0 < high < 0x80:
                break
            start += 1
            at = start + (length & 0x7F | high << 7)
            known = _long_text(wire, start, at) if at <= size else None
        if known is None:
            known = _pair(wire[start:at], [MAX_VALUES])
        key, plain = known
        result[key] = plain
    return result, at


def _pair(wire: bytes, budget: list[int]) -> tuple[str, Value]:
    size = len(wire)
    if size >= _SHORT_BYTES:
        return _parsed_pair(wire, budget)
    pair = _short_text(wire, size) or _parsed_pair(wire, budget)
    if _is_immutable(pair[1]):
        if len(_seen) >= _SEEN:
            _seen.clear()
        _seen[wire] = pair
    return pair


def _is_immutable(plain: Value) -> bool:
    """Whether a value can be shared: a dict could be changed by one of its holders."""
    if isinstance(plain, tuple):
        return all(map(_is_immutable, plain))
    return not isinstance(plain, dict)


def _short_text(wire: bytes, size: int) -> tuple[str, str] | None:
    """The pair, if it is a key and a text in the order of field numbers, each length one byte; a third of the price."""
    try:
        at = wire[1] + 2
        if (
            wire[0] == 0x0A
            and wire[at] == 0x12
            and wire[at + 2] == 0x0A
            and wire[at + 3] == size - at - 4 == wire[at + 1] - 2
        ):
            return wire[2:at].decode(), wire[at + 4 :].decode()
    except (IndexError, UnicodeDecodeError):
        pass
    return None


def _long_text(wire: bytes, at: int, end: int) -> tuple[str, str] | None:
    """As _short_text, with lengths of two bytes: contents of messages, arguments and results. Half the price.

    The pair stands in wire[at:end], which is _SHORT_BYTES or longer.
    """
    value = at + 2 + wire[at + 1]
    text = value + 6
    if wire[value:text] == _text_head(end - text) and wire[at] == 0x0A and value - at < 0x82:
        try:
            key = wire[at + 2 : value]
            return _keys.get(key) or _remembered_key(key), wire[text:end].decode()
        except UnicodeDecodeError:
            pass
    return None


@lru_cache(16_384)
def _text_head(length: int) -> bytes | None:
    """What stands between the key and a text of this many bytes, None unless each of the two lengths takes two."""
    if 0x80 <= length <= 0x3FFC:
        return delimited(0x12, delimited(_STRING, bytes(length)))[:6]
    return None


def _remembered_key(wire: bytes) -> str:
    if len(_keys) >= _KEYS:
        _keys.clear()
    key = _keys[wire] = wire.decode()
    return key


def _parsed_pair(wire: bytes, budget: list[int]) -> tuple[str, Value]:
    pair = schema.KeyValue.FromString(wire)
    return pair.key.decode("utf-8", "replace"), _value(pair.value, 1, budget)


def value(message: Any) -> Value:
    """Read one schema.Value; None when nothing is set in it."""
    return _value(message, 1, [MAX_VALUES])


def _value(message: Any, depth: int, budget: list[int]) -> Value:
    kind = message.WhichOneof("value")
    if kind is None:
        return None
    plain = getattr(message, kind)
    if kind == "string_value":
        return plain.decode("utf-8", "replace")
    if kind in {"array_value", "kvlist_value"}:
        return _container(kind, plain, depth, budget)
    return plain


def _container(kind: str, wire: bytes, depth: int, budget: list[int]) -> Value:
    if depth > MAX_DEPTH or budget[0] <= 0:
        return TRUNCATED
    try:
        children = (schema.ArrayValue if kind == "array_value" else schema.KeyValueList).FromString(wire).values
    except DecodeError:
        return TRUNCATED
    taken = min(len(children), budget[0])
    budget[0] -= taken
    cut = taken < len(children)
    if cut:
        children = children[:taken]
    if kind == "array_value":
        items = [_value(child, depth + 1, budget) for child in children]
        return (*items, TRUNCATED) if cut else tuple(items)
    pairs = {pair.key.decode("utf-8", "replace"): _value(pair.value, depth + 1, budget) for pair in children}
    if cut:
        pairs[TRUNCATED] = TRUNCATED
    return pairs


def encode(plain: Value) -> bytes:
    """The bytes of one AnyValue. Never raises on a plain value: integers beyond 64 bits and other types become text.

    Written by hand, as building messages takes three times as long, and every violation is a dozen of these.
    """
    return _encoded(plain, 1)


def encode_pairs(tag: int, attributes: Mapping[str, Value]) -> bytes:
    """A mapping as an attribute list, in its order. tag: of the field that each KeyValue goes into, one byte."""
    return b"".join([delimited(tag, _encoded_pair(key, plain, 1)) for key, plain in attributes.items()])


def _encoded_pair(key: str, plain: Value, depth: int) -> bytes:
    return _encoded_key(key) + delimited(0x12, _encoded(plain, depth))


@lru_cache(1024)  # nearly all are constants of our own vocabulary
def _encoded_key(key: str) -> bytes:
    return delimited(0x0A, utf8(key))


def _encoded(plain: Value, depth: int) -> bytes:
    if isinstance(plain, str):
        return delimited(_STRING, utf8(plain))
    if isinstance(plain, bool):
        return bytes((_BOOL, plain))
    if isinstance(plain, int):
        if _INT64_MIN <= plain <= _INT64_MAX:
            return bytes((_INT,)) + varint(plain & _UINT64_MAX)
        return delimited(_STRING, hex(plain).encode())  # the interpreter refuses decimal text of huge integers
    if isinstance(plain, float):
        return bytes((_DOUBLE,)) + pack("<d", plain)
    if plain is None:
        return b""
    if isinstance(plain, bytes):
        return delimited(_BYTES, plain)
    if depth > MAX_DEPTH:
        return delimited(_STRING, TRUNCATED.encode())
    if isinstance(plain, Mapping):
        pairs = [delimited(0x0A, _encoded_pair(str(key), child, depth + 1)) for key, child in plain.items()]
        return delimited(_KVLIST, b"".join(pairs))
    if isinstance(plain, (list, tuple)):
        return delimited(_ARRAY, b"".join([delimited(0x0A, _encoded(child, depth + 1)) for child in plain]))
    return delimited(_STRING, utf8(repr(plain)))


def utf8(text: str) -> bytes:
    """UTF-8 that protobuf accepts: lone surrogates become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
