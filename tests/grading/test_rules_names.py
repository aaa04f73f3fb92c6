"""The rules that look at names and order alone: unknown_tool, required, forbidden, before, max_steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from luckrate_otel.facts import CloseReason, Gap
from luckrate_otel.model import Evidence, Severity, Step, Trajectory, Violation
from tests.grading.asking import ask, only, places, run, state

CUT_SHORT = [CloseReason.NO_ROOT, CloseReason.MEMORY, CloseReason.SHUTDOWN]
WHOLE = [CloseReason.ROOT, CloseReason.END_OF_INPUT]

# rule, spec, run → state, places
CASES: list[tuple[str, Mapping[str, Any], Trajectory, str, list[tuple[str, int | None, str | None]]]] = [
    ("unknown_tool", {"tools": ["a", "b"]}, run("a", "b", "a"), "satisfied", []),
    ("unknown_tool", {"tools": ["a"]}, run("b"), "violated", [("tools", 0, "b")]),
    ("unknown_tool", {"tools": ["a"]}, run("A"), "violated", [("tools", 0, "A")]),
    ("unknown_tool", {"tools": ["a"]}, run("c", "a", "b", "c"), "violated", [("tools", 0, "c"), ("tools", 2, "b")]),
    ("unknown_tool", {"tools": ["a"]}, run(), "vacuous", []),
    ("required", {"required": ["a", "b"]}, run("b", "a"), "satisfied", []),
    ("required", {"required": ["a"]}, run(), "violated", [("required[0]", None, "a")]),
    ("required", {"required": ["a", "b"]}, run("a", "B"), "violated", [("required[1]", None, "b")]),
    ("required", {"required": ["a"]}, run(Step("a", ok=False)), "satisfied", []),
    ("forbidden", {"forbidden": ["x"]}, run("a"), "satisfied", []),
    ("forbidden", {"forbidden": ["x"]}, run(), "satisfied", []),
    ("forbidden", {"forbidden": ["y", "x"]}, run("a", "x"), "violated", [("forbidden[1]", 1, "x")]),
    ("forbidden", {"forbidden": ["x"]}, run("xx", "X"), "satisfied", []),
    ("forbidden", {"forbidden": ["x"]}, run(Step("x", ok=False)), "violated", [("forbidden[0]", 0, "x")]),
    ("before", {"before": [("a", "b")]}, run("a", "b"), "satisfied", []),
    ("before", {"before": [("a", "b")]}, run("b"), "violated", [("before[0]", 0, "b")]),
    ("before", {"before": [("a", "b")]}, run("b", "a"), "violated", [("before[0]", 0, "b")]),
    ("before", {"before": [("a", "b")]}, run("b", "a", "b"), "violated", [("before[0]", 0, "b")]),
    ("before", {"before": [("a", "b")]}, run("a", "b", "b", "a"), "satisfied", []),
    ("before", {"before": [("a", "b")]}, run("a", "c"), "vacuous", []),
    ("before", {"before": [("a", "b"), ("a", "c")]}, run("c", "a"), "violated", [("before[1]", 0, "c")]),
    ("before", {"before": [("a", "b"), ("a", "c")]}, run("a", "c"), "satisfied", []),
    ("before", {"before": [("a", "a")]}, run("a"), "satisfied", []),
    ("max_steps", {"max_steps": 2}, run("a"), "satisfied", []),
    ("max_steps", {"max_steps": 2}, run("a", "b"), "satisfied", []),
    ("max_steps", {"max_steps": 2}, run("a", "b", "c"), "violated", [("max_steps", None, None)]),
    ("max_steps", {"max_steps": 0}, run(), "satisfied", []),
    ("max_steps", {"max_steps": 0}, run("a"), "violated", [("max_steps", None, None)]),
]


@pytest.mark.parametrize(("rule", "spec", "trajectory", "ends", "found"), CASES)
def test_rule(
    rule: str,
    spec: Mapping[str, Any],
    trajectory: Trajectory,
    ends: str,
    found: list[tuple[str, int | None, str | None]],
) -> None:
    outcome = ask(rule, spec, trajectory)
    assert (state(outcome), places(outcome)) == (ends, found)


def test_an_unknown_tool_is_told_once_with_its_other_calls_as_evidence() -> None:
    assert only(ask("unknown_tool", {"tools": ["a"]}, run("a", "x", "a", "x", "x"))) == Violation(
        rule="unknown_tool",
        clause="tools",
        severity=Severity.HARD,
        message="tools: x (step 1) is not a tool of the vocabulary",
        step=1,
        tool="x",
        evidence=(Evidence(3, "s3"), Evidence(4, "s4")),
        span="s1",
    )


def test_a_missing_tool_is_told_of_the_run() -> None:
    assert only(ask("required", {"required": ["a"]}, run("b"))) == Violation(
        rule="required",
        clause="required[0]",
        severity=Severity.HARD,
        message="required[0]: a was never called",
        tool="a",
        span="r",
    )


def test_a_forbidden_tool_is_told_once_with_its_other_calls_as_evidence() -> None:
    assert only(ask("forbidden", {"forbidden": ["x"]}, run("x", "a", "x"))) == Violation(
        rule="forbidden",
        clause="forbidden[0]",
        severity=Severity.HARD,
        message="forbidden[0]: x (step 0) must not be called",
        step=0,
        tool="x",
        evidence=(Evidence(2, "s2"),),
        span="s0",
    )


def test_a_call_without_the_one_before_it() -> None:
    assert only(ask("before", {"before": [("a", "b")]}, run("c", "b"))) == Violation(
        rule="before",
        clause="before[0]",
        severity=Severity.HARD,
        message="before[0]: b (step 1) was called without a",
        step=1,
        tool="b",
        span="s1",
    )


def test_a_call_that_came_too_early_points_at_the_late_one() -> None:
    assert only(ask("before", {"before": [("a", "b")]}, run("b", "c", "a", "a"))) == Violation(
        rule="before",
        clause="before[0]",
        severity=Severity.HARD,
        message="before[0]: b (step 0) did not wait for a (step 2)",
        step=0,
        tool="b",
        evidence=(Evidence(2, "s2"),),
        span="s0",
    )


def test_a_step_over_the_budget_is_the_evidence() -> None:
    assert only(ask("max_steps", {"max_steps": 2}, run("a", "b", "c", "d"))) == Violation(
        rule="max_steps",
        clause="max_steps",
        severity=Severity.SOFT,
        message="max_steps: step 2 is over the budget of 2 (4 taken)",
        evidence=(Evidence(2, "s2"),),
        span="r",
    )


# ---- runs cut short --------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", CUT_SHORT)
def test_what_is_absent_from_a_run_cut_short_may_still_have_come(reason: CloseReason) -> None:
    lone = run("b", close_reason=reason)
    assert state(ask("required", {"required": ["a"]}, lone)) is Gap.INCOMPLETE
    assert state(ask("before", {"before": [("a", "b")]}, lone)) is Gap.INCOMPLETE


@pytest.mark.parametrize("reason", CUT_SHORT)
def test_what_is_present_in_a_run_cut_short_counts(reason: CloseReason) -> None:
    seen = run("b", "a", close_reason=reason)
    assert state(ask("required", {"required": ["a"]}, seen)) == "satisfied"
    assert state(ask("before", {"before": [("a", "b")]}, seen)) == "violated"
    assert state(ask("before", {"before": [("c", "a"), ("a", "b")]}, seen)) == "violated"
    assert state(ask("forbidden", {"forbidden": ["a"]}, seen)) == "violated"
    assert state(ask("unknown_tool", {"tools": ["a"]}, seen)) == "violated"
    assert state(ask("max_steps", {"max_steps": 1}, seen)) == "violated"


@pytest.mark.parametrize("reason", WHOLE)
def test_what_is_absent_from_a_whole_run_is_missing(reason: CloseReason) -> None:
    lone = run("b", close_reason=reason)
    assert state(ask("required", {"required": ["a"]}, lone)) == "violated"
    assert state(ask("before", {"before": [("a", "b")]}, lone)) == "violated"


# ---- overlap ---------------------------------------------------------------------------------------


def timed(*calls: tuple[str, float, float | None]) -> Trajectory:
    return run(*(Step(tool, {}, t=t, duration=duration) for tool, t, duration in calls))


@pytest.mark.parametrize(
    ("trajectory", "by_issue", "by_overlap"),
    [
        (timed(("a", 0, 9), ("b", 10, 1)), "satisfied", "satisfied"),
        (timed(("a", 0, 10), ("b", 10, 1)), "satisfied", "satisfied"),
        (timed(("a", 0, 11), ("b", 10, 1)), "satisfied", "violated"),
        (timed(("a", 0, None), ("b", 10, 1)), "satisfied", "satisfied"),
        (timed(("a", 0, 50), ("a", 1, 2), ("b", 10, 1)), "satisfied", "satisfied"),
        (timed(("b", 0, 5), ("a", 1, 1)), "violated", "violated"),
    ],
)
def test_a_call_waits_for_the_end_of_the_other_only_under_overlap(
    trajectory: Trajectory, by_issue: str, by_overlap: str
) -> None:
    spec = {"before": [("a", "b")]}
    assert state(ask("before", spec, trajectory)) == by_issue
    assert state(ask("before", {**spec, "order": "overlap"}, trajectory)) == by_overlap


def test_names_from_a_model_stay_on_one_short_line() -> None:
    message = only(ask("unknown_tool", {"tools": ["a"]}, run("x\ny" + "z" * 200))).message
    assert message == "tools: x\N{REPLACEMENT CHARACTER}y" + "z" * 77 + "… (step 0) is not a tool of the vocabulary"


@pytest.mark.parametrize(("length", "shown"), [(79, "x" * 79), (80, "x" * 80), (81, "x" * 80 + "…")])
def test_names_are_cut_past_80_characters(length: int, shown: str) -> None:
    assert only(ask("forbidden", {"forbidden": ["x" * length]}, run("x" * length))).message == (
        f"forbidden[0]: {shown} (step 0) must not be called"
    )
