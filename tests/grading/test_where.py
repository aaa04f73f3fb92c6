"""Filters, correlation, distances and paths: what the clauses of several rules share."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import given

from luckrate_otel import Spec, Step
from luckrate_otel.errors import SpecError
from luckrate_otel.facts import Gap
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.key import Notes, Place
from luckrate_otel.rules.path import follow, number, parse_path
from luckrate_otel.rules.where import TESTS, fits, parse_where
from luckrate_otel.rules.within import Within, parse_within
from tests.grading.asking import run
from tests.grading.test_properties import step_lists


def fit(where: dict[str, Any], step: Step, **fields: Any) -> bool | Gap:
    notes = Notes()
    read = parse_where(where, Place("where", notes))
    assert notes.problems == []
    return fits(read, run(step, **fields), 0)


PAY = Step("pay", {"amount": 40, "to": "ops@a.example", "lines": [{"sku": "A"}, {"sku": "B"}]}, True, '{"state": "ok"}')


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({}, True),
        ({"amount": 40}, True),
        ({"amount": 40.0}, True),
        ({"amount": "40"}, True),
        ({"amount": 41}, False),
        ({"args.amount": 40}, True),
        ({"amount": {"gt": 39, "lt": 41}}, True),
        ({"amount": {"gt": 40}}, False),
        ({"amount": {"ge": 40}}, True),
        ({"amount": {"lt": 40}}, False),
        ({"amount": {"le": 40}}, True),
        ({"amount": {"ne": 40}}, False),
        ({"amount": {"ne": 7}}, True),
        ({"none": {"ne": 7}}, False),
        ({"none": {"exists": False}}, True),
        ({"amount": {"exists": True}}, True),
        ({"to": ["x", "ops@a.example"]}, True),
        ({"to": {"in": ["x"]}}, False),
        ({"to": {"contains": "@a."}}, True),
        ({"to": {"matches": "^ops@"}}, True),
        ({"to": {"matches": "^@"}}, False),
        ({"amount": {"matches": "4"}}, False),
        ({"lines[0].sku": "A"}, True),
        ({"lines[1].sku": "A"}, False),
        ({"lines[*].sku": "B"}, True),
        ({"lines[2].sku": "A"}, False),
        ({"result.state": "ok"}, True),
        ({"result.other": "ok"}, False),
        ({"result": {"contains": "state"}}, True),
        ({"tags": {"contains": "b"}}, False),
        ({"lines": {"contains": {"sku": "A"}}}, True),
        ({"amount.deep[0]": 1}, False),
        ({"lines.sku": "A"}, False),
        ({"amount[0]": 1}, False),
        ({"ok": True}, True),
        ({"ok": False}, False),
        ({"agent": "main"}, True),
        ({"agent": {"matches": "^m"}}, True),
        ({"error": {"exists": False}}, True),
        ({"amount": 40, "ok": False}, False),
    ],
)
def test_where(where: dict[str, Any], expected: bool) -> None:
    assert fit(where, PAY) is expected


@pytest.mark.parametrize(
    ("where", "step", "expected"),
    [
        ({"amount": 1}, Step("pay", None), Gap.NOT_CAPTURED),
        ({"amount": 1, "agent": "other"}, Step("pay", None), False),
        ({"ok": True}, Step("pay", ok=None), Gap.NOT_CAPTURED),
        ({"error": "timeout"}, Step("pay", ok=None), Gap.NOT_CAPTURED),
        ({"error": "timeout"}, Step("pay", ok=False, error="timeout"), True),
        ({"result.a": 1}, Step("pay", result=None), Gap.NOT_CAPTURED),
        ({"result.a": 1}, Step("pay", result=None, ok=None, error="no_return"), False),
        ({"result.a": 1}, Step("pay", result="no json"), False),
        ({"result.a": 1}, Step("pay", result="[" * 100_000), False),
    ],
)
def test_what_a_step_does_not_tell(where: dict[str, Any], step: Step, expected: bool | Gap) -> None:
    assert fit(where, step) is expected


def test_the_reason_of_a_gap_is_kept() -> None:
    assert fit({"amount": 1}, Step("pay", None), gaps={(0, "args"): Gap.REDACTED}) is Gap.REDACTED
    assert fit({"agent": "main"}, Step("pay"), gaps={(0, "agent"): Gap.INCOMPLETE}) is Gap.INCOMPLETE


@given(step_lists)
def test_filters_never_raise(steps: tuple[Step, ...]) -> None:
    where = parse_where(
        {"a": {"gt": 1, "contains": "x", "matches": "x", "exists": False}, "b[*].c": [1, "x"], "result.a": 1},
        Place("where", Notes()),
    )
    for index in range(len(steps)):
        assert fits(where, Trajectory(steps), index) in (True, False, *Gap)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (40, 40),
        (40.5, 40.5),
        (40.0, 40),
        ("40", 40),
        (" -40.50 ", -40.5),
        ("1e3", 1000),
        ("12345678901234567890", 12345678901234567890),
        ("1_000", None),
        ("W100", None),
        ("", None),
        ("nan", None),
        (True, None),
        (None, None),
        (inf, None),
        (float("nan"), None),
    ],
)
def test_numbers(value: Any, expected: float | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a", ("a",)),
        ("$.a", ("a",)),
        ("$", ()),
        ("a.b[0].c", ("a", "b", 0, "c")),
        ("[0].id", (0, "id")),
        ("a[*]", ("a", -1)),
        ("order id", ("order id",)),
    ],
)
def test_paths(path: str, parts: tuple[Any, ...]) -> None:
    assert parse_path(path, Place("x", Notes())) == parts


@pytest.mark.parametrize("path", ["a..b", "a.", "a[", "a[x]", "a[-1]", "a]"])
def test_what_is_no_path(path: str) -> None:
    notes = Notes()
    parse_path(path, Place("x", notes))
    assert [str(problem) for problem in notes.problems] == [f"x: not a path like order.lines[0].price: {path!r}"]


def test_every_member_of_a_list_and_no_more_than_a_thousand() -> None:
    assert follow({"a": [{"b": 1}, {"c": 2}, {"b": 3}]}, ("a", -1, "b")) == [1, 3]
    assert len(follow(list(range(5000)), (-1,))) == 1000


@pytest.mark.parametrize(
    ("value", "expected", "words"),
    [
        ("3 steps", Within(steps=3), "within 3 steps"),
        ("1 step", Within(steps=1), "within 1 step"),
        (30, Within(ms=30_000), "within 30 s"),
        ("2m", Within(ms=120_000), "within 120 s"),
        ("250ms", Within(ms=250), "within 0.25 s"),
    ],
)
def test_within(value: Any, expected: Within, words: str) -> None:
    read = parse_within(value, Place("within", Notes()))
    assert (read, str(read)) == (expected, words)


@pytest.mark.parametrize(
    ("clause", "problems"),
    [
        ({"first": "a", "thn": "b"},
         ["leads_to[0].thn: unknown key; did you mean 'then'?", "leads_to[0]: then is missing"]),
        ("ab", ["leads_to[0]: expected a pair of calls, [a, b], or a mapping with first and then, got 'ab'"]),
        (["a", {"where": {}}], ["leads_to[0][1]: tool is missing"]),
        (["a", {"tool": "b", "wher": {}}], ["leads_to[0][1].wher: unknown key; did you mean 'where'?"]),
        (["a", []], ["leads_to[0][1]: names no tool"]),
        (["a", {"tool": "b", "where": {"x": {"gtt": 1}}}],
         [f"leads_to[0][1].where.x: expected one of {', '.join(TESTS)}, exists, got 'gtt'; did you mean 'gt'?"]),
        (["a", {"tool": "b", "where": {"x": {"gt": "y"}}}],
         ["leads_to[0][1].where.x.gt: expected a number, got 'y'"]),
        (["a", {"tool": "b", "where": {"x": {"matches": 7}}}],
         ["leads_to[0][1].where.x.matches: expected a regular expression, got 7"]),
        (["a", {"tool": "b", "where": {"x": {"matches": "("}}}],
         ["leads_to[0][1].where.x.matches: not a regular expression of RE2: missing ): ("]),
        (["a", {"tool": "b", "where": {"x": {"exists": 1, "in": "b"}}}],
         ["leads_to[0][1].where.x.exists: expected true or false, got 1",
          "leads_to[0][1].where.x.in: expected a list of values, got 'b'"]),
        ({"first": "a", "then": "b", "within": "0 steps"}, ["leads_to[0].within: expected at least 1 step"]),
        ({"first": "a", "then": "b", "within": "soon"},
         [('leads_to[0].within: expected steps like "3 steps", seconds, or a duration like "10s" or "2m", '
          "got 'soon'")]),
        ({"first": "a", "then": "c"}, ["leads_to[0].then: 'c' is not one of the spec's tools"]),
        ({"first": ["a", "b"], "then": "b", "same": "x..y"},
         ["leads_to[0].same: not a path like order.lines[0].price: 'x..y'"]),
    ],
)  # fmt: skip
def test_problems_of_a_clause(clause: Any, problems: list[str]) -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"tools": ["a", "b"], "leads_to": [clause]})
    assert [str(problem) for problem in raised.value.problems] == problems


def test_a_choice_tells_what_is_wrong_with_it() -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"any_of": [{"cals": ["a"]}, {"calls": [], "same": "id"}]})
    assert [str(problem) for problem in raised.value.problems] == [
        "any_of[0].cals: unknown key; did you mean 'calls'?",
        "any_of[0]: calls is missing",
        "any_of[1]: same and within need before: they relate two calls",
        "any_of[1].calls: names no call",
    ]
