"""AnyValue and attribute lists, protobuf ↔ plain values.

Plain: str, bool, int, float, bytes, None, tuples and dicts of these. Reading never raises on well-formed protobuf:
invalid UTF-8 becomes U+FFFD, and what lies deeper than MAX_DEPTH, or past MAX_VALUES, becomes TRUNCATED.
Of duplicate keys the last one is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from luckrate_otel.otlp import schema
from luckrate_otel.telemetry import Value

# Protobuf parsers stop at 100 nested messages; a span lies 6 deep in its request and one map level is 3 messages.
# Deeper data could not be read by the next hop either.
MAX_DEPTH: Final = 30
# Values of one attribute list, nested ones included. SDKs default to 128 attributes; the rest is hostile.
MAX_VALUES: Final = 65_536
# Stands for a value that was cut by one of the bounds above.
TRUNCATED: Final = "[truncated by luckrate-otel]"

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def attributes(pairs: Any) -> dict[str, Value]:
    """Read a repeated schema.KeyValue. At most MAX_VALUES pairs are read."""
    result: dict[str, Value] = {}
    if len(pairs) > MAX_VALUES:
        pairs = pairs[:MAX_VALUES]
    budget: list[int] | None = None
    for pair in pairs:
        value = pair.value
        # Most values are text, and asking for it is half the price of asking which one is set.
        text = value.string_value
        if text:
            result[pair.key.decode("utf-8", "replace")] = text.decode("utf-8", "replace")
            continue
        if budget is None:
            budget = [MAX_VALUES - len(pairs)]
        result[pair.key.decode("utf-8", "replace")] = _value(value, 1, budget)
    return result


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


def to_protobuf(plain: Value) -> AnyValue:
    """Write one plain value. Never raises on a plain value: integers beyond 64 bits and other types become text."""
    message = AnyValue()
    _write(plain, message, 1)
    return message


def to_key_values(plain: Mapping[str, Value]) -> Iterable[KeyValue]:
    """Write a mapping as an attribute list, in its order."""
    for key, value_ in plain.items():
        yield KeyValue(key=_text(key), value=to_protobuf(value_))


def _write(plain: Value, message: AnyValue, depth: int) -> None:
    if plain is None:
        return
    if isinstance(plain, str):
        message.string_value = _text(plain)
    elif isinstance(plain, bool):
        message.bool_value = plain
    elif isinstance(plain, int):
        if _INT64_MIN <= plain <= _INT64_MAX:
            message.int_value = plain
        else:
            message.string_value = hex(plain)  # decimal text of huge integers is refused by the interpreter
    elif isinstance(plain, float):
        message.double_value = plain
    elif isinstance(plain, bytes):
        message.bytes_value = plain
    elif depth > MAX_DEPTH:
        message.string_value = TRUNCATED
    elif isinstance(plain, Mapping):
        message.kvlist_value.SetInParent()
        for key, child in plain.items():
            pair = message.kvlist_value.values.add(key=_text(key))
            pair.value.SetInParent()
            _write(child, pair.value, depth + 1)
    elif isinstance(plain, (list, tuple)):
        message.array_value.SetInParent()
        for child in plain:
            _write(child, message.array_value.values.add(), depth + 1)
    else:
        message.string_value = _text(repr(plain))


def _text(plain: object) -> str:
    """Text that protobuf accepts: lone surrogates become U+FFFD."""
    text = plain if isinstance(plain, str) else str(plain)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
