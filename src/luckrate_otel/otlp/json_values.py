"""Single values of OTLP/JSON ↔ those of protobuf fields: texts, numbers, enums, ids and bytes."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from luckrate_otel.otlp.any_value import utf8

_HEX_IDS = frozenset({"traceId", "spanId", "parentSpanId"})
_INTEGER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

_INTEGER_RANGES = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SFIXED32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_FIXED32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SINT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_FIXED64: (0, 2**64 - 1),
}
_INT64_TYPES = frozenset(kind for kind, (_, high) in _INTEGER_RANGES.items() if high > 2**32)


class Wrong(Exception):
    """A value that does not fit; the place is put together while it travels up."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.place: list[str] = []


def codec(kind: int, key: str) -> tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]:
    """Reader of a JSON value and writer to one, of a field of this protobuf type; both None for a message.

    key: the field's, as ids are hex and all other bytes base64. Readers raise Wrong.
    """
    if kind == FieldDescriptor.TYPE_MESSAGE:
        return None, None
    if kind == FieldDescriptor.TYPE_STRING:
        return _string, str
    if kind == FieldDescriptor.TYPE_BOOL:
        return _bool, bool
    if kind == FieldDescriptor.TYPE_BYTES:
        return (_hex, bytes.hex) if key in _HEX_IDS else (_base64, _to_base64)
    if kind in {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}:
        return _double, _from_double
    if kind == FieldDescriptor.TYPE_ENUM:
        return _enum, int
    low, high = _INTEGER_RANGES[kind]
    return (lambda value: _integer(value, low, high)), (str if kind in _INT64_TYPES else int)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise Wrong(f"expected text, found {kind_of(value)}")
    # "\ud800" alone is valid JSON but no text; as in other decoders, it becomes U+FFFD.
    return value if value.isascii() else utf8(value).decode()


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"expected true or false, found {kind_of(value)}")
    return value


def _enum(value: Any) -> int:
    if isinstance(value, str):
        raise Wrong("expected an integer, found text: OTLP/JSON has no enum names")
    return _integer(value, -(2**31), 2**31 - 1)


def _integer(value: Any, low: int, high: int) -> int:
    if (isinstance(value, str) and _INTEGER.fullmatch(value)) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong(f"expected an integer, found {kind_of(value)}")
    if not low <= value <= high:
        raise Wrong(f"integer out of range {low} to {high}")
    return value


def _double(value: Any) -> float:
    if isinstance(value, str):
        if value in _NON_FINITE:
            return _NON_FINITE[value]
        try:
            return float(value)
        except ValueError:
            raise Wrong("expected a number, found text") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Wrong(f"expected a number, found {kind_of(value)}")
    try:
        return float(value)
    except OverflowError:
        raise Wrong("number out of range") from None


def _from_double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _hex(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Wrong(f"expected a hex id, found {kind_of(value)}")
    try:
        return binascii.unhexlify(value)
    except (binascii.Error, ValueError):
        raise Wrong("expected a hex id (OTLP/JSON ids are hex, not base64)") from None


def _base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Wrong(f"expected base64 text, found {kind_of(value)}")
    # Both alphabets and missing padding are taken, as the JSON mapping of protobuf says.
    padded = value.translate(_URL_SAFE).rstrip("=")
    padded += "=" * (-len(padded) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise Wrong("expected base64 text") from None


_URL_SAFE = str.maketrans("-_", "+/")


def _to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, Mapping) else "an array"
