"""However long a text is, and whatever it holds, a search for a spec's pattern ends soon, with re's answer or none."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel import Spec, Step, check
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.automaton import TooLong
from luckrate_otel.rules.backtracking import degree
from luckrate_otel.rules.search import found

# By re alone each takes from minutes to years.
HOSTILE = (
    (r"\s+$", " " * 1_000_000 + "x"),
    (r"a.*b.*c", "ab" * 500_000),
    (r"^[\w.+-]+@[\w-]+\.[\w.-]+$", "a@" + "a." * 500_000 + "!"),
    (r"(?i)total:?\s*\d+\s*eur", "total " + " " * 1_000_000),
    (r"\d+\.\d+%", "1" * 1_000_000),
    (r"(?s)<!--.*-->", "<!--" * 250_000),
    (r"\w+\W+\w+!", "a" * 1_000_000),
)

# Soon: an hour less than without, and still true where another process has the core.
SOON_SECONDS = 20.0

DEGREES = {
    r"^ops@": 1,
    r"W[0-9]+": 1,
    r"(?i)refund(ed)?": 1,
    r"^(?=.*a)(?=.*b)": 1,
    r"^\d+ ": 1,
    r"\A\d+ ": 1,
    r"(?m)^\d+ ": 2,
    r"(['\"]).\1": 1,
    r"\d{1,4}x": 1,
    r".*": 1,
    r"(?:ab+)*": 2,
    r"\s+$": 2,
    r"a.*b": 2,
    r"(a|b+)c": 2,
    r"(?>a+)b": 2,
    r"(?!.*a)b": 2,
    r"(['\"])(.*?)\1": 2,
    r"a.*b.*c": 3,
    r"(?:a+){0,3}b": 4,
    r"(a+)b\1c": 3,
    r"(a)?(?(1)b+|c)d": 2,
}


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_a_megabyte_is_searched_soon(pattern: str, text: str) -> None:
    began = time.perf_counter()
    assert found(re.compile(pattern), text) is False
    assert time.perf_counter() - began < SOON_SECONDS


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in HOSTILE])
def test_what_is_in_a_long_text_is_found(pattern: str) -> None:
    there = "a@a.a! 1.5% total: 5 eur <!-- x --> a b c"
    text = there if pattern.startswith("^") else f"{'-' * 5000}{there}{'-' * 5000} "
    assert found(re.compile(pattern), text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(("pattern", "power"), DEGREES.items())
def test_how_the_time_of_a_search_grows(pattern: str, power: int) -> None:
    assert degree(re.compile(pattern)) == power


@given(st.sampled_from([r"\s+$", "a.*b.*c", r"\w+,", "^a+b"]), st.text("ab c,", max_size=40), st.integers(0, 1000))
def test_the_answer_does_not_hang_on_the_length(pattern: str, text: str, more: int) -> None:
    long = text + "c" * more
    assert found(re.compile(pattern), long) is (re.search(pattern, long) is not None)


def test_a_pattern_that_only_re_can_follow_is_searched_in_short_texts_alone() -> None:
    quoted = re.compile(r"(['\"])(.*?)\1")
    assert found(quoted, "-" * 9_000 + "'a'")
    with pytest.raises(TooLong):
        found(quoted, "-" * 11_000 + "'a'")


LONG = "'" * 11_000
QUOTED = r"(['\"])(.*?)\1!"


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"max_calls": {"a": {"max": 0, "where": {"x": {"matches": QUOTED}}}}}, "max_calls"),
        ({"args": {"a": {"properties": {"x": {"pattern": QUOTED}}}}}, "args"),
        ({"args": {"a": {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"properties": {"x": {
            "$schema": "http://json-schema.org/draft-07/schema#", "pattern": QUOTED}}}]}}}, "args"),
        ({"args": {"a": {"patternProperties": {"^a+$": False}}}}, "args"),
    ],
    ids=["where", "pattern", "a draft named again", "patternProperties"],
)  # fmt: skip
def test_a_rule_that_cannot_tell_is_not_evaluated(spec: Any, rule: str) -> None:
    verdict = check([Step("a", {"x": LONG, "n" * 300: 1})], {**spec, "ground": False}, "Do it.", output_ok=True)
    assert [(n.rule, n.reason) for n in verdict.not_evaluated] == [(rule, "too_large")]
    assert (verdict.violations, verdict.verdict) == ((), "unverified")


def test_a_long_name_is_refused_where_no_pattern_is_searched_in_it() -> None:
    spec = {"args": {"a": {"properties": {"x": {}}, "additionalProperties": False}}, "ground": False}
    verdict = check([Step("a", {"n" * 300: 1})], spec, "Do it.")
    assert [(v.rule, v.content[-20:]) for v in verdict.violations] == [("args", "additionalProperties")]


def test_what_was_found_before_still_counts() -> None:
    spec = {"args": {"a": {"properties": {"n": {"type": "number"}, "x": {"pattern": QUOTED}}}}, "ground": False}
    verdict = check([Step("a", {"n": "many", "x": LONG})], spec, "Do it.")
    assert [(v.rule, v.argument) for v in verdict.violations] == [("args", "n")]


@pytest.mark.parametrize("by", [{"regex": QUOTED}, {"schema": {"pattern": QUOTED}}], ids=str)
def test_an_output_that_cannot_be_searched_is_not_known(by: Any) -> None:
    spec = Spec.from_mapping({"output": {"check": by}})
    assert check(Trajectory(final_output=json.dumps(LONG)), spec).output == "unknown"
    assert check(Trajectory(final_output='"no"'), spec).output == "not_ok"
