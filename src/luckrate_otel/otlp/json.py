"""OTLP/JSON ↔ OTLP protobuf, by the rules of OTLP where they differ from the JSON mapping of protobuf.

Keys are lowerCamelCase only and unknown ones are ignored; ids are hex, other bytes base64; enums are integers;
64-bit integers come as text or numbers and leave as text. google.protobuf.json_format takes snake_case keys, enum
names and base64 ids, which OTLP forbids, so the conversion walks the message descriptors itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from luckrate_otel.errors import Rejected, TooLarge
from luckrate_otel.otlp.json_values import Wrong, codec, kind_of
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
        words = error.msg.removesuffix(" at")  # "Unterminated string starting at"
        line = f"line {error.lineno} " if error.lineno > 1 else ""  # the text may itself be line 20 of a file
        raise Rejected(f"not JSON: {words} at {line}column {error.colno}") from None
    except ValueError as error:
        if "digits" in str(error):  # Python's words for it are advice to programmers
            raise Rejected("not JSON that can be read: a number of too many digits") from None
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
    except Wrong as error:
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
        raise Wrong(f"expected an object, found {kind_of(parsed)}")
    if depth > _MAX_DEPTH:
        raise Wrong("nested too deep")
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
        except Wrong as error:
            error.place.append(f".{key}")
            raise


def _fill_repeated(target: Any, field: _Field, value: Any, depth: int) -> None:
    if not isinstance(value, (list, tuple)):
        raise Wrong(f"expected an array, found {kind_of(value)}")
    for index, item in enumerate(value):
        try:
            if field.read is None:
                _fill(target.add(), field.table, item, depth + 1)
            else:
                target.append(field.read(item))
        except Wrong as error:
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
    read, write = codec(descriptor.type, key)
    inner = _table(descriptor.message_type) if read is None else {}
    return _Field(descriptor.name, bool(descriptor.is_repeated), read, write, key, inner)


# Filled at import, so that no thread ever sees half of it.
for _request in REQUESTS.values():
    _table(_request.DESCRIPTOR)
