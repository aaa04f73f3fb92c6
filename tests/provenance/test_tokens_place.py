"""Where in a result a value stands."""

from __future__ import annotations

import json

import pytest

from luckrate_otel.provenance.tokens.place import layout

Found = list[tuple[str, str, bool]]


def fields(text: str) -> Found:
    return [(f.path, f.phrase, f.free) for f in layout(text).fields]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": {"b": ["x-1", 2]}}', [("$.a.b[0]", "x 1", False), ("$.a.b[1]", "2", False)]),
        ("{'a': {'b': ['x-1', 2]}}", [("$.a.b[0]", "x 1", False), ("$.a.b[1]", "2", False)]),
        ('{"Jane Doe": "x"}', [("$.*", "x", False)]),
        (
            "[Issue(owner='t@x.example', notes=[{'body': 'hi'}])]",
            [("$[0].owner", "t x example", False), ("$[0].notes[0].body", "hi", False)],
        ),
        (json.dumps({"note": json.dumps({"to": "a@b.example"})}), [("$.note.to", "a b example", False)]),
        (
            "- to: a@b.example\n  n: '1'\n- to: c",
            [("$[0].to", "a b example", False), ("$[0].n", "1", False), ("$[1].to", "c", False)],
        ),
        ("- j@x.example: '5'\n  n: 1", [("$[0].*", "5", False), ("$[0].n", "1", False)]),
        ("- cc:\n  - a\n  - b\n", [("$[0].cc", "a", False), ("$[0].cc", "b", False)]),
        ("- body: 'one\n\n    two: x'\n  id: 7", [("$[0].body", "one two x", False), ("$[0].id", "7", False)]),
        ("<p>Hi <b>you</b></p><a href='u'>x</a>", [("$", "hi you", True), ("$<a href>", "u", False), ("$", "x", True)]),
        ("pay to DE1.\n\nThanks", [("$", "pay to de1", True), ("$", "thanks", True)]),
        ("T-1042", [("$", "t 1042", True)]),
        ("42", [("$", "42", False)]),
        ("TODO(call a@b.example)", [("$", "todo call a b example", True)]),
        ("", []),
    ],
)
def test_every_common_form_of_result_has_fields(text: str, expected: Found) -> None:
    assert fields(text) == expected


def test_a_record_holds_its_own_fields_and_those_of_the_record_around_it() -> None:
    found = layout(json.dumps([{"from": "ann", "parts": [{"body": "hello"}]}, {"from": "bob", "parts": []}]))
    record = next(f.record for f in found.fields if f.phrase == "hello")
    assert found.record(record).split(" | ") == ["", "parts", "ann", "hello"]


@pytest.mark.parametrize(
    "text", ['["' + '\\"' * 5000, "['" + "\\'" * 5000, "[" * 5000, "<a " * 5000, "- a: '\n" * 5000, "{'a':" * 5000]
)
def test_broken_results_are_read_as_free_text(text: str) -> None:
    found = layout(f"{text} a@b.example").holding("a b example")
    assert [f.path.startswith("$") for f in found] == [True]
