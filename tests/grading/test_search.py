"""Patterns of a spec are searched soon, however long a text is and whatever it holds, in every place that takes one."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel import Spec, Step, check
from luckrate_otel.errors import SpecError
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.patterns import pattern

# By Python's re each takes from minutes to years.
HOSTILE = (
    (r"\s+$", " " * 1_000_000 + "x"),
    (r"(a+)+$", "a" * 1_000_000 + "!"),
    (r"a.*b.*c", "ab" * 500_000),
    (r"^[\w.+-]+@[\w-]+\.[\w.-]+$", "a@" + "a." * 500_000 + "!"),
    (r"(?i)total:?\s*\d+\s*eur", "total " + " " * 1_000_000),
    (r"(?s)<!--.*-->", "<!--" * 250_000),
    (r"\w+\W+\w+!", "a" * 1_000_000),
)

# A thousand times what it takes, and a thousandth of what it would: true where another process has the core.
SOON_SECONDS = 20.0


@pytest.mark.parametrize(("written", "text"), HOSTILE)
def test_a_megabyte_is_searched_soon(written: str, text: str) -> None:
    began = time.perf_counter()
    assert pattern(written).found_in(text) is False
    assert time.perf_counter() - began < SOON_SECONDS


@given(
    st.sampled_from([r"\s+$", "a.*b.*c", r"[a-c]+,", "^a+b", "(ab|c)*d", r"(?i)B,\s", "c{2,3}"]),
    st.text("ab c,B", max_size=60),
)
def test_it_finds_what_re_finds(written: str, text: str) -> None:
    assert pattern(written).found_in(text) is (re.search(written, text) is not None)


@pytest.mark.parametrize("text", ["caf\u00e9", "\ud800", "a\x00b", ""])
def test_any_text_can_be_searched(text: str) -> None:
    assert pattern(".").found_in(text) is (text != "")


LONG = "a" * 1_000_000 + "!"
RUNS_AWAY = "^(a+)+$"


@pytest.mark.parametrize(
    "spec",
    [
        {"max_calls": {"a": {"max": 0, "where": {"x": {"matches": "(a+)+!"}}}}},
        {"args": {"a": {"properties": {"x": {"pattern": RUNS_AWAY}}}}},
        {"args": {"a": {"patternProperties": {"^(a+)+!$": False}}}},
        {"args": {"a": {"patternProperties": {RUNS_AWAY: {}}, "additionalProperties": False}}},
        {"args": {"a": {"patternProperties": {RUNS_AWAY: {}}, "additionalProperties": {"maxLength": 99}}}},
        {"args": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"properties": {"x": {
            "$schema": "http://json-schema.org/draft-07/schema#", "pattern": RUNS_AWAY}}}]}}},
    ],
    ids=["where", "pattern", "patternProperties", "additionalProperties", "others as a schema", "a draft named again"],
)  # fmt: skip
def test_every_rule_that_takes_patterns_judges_long_texts(spec: Any) -> None:
    verdict = check([Step("a", {"x": LONG, LONG: "many"})], {**spec, "ground": False}, "Do it.")
    assert len(verdict.violations) == 1
    assert verdict.not_evaluated == ()


def test_names_that_fit_a_pattern_or_are_named_are_no_others() -> None:
    schema = {
        "properties": {"x": {}},
        "patternProperties": {"^y[0-9]$": {"type": "number"}},
        "additionalProperties": False,
    }
    spec = {"args": {"a": schema}, "ground": False}

    def accused(args: dict[str, Any]) -> list[str | None]:
        return [violation.argument for violation in check([Step("a", args)], spec, "Do it.").violations]

    assert accused({"x": 1, "y1": 2}) == []
    assert accused({"x": 1, "y1": "two"}) == ["y1"]
    assert accused({"x": 1, "y12": 2}) == [None]


@pytest.mark.parametrize("by", [{"regex": RUNS_AWAY}, {"schema": {"pattern": RUNS_AWAY}}], ids=str)
def test_an_output_is_searched_as_well(by: Any) -> None:
    spec = Spec.from_mapping({"output": {"check": by}})
    assert check(Trajectory(final_output=json.dumps(LONG)), spec).output == "not_ok"


@pytest.mark.parametrize("written", ["(", "(?=a)b", r"(a)\1", "a{2000}", "[z-a]"])
def test_what_is_no_pattern_of_re2_is_told_with_its_place(written: str) -> None:
    with pytest.raises(SpecError) as told:
        Spec.from_mapping({"output": {"check": {"regex": written}}})
    (problem,) = told.value.problems
    assert problem.path == "output.check.regex"
    assert problem.message.startswith("not a regular expression of RE2")


@pytest.mark.parametrize(
    ("schema", "cause"),
    [
        ({"patternProperties": {"a": {}}, "allOf": [{"unevaluatedProperties": False}]}, "unevaluatedProperties"),
        ({"properties": {"x": {"$schema": "http://json-schema.org/draft-04/schema#"}}}, "another draft"),
    ],
    ids=["unevaluatedProperties", "another draft"],
)
def test_what_would_be_searched_otherwise_is_refused(schema: Any, cause: str) -> None:
    with pytest.raises(SpecError, match=cause):
        Spec.from_mapping({"args": {"a": schema}})
