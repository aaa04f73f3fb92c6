"""Two protobuf schemas of our own over the OTLP field numbers, chosen for what they leave undecoded.

The shallow one declares what a scope holds (spans, log records, metrics, profiles: the same field number in each
signal) as `repeated bytes`, so that those stay the bytes they were. The reading one declares text as bytes, so that
invalid UTF-8 in one attribute does not make a whole span unreadable, and arrays and maps of AnyValue as bytes, so
that hostile nesting is walked by `any_value` with its own bound instead of failing in the parser. Attributes are
bytes too, because most of them have been seen before and then need no parsing; events, because a parsed one takes
fifty times the two bytes that a hostile sender writes for it.

They live in a descriptor pool and package of their own: nothing clashes with opentelemetry-proto.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

_PACKAGE = "luckrate_otel.wire"

_BYTES = FieldDescriptorProto.TYPE_BYTES
_BOOL = FieldDescriptorProto.TYPE_BOOL
_INT32 = FieldDescriptorProto.TYPE_INT32
_INT64 = FieldDescriptorProto.TYPE_INT64
_UINT32 = FieldDescriptorProto.TYPE_UINT32
_DOUBLE = FieldDescriptorProto.TYPE_DOUBLE
_FIXED64 = FieldDescriptorProto.TYPE_FIXED64

# message → field → (number, type or message name, repeated). Enums are int32: open, as on the wire.
# Singular messages kept as bytes are declared repeated: protobuf merges a message that occurs twice, and joining the
# serialised occurrences is that merge.
_MESSAGES: dict[str, dict[str, tuple[int, int | str, bool]]] = {
    "Request": {"resources": (1, "ResourceGroup", True)},
    "ResourceGroup": {"resource": (1, _BYTES, True), "scopes": (2, "ScopeGroup", True)},
    "ScopeGroup": {"scope": (1, _BYTES, True), "items": (2, _BYTES, True)},
    "Link": {"trace_id": (1, _BYTES, False), "span_id": (2, _BYTES, False), "parent_span_id": (4, _BYTES, False)},
    "Value": {
        "string_value": (1, _BYTES, False),
        "bool_value": (2, _BOOL, False),
        "int_value": (3, _INT64, False),
        "double_value": (4, _DOUBLE, False),
        "array_value": (5, _BYTES, False),
        "kvlist_value": (6, _BYTES, False),
        "bytes_value": (7, _BYTES, False),
    },
    "KeyValue": {"key": (1, _BYTES, False), "value": (2, "Value", False)},
    "ArrayValue": {"values": (1, "Value", True)},
    "KeyValueList": {"values": (1, "KeyValue", True)},
    "Resource": {"attributes": (1, _BYTES, True)},
    "Scope": {"name": (1, _BYTES, False), "version": (2, _BYTES, False)},
    "Event": {
        "time_unix_nano": (1, _FIXED64, False),
        "name": (2, _BYTES, False),
        "attributes": (3, _BYTES, True),
    },
    "Status": {"message": (2, _BYTES, False), "code": (3, _INT32, False)},
    "Span": {
        "trace_id": (1, _BYTES, False),
        "span_id": (2, _BYTES, False),
        "parent_span_id": (4, _BYTES, False),
        "name": (5, _BYTES, False),
        "kind": (6, _INT32, False),
        "start_time_unix_nano": (7, _FIXED64, False),
        "end_time_unix_nano": (8, _FIXED64, False),
        "attributes": (9, _BYTES, True),
        "dropped_attributes_count": (10, _UINT32, False),
        "events": (11, _BYTES, True),
        "status": (15, "Status", False),
    },
    "LogRecord": {
        "time_unix_nano": (1, _FIXED64, False),
        "observed_time_unix_nano": (11, _FIXED64, False),
        "body": (5, "Value", False),
        "attributes": (6, _BYTES, True),
        "trace_id": (9, _BYTES, False),
        "span_id": (10, _BYTES, False),
        "event_name": (12, _BYTES, False),
    },
    "Metric": {
        "name": (1, _BYTES, False),
        "gauge": (5, "Points", False),
        "sum": (7, "Points", False),
        "histogram": (9, "Points", False),
        "exponential_histogram": (10, "Points", False),
        "summary": (11, "Points", False),
    },
    "Points": {"data_points": (1, _BYTES, True)},
}

# Messages whose fields exclude one another.
_ONEOF = {"Value": "value"}


def _file() -> descriptor_pb2.FileDescriptorProto:
    # The older syntax, which tells a field that stands there empty from one that is missing: where a span occurs in
    # parts, an empty name further on replaces the name before it.
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        if name in _ONEOF:
            message.oneof_decl.add(name=_ONEOF[name])
        for field_name, (number, kind, repeated) in fields.items():
            field = message.field.add(name=field_name, number=number)
            field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
            if isinstance(kind, str):
                field.type = FieldDescriptorProto.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
            else:
                field.type = FieldDescriptorProto.Type.ValueType(kind)
            if name in _ONEOF:
                field.oneof_index = 0
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_file())


def _message(name: str) -> Any:
    """The message class; Any, because its fields exist only at run time."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))


Request = _message("Request")
ResourceGroup = _message("ResourceGroup")
ScopeGroup = _message("ScopeGroup")
Link = _message("Link")
Value = _message("Value")
KeyValue = _message("KeyValue")
ArrayValue = _message("ArrayValue")
KeyValueList = _message("KeyValueList")
Resource = _message("Resource")
Scope = _message("Scope")
Event = _message("Event")
Span = _message("Span")
LogRecord = _message("LogRecord")
Metric = _message("Metric")

METRIC_DATA = ("gauge", "sum", "histogram", "exponential_histogram", "summary")
