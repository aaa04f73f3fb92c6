"""OTLP/JSON ↔ OTLP protobuf, by the rules of OTLP where they differ from the JSON mapping of protobuf.

Keys are lowerCamelCase only and unknown ones are ignored; ids are hex, other bytes base64; enums are integers;
64-bit integers come as text or numbers and leave as text. google.protobuf.json_format takes snake_case keys, enum
names and base64 ids, which OTLP forbids, so the conversion walks the message descriptors itself.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp.any_value import utf8
from luckrate_otel.surrogates import mended

REQUESTS: Final[Mapping[str, type[Message]]] = {
    "traces": ExportTraceServiceRequest,
    "metrics": ExportMetricsServiceRequest,
    "logs": ExportLogsServiceRequest,
}

# "{}," is three bytes of JSON and a hundred of memory. Telemetry has an object for some 25 bytes, so that a request at
# the usual limit of 64 MiB stays below this.
MAX_CONTAINERS: Final = 4_000_000

# Protobuf parsers stop at 100 nested messages; what we write must be readable by the next hop.
_MAX_DEPTH = 96

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


class _Wrong(Exception):
    """A value that does not fit; the place is put together while it travels up."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.place: list[str] = []


@dataclass(frozen=True, slots=True)
class _Field:
    """One field: name in Python, reader of a JSON value, writer to one; both None for a message, which has a table."""

    name: str
    repeated: bool
    read: Callable[[Any], Any] | None
    write: Callable[[Any], Any] | None
    key: str
    table: dict[str, _Field]


_tables: dict[str, dict[str, _Field]] = {}


def load(text: bytes, *, local: bool = False) -> Any:
    """Parse JSON strictly: UTF-8, no NaN or Infinity literals, no key twice in one object, not too many objects.

    local: of a file that the user chose: NaN and Infinity literals, which Python programs write, and any size pass.
    Raises Rejected, TooLarge for too many objects.
    """
    if not local and text.count(b"{") + text.count(b"[") > MAX_CONTAINERS:
        raise TooLarge(f"more than {MAX_CONTAINERS} objects and arrays in one request")
    try:
        parsed = json.loads(text, object_pairs_hook=_object, parse_constant=None if local else _constant)
        return mended(parsed, text)
    except RecursionError:
        raise Rejected("not JSON that can be read: nested too deep") from None
    except UnicodeDecodeError as error:
        raise Rejected(f"not JSON: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Rejected(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except ValueError as error:
        raise Rejected(f"not JSON that can be read: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]  # add answers None
        raise ValueError(f"key {twice[:80]!r} occurs twice in one object")
    return result


def _constant(literal: str) -> Any:
    raise ValueError(f"{literal} is no JSON number; OTLP writes it as text")


def to_protobuf(signal: str, document: bytes | Mapping[str, Any]) -> bytes:
    """An OTLP/JSON request (text, or parsed by load) as its protobuf bytes.

    signal: traces, metrics or logs. Raises Rejected, naming the place, e.g. `resourceSpans[0].scopeSpans[0].scope`.
    An id that is hex but of a wrong length passes: such a span is refused alone, as it is in protobuf.
    """
    parsed = load(document) if isinstance(document, bytes) else document
    message = REQUESTS[signal]()
    try:
        _fill(message, _table(message.DESCRIPTOR), parsed, 1)
    except _Wrong as error:
        place = "".join(reversed(error.place)).lstrip(".")
        raise Rejected(f"{place or 'request'}: {error}") from None
    return message.SerializeToString()


def to_json(signal: str, body: bytes) -> dict[str, Any]:
    """Protobuf request bytes as an OTLP/JSON object. Fields unknown to the schema are left out. Raises Rejected."""
    try:
        message = REQUESTS[signal].FromString(body)
    except DecodeError:
        raise Rejected(f"not an OTLP {signal} request: malformed protobuf") from None
    return _dump(message)


def _fill(message: Message, table: Mapping[str, _Field], parsed: Any, depth: int) -> None:
    if type(parsed) is not dict and not isinstance(parsed, Mapping):  # the latter alone is slow
        raise _Wrong(f"expected an object, found {_kind(parsed)}")
    if depth > _MAX_DEPTH:
        raise _Wrong("nested too deep")
    for key, value in parsed.items():
        field = table.get(key)
        if field is None or value is None:
            continue
        try:
            if field.repeated:
                _fill_repeated(getattr(message, field.name), field, value, depth)
            elif field.read is None:
                child = getattr(message, field.name)
                child.SetInParent()  # an empty object is a value too
                _fill(child, field.table, value, depth + 1)
            else:
                setattr(message, field.name, field.read(value))
        except _Wrong as error:
            error.place.append(f".{key}")
            raise


def _fill_repeated(target: Any, field: _Field, value: Any, depth: int) -> None:
    if not isinstance(value, (list, tuple)):
        raise _Wrong(f"expected an array, found {_kind(value)}")
    for index, item in enumerate(value):
        try:
            if field.read is None:
                _fill(target.add(), field.table, item, depth + 1)
            else:
                target.append(field.read(item))
        except _Wrong as error:
            error.place.append(f"[{index}]")
            raise


def _dump(message: Message) -> dict[str, Any]:
    result: dict[str, Any] = {}
    table = _table(message.DESCRIPTOR)
    for descriptor, value in message.ListFields():
        field = table[descriptor.json_name]
        write = field.write or _dump
        result[field.key] = [write(item) for item in value] if field.repeated else write(value)
    return result


def _table(descriptor: Any) -> dict[str, _Field]:
    """JSON key → field, of one message type. Types refer to each other in circles: a table is known before it is full.

    descriptor: of the message; its class depends on the protobuf implementation.
    """
    known = _tables.get(descriptor.full_name)
    if known is None:
        known = _tables[descriptor.full_name] = {}
        known.update((field.json_name, _field(field)) for field in descriptor.fields)
    return known


def _field(descriptor: FieldDescriptor) -> _Field:
    key = descriptor.json_name
    read, write = _codec(descriptor.type, key in _HEX_IDS)
    inner = _table(descriptor.message_type) if read is None else {}
    return _Field(descriptor.name, bool(descriptor.is_repeated), read, write, key, inner)


def _codec(kind: int, hex_id: bool) -> tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]:
    if kind == FieldDescriptor.TYPE_MESSAGE:
        return None, None
    if kind == FieldDescriptor.TYPE_STRING:
        return _string, str
    if kind == FieldDescriptor.TYPE_BOOL:
        return _bool, bool
    if kind == FieldDescriptor.TYPE_BYTES:
        return (_hex, bytes.hex) if hex_id else (_base64, _to_base64)
    if kind in {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}:
        return _double, _from_double
    if kind == FieldDescriptor.TYPE_ENUM:
        return _enum, int
    low, high = _INTEGER_RANGES[kind]
    return (lambda value: _integer(value, low, high)), (str if kind in _INT64_TYPES else int)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"expected text, found {_kind(value)}")
    # "\ud800" alone is valid JSON but no text; as in other decoders, it becomes U+FFFD.
    return value if value.isascii() else utf8(value).decode()


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"expected true or false, found {_kind(value)}")
    return value


def _enum(value: Any) -> int:
    if isinstance(value, str):
        raise _Wrong("expected an integer, found text: OTLP/JSON has no enum names")
    return _integer(value, -(2**31), 2**31 - 1)


def _integer(value: Any, low: int, high: int) -> int:
    if (isinstance(value, str) and _INTEGER.fullmatch(value)) or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Wrong(f"expected an integer, found {_kind(value)}")
    if not low <= value <= high:
        raise _Wrong(f"integer out of range {low} to {high}")
    return value


def _double(value: Any) -> float:
    if isinstance(value, str):
        if value in _NON_FINITE:
            return _NON_FINITE[value]
        try:
            return float(value)
        except ValueError:
            raise _Wrong("expected a number, found text") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Wrong(f"expected a number, found {_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise _Wrong("number out of range") from None


def _from_double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _hex(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _Wrong(f"expected a hex id, found {_kind(value)}")
    try:
        return binascii.unhexlify(value)
    except (binascii.Error, ValueError):
        raise _Wrong("expected a hex id (OTLP/JSON ids are hex, not base64)") from None


def _base64(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _Wrong(f"expected base64 text, found {_kind(value)}")
    # Both alphabets and missing padding are taken, as the JSON mapping of protobuf says.
    padded = value.translate(_URL_SAFE).rstrip("=")
    padded += "=" * (-len(padded) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise _Wrong("expected base64 text") from None


_URL_SAFE = str.maketrans("-_", "+/")


def _to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, Mapping) else "an array"


# Filled at import, so that no thread ever sees half of it.
for _request in REQUESTS.values():
    _table(_request.DESCRIPTOR)
