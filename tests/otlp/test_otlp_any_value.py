from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from luckrate_otel.otlp import any_value, schema
from luckrate_otel.otlp.any_value import MAX_DEPTH, MAX_VALUES, TRUNCATED
from luckrate_otel.otlp.wire import varint
from tests.otlp.otlp_strategies import ATTRIBUTES, VALUES

# plain value ↔ the official message, written out.
PAIRS = [
    (None, AnyValue()),
    ("", AnyValue(string_value="")),
    ("é", AnyValue(string_value="é")),
    (False, AnyValue(bool_value=False)),
    (True, AnyValue(bool_value=True)),
    (0, AnyValue(int_value=0)),
    (-1, AnyValue(int_value=-1)),
    (2**63 - 1, AnyValue(int_value=2**63 - 1)),
    (-(2**63), AnyValue(int_value=-(2**63))),
    (0.0, AnyValue(double_value=0.0)),
    (-1.5, AnyValue(double_value=-1.5)),
    (b"", AnyValue(bytes_value=b"")),
    (b"\xff", AnyValue(bytes_value=b"\xff")),
    ((), AnyValue(array_value=ArrayValue())),
    ((None, 1), AnyValue(array_value=ArrayValue(values=[AnyValue(), AnyValue(int_value=1)]))),
    ({}, AnyValue(kvlist_value=KeyValueList())),
    (
        {"a": {"b": ("c",)}},
        AnyValue(
            kvlist_value=KeyValueList(
                values=[
                    KeyValue(
                        key="a",
                        value=AnyValue(
                            kvlist_value=KeyValueList(
                                values=[
                                    KeyValue(
                                        key="b",
                                        value=AnyValue(array_value=ArrayValue(values=[AnyValue(string_value="c")])),
                                    )
                                ]
                            )
                        ),
                    )
                ]
            )
        ),
    ),
    ("x" * 200, AnyValue(string_value="x" * 200)),
    ("x" * 20_000, AnyValue(string_value="x" * 20_000)),
]


@pytest.mark.parametrize(("plain", "message"), PAIRS)
def test_a_value_is_written_as_the_official_message_and_read_back(plain: Any, message: AnyValue) -> None:
    assert AnyValue.FromString(any_value.encode(plain)) == message
    assert any_value.value(schema.Value.FromString(message.SerializeToString())) == plain


@pytest.mark.parametrize(
    ("plain", "read"),
    [
        (2**63, "0x8000000000000000"),
        (-(2**63) - 1, "-0x8000000000000001"),
        ([1, 2], (1, 2)),
        ({1: "one"}, {"1": "one"}),
        ("\ud800", "�"),
        ("\U0001f600", "\U0001f600"),
        ({1, 2}, "{1, 2}"),
    ],
)
def test_what_has_no_place_in_any_value_becomes_text(plain: Any, read: Any) -> None:
    assert any_value.value(schema.Value.FromString(any_value.encode(plain))) == read


@given(VALUES)
def test_writing_then_reading_gives_the_value_back(plain: Any) -> None:
    read = any_value.value(schema.Value.FromString(any_value.encode(plain)))
    assert (read, repr(read)) == (plain, repr(plain))  # repr tells 1 from True and -0.0 from 0.0


@given(ATTRIBUTES)
def test_attributes_are_read_the_same_when_seen_again(plain: dict[str, Any]) -> None:
    wire = schema.Resource.FromString(any_value.encode_pairs(0x0A, plain)).attributes
    assert any_value.attributes(wire) == plain
    assert any_value.attributes(wire) == plain


def _pairs(*pairs: tuple[bytes, bytes]) -> list[bytes]:
    return [schema.KeyValue(key=key, value=schema.Value(string_value=text)).SerializeToString() for key, text in pairs]


def test_of_duplicate_keys_the_last_is_kept() -> None:
    assert any_value.attributes(_pairs((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))) == {"a": "3", "b": "2"}


def test_bad_utf8_costs_its_characters_only() -> None:
    assert any_value.attributes(_pairs((b"a\xff", b"1\xfe"), (b"b", b"2"))) == {"a�": "1�", "b": "2"}


def test_a_short_pair_in_an_unusual_field_order_is_read() -> None:
    (wire,) = _pairs((b"key", b"text"))
    key, value = wire[:5], wire[5:]
    assert (key, value) == (b"\n\x03key", b"\x12\x06\n\x04text")
    assert any_value.attributes([value + key]) == {"key": "text"}
    assert any_value.attributes([b"\n\x03old" + wire]) == {"key": "text"}
    assert any_value.attributes([wire + b"\x12\x02\x18\x05"]) == {"key": 5}
    assert any_value.attributes([b"", b"\n\x01k"]) == {"": None, "k": None}


@pytest.mark.parametrize("key", [0, 1, 100, 125, 126, 127, 128, 129, 200])
@pytest.mark.parametrize("text", [*range(115, 136), 1_000, *range(16_375, 16_390)])
def test_a_text_is_read_whatever_its_lengths_take(key: int, text: int) -> None:
    wire = KeyValue(key="k" * key, value=AnyValue(string_value="t" * text)).SerializeToString()
    assert any_value.attributes([wire]) == {"k" * key: "t" * text}


@given(st.integers(0, 140), st.integers(100, 300), st.data())
def test_a_damaged_long_text_is_read_as_the_parser_reads_it(key: int, text: int, data: st.DataObject) -> None:
    wire = bytearray(KeyValue(key="k" * key, value=AnyValue(string_value="t" * text)).SerializeToString())
    for at in data.draw(st.lists(st.integers(0, min(key + 10, len(wire) - 1)), min_size=1, max_size=3)):
        wire[at] = data.draw(st.integers(0, 255))
    damaged = bytes(wire)[: data.draw(st.integers(128, len(wire)) if len(wire) > 128 else st.just(len(wire)))]
    try:
        pair = schema.KeyValue.FromString(damaged)
    except DecodeError:
        with pytest.raises(DecodeError):
            any_value.attributes([damaged])
    else:
        read = {pair.key.decode("utf-8", "replace"): any_value.value(pair.value)}
        assert any_value.attributes([damaged]) == read


def test_read_values_are_not_shared_where_they_could_be_changed() -> None:
    (wire,) = schema.Resource.FromString(any_value.encode_pairs(0x0A, {"a": {"b": 1}})).attributes
    any_value.attributes([wire])["a"]["b"] = 2
    assert any_value.attributes([wire]) == {"a": {"b": 1}}


def _nested(depth: int) -> Any:
    plain: Any = "leaf"
    for _ in range(depth):
        plain = (plain,)
    return plain


def _cut(depth: int) -> Any:
    plain: Any = TRUNCATED
    for _ in range(depth):
        plain = (plain,)
    return plain


def _nested_wire(depth: int) -> bytes:
    wire = b"\n\x04leaf"
    for _ in range(depth):
        inner = schema.ArrayValue.FromString(b"\n" + varint(len(wire)) + wire).SerializeToString()
        wire = schema.Value(array_value=inner).SerializeToString()
    return wire


@pytest.mark.parametrize(
    ("depth", "read"),
    [
        (MAX_DEPTH - 1, _nested(MAX_DEPTH - 1)),
        (MAX_DEPTH, _nested(MAX_DEPTH)),
        (MAX_DEPTH + 1, _cut(MAX_DEPTH)),
        (5_000, _cut(MAX_DEPTH)),
    ],
)
def test_nesting_beyond_the_bound_is_marked_and_never_an_error(depth: int, read: Any) -> None:
    assert any_value.value(schema.Value.FromString(_nested_wire(depth))) == read
    if depth < 900:  # beyond, the plain value itself could not be compared
        assert any_value.value(schema.Value.FromString(any_value.encode(_nested(depth)))) == read


def test_values_beyond_the_bound_are_marked() -> None:
    array = schema.Value(array_value=b"\n\x02\x18\x01" * (MAX_VALUES + 1))
    assert any_value.value(array) == (*(1,) * MAX_VALUES, TRUNCATED)
    full = schema.Value(array_value=b"\n\x02\x18\x01" * MAX_VALUES)
    assert any_value.value(full) == (1,) * MAX_VALUES


def test_of_a_flood_of_attributes_the_first_are_read() -> None:
    wires = [schema.KeyValue(key=b"%d" % number).SerializeToString() for number in range(MAX_VALUES + 2)]
    assert any_value.attributes(wires) == {str(number): None for number in range(MAX_VALUES)}


def test_an_unreadable_array_is_marked() -> None:
    assert any_value.value(schema.Value(array_value=b"\xff")) == TRUNCATED
