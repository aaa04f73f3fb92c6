"""What is said of a value that is no JSON Schema: its place, what it is, and what was wanted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from luckrate_otel.errors import SpecError
from luckrate_otel.rules.schema_problems import TYPES
from luckrate_otel.spec import Spec

DRAFT = "http://json-schema.org/draft-{:02}/schema#"
DRAFTS = [
    *map(DRAFT.format, (3, 4, 6, 7)),
    *(f"https://json-schema.org/draft/{d}/schema" for d in ("2019-09", "2020-12")),
]
ALL = ", ".join(TYPES)
SCHEMA = "a schema, true or false"


def problems(schema: Any) -> list[str]:
    """Without what all begin with."""
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"args": {"a": schema}})
    return [str(problem).removeprefix("args.a") for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("of_x", "told"),
    [
        ({"type": "nmber"}, [".type: 'nmber' is no type; did you mean 'number'?"]),
        ({"type": "text"}, [f".type: 'text' is no type; there are {ALL}"]),
        ({"type": ["integr", "string", "zzz"]},
         [".type[0]: 'integr' is no type; did you mean 'integer'?", f".type[2]: 'zzz' is no type; there are {ALL}"]),
        ({"type": ["string", "string"]}, [".type[1]: names string twice"]),
        ({"type": []}, [".type: names no type"]),
        ({"type": None}, ['.type: expected a type, got nothing; the type is "null", in quotes']),
        ({"type": {"a": 1}}, [f".type: a mapping is no type; there are {ALL}"]),
        ({"type": "x" * 50}, [f".type: text is no type; there are {ALL}"]),
        ("string", [f": expected {SCHEMA}, got 'string'; write {{type: string}}"]),
        (5, [f": expected {SCHEMA}, got 5"]),
        ({"minimum": "3"}, [".minimum: expected a number, got '3'"]),
        ({"minLength": -1}, [".minLength: expected a number from 0 on, got -1"]),
        ({"multipleOf": 0}, [".multipleOf: expected a number above 0, got 0"]),
        ({"enum": "a"}, [".enum: expected a list, got 'a'"]),
        ({"required": "a"}, [".required: expected a list, got 'a'"]),
        ({"required": ["a", "a"]}, [".required: expected a list that names nothing twice"]),
        ({"anyOf": []}, [".anyOf: expected a list that is not empty"]),
        ({"properties": ["a"]}, [".properties: expected a mapping, got a list"]),
        ({"additionalProperties": "no"}, [f".additionalProperties: expected {SCHEMA}, got 'no'"]),
        ({"$ref": 5}, [".$ref: expected a text, got 5"]),
        ({"deprecated": 1}, [".deprecated: expected true or false, got 1"]),
        ({"$anchor": "a b"}, [".$anchor: 'a b' does not match '^[A-Za-z_][-A-Za-z0-9._]*$'"]),
        ({"type": "nmber", "minimum": "3"},
         [".minimum: expected a number, got '3'", ".type: 'nmber' is no type; did you mean 'number'?"]),
    ],
)  # fmt: skip
def test_each_problem_is_told_once_with_its_place(of_x: Any, told: list[str]) -> None:
    place, words = zip(*(line.split(": ", 1) for line in told), strict=True)
    assert problems({"properties": {"x": of_x}}) == [
        f".properties.x{at}: not a JSON Schema: {said}" for at, said in zip(place, words, strict=True)
    ]


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(
    ("part", "path"),
    [
        ({"type": "nmber"}, ""),
        ({"items": {"type": "nmber"}}, ".items"),
        ({"additionalProperties": {"type": "nmber"}}, ".additionalProperties"),
        ({"patternProperties": {"^x": {"type": "nmber"}}}, ".patternProperties.^x"),
    ],
)
def test_every_draft_knows_its_types(draft: str, part: Any, path: str) -> None:
    """In draft 3 any text is a type, and one that no call fits."""
    assert problems({"$schema": draft, "properties": {"x": part}}) == [
        f".properties.x{path}.type: not a JSON Schema: 'nmber' is no type; did you mean 'number'?"
    ]


@pytest.mark.parametrize("draft", DRAFTS[1:5])
def test_what_may_be_a_schema_or_a_list_of_them(draft: str) -> None:
    told = problems({"$schema": draft, "items": [{"type": "nmber"}]})
    assert told == [".items[0].type: not a JSON Schema: 'nmber' is no type; did you mean 'number'?"]
    (told_of_number,) = problems({"$schema": draft, "items": 3})
    assert told_of_number in {
        ".items: not a JSON Schema: expected a schema, a list, true or false, got 3",
        ".items: not a JSON Schema: expected a mapping or a list, got 3",
    }


def test_draft_3_has_a_type_of_its_own() -> None:
    Spec.from_mapping({"args": {"a": {"$schema": DRAFTS[0], "type": ["any", "string"]}}})


@pytest.mark.parametrize(("draft", "got"), [(3, "3"), (None, "nothing"), (["a"], "a list"), ("http://[", "'http://['")])
def test_a_draft_is_named_by_its_uri(draft: Any, got: str) -> None:
    assert problems({"$schema": draft}) == [f".$schema: not a JSON Schema: expected the URI of a draft, got {got}"]


WORDS = (
    *("type", "properties", "items", "required", "enum", "minimum", "additionalProperties", "anyOf", "not", "pattern"),
    *("$ref", "$schema", "$id", "dependencies", "format", "patternProperties", "unevaluatedProperties", "x"),
)
TEXTS = (*WORDS, *TYPES, *DRAFTS, "", "[", "http://[")
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-1, 3), st.floats(), st.sampled_from([*WORDS, *TYPES, *DRAFTS, "[", ""])
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(WORDS), values, max_size=5), st.sampled_from([None, *DRAFTS]))
def test_whatever_stands_there_is_a_schema_or_is_told(schema: dict[str, Any], draft: str | None) -> None:
    """And what is told in words is what the library refuses."""
    schema |= {"$schema": draft} if draft else {}
    try:
        Spec.from_mapping({"args": {"a": schema}})
    except SpecError as error:
        told = str(error).splitlines()
        assert len(told) == len(set(told)) == len(error.problems)  # noqa: PT017 - most are refused, not all
    else:
        validator_for(schema, default=validator_for({"$schema": DRAFTS[-1]})).check_schema(schema)
