"""A finding is known again by what its clause says: wherever the clause stands, and no other clause in its place."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel import Step, Turn, check
from luckrate_otel.model import Trajectory, Verdict, Violation
from luckrate_otel.rules.key import no_clauses
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import KEYS
from luckrate_otel.verdict_json import from_record, to_record

Spec = dict[str, Any]

# Keys that have no clauses: what is legal, what is untrusted, and switches. A finding's tool and argument say it all.
NAMING = frozenset("tools untrusted privileged targets fields delegates handoffs".split()) | {
    "ground",
    "secrets",
    "definitions",
    "no_repeat",
}

TOOLS = "abcd"
NAMES = st.sampled_from(TOOLS)
CALLS = st.one_of(
    NAMES, st.lists(NAMES, min_size=1, max_size=2), st.fixed_dictionaries({"tool": NAMES, "where": st.just({"n": 1})})
)
PAIRS = st.one_of(
    st.tuples(CALLS, CALLS).map(list),
    st.fixed_dictionaries(
        {"first": CALLS, "then": CALLS}, optional={"same": st.just("n"), "within": st.just("2 steps")}
    ),
)
LISTS: Mapping[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("required", "forbidden"), NAMES),
    **dict.fromkeys(("before", "each_before", "leads_to", "next", "not_after", "not_both"), PAIRS),
    "any_of": st.one_of(
        st.lists(CALLS, min_size=1, max_size=2),
        st.fixed_dictionaries({"calls": st.lists(CALLS, min_size=1, max_size=2), "before": CALLS}),
    ),
    "relations": st.one_of(
        st.tuples(NAMES, st.sampled_from(("<", "==", "!=")), NAMES).map(lambda r: f"{r[0]}.n {r[1]} {r[2]}.n"),
        st.tuples(NAMES, st.sampled_from("12")).map(lambda r: {"that": f"{r[0]}.n < {r[1]}", "same": "m"}),
    ),
    "max_retries": st.fixed_dictionaries({"times": st.integers(0, 1)}, optional={"tool": NAMES, "then": CALLS}),
}
SPECS = st.fixed_dictionaries({}, optional={key: st.lists(clause, max_size=3) for key, clause in LISTS.items()})
RUNS = st.lists(
    st.builds(
        Step,
        NAMES,
        st.fixed_dictionaries({"n": st.integers(1, 2), "m": st.integers(1, 2)}),
        st.booleans(),
        st.just("no"),
    ),
    max_size=8,
)


def graded(steps: list[Step] | Trajectory, spec: Spec) -> Verdict:
    return check(steps, {"ground": False, "secrets": False, **spec})


def told(violation: Violation) -> tuple[object, ...]:
    """All of a finding but the place of its clause."""
    words = violation.message.removeprefix(violation.clause)
    return violation.rule, words, violation.step, violation.tool, violation.argument, violation.fingerprint


def findings(steps: list[Step], spec: Spec) -> Counter[tuple[object, ...]]:
    return Counter(map(told, graded(steps, spec).violations))


@given(SPECS, RUNS, st.data())
def test_clauses_that_move_keep_their_findings(spec: Spec, steps: list[Step], data: st.DataObject) -> None:
    moved = {key: data.draw(st.permutations(clauses)) for key, clauses in spec.items()}
    assert findings(steps, moved) == findings(steps, spec)


@given(SPECS, RUNS, st.data())
def test_clauses_that_are_added_anywhere_leave_the_others_findings_as_they_are(
    spec: Spec, steps: list[Step], data: st.DataObject
) -> None:
    more = {key: list(clauses) for key, clauses in spec.items()}
    for key in data.draw(st.lists(st.sampled_from(sorted(LISTS)), min_size=1, max_size=4)):
        clauses = more.setdefault(key, [])
        clauses.insert(data.draw(st.integers(0, len(clauses))), data.draw(LISTS[key]))
    assert findings(steps, spec) <= findings(steps, more)


@given(st.sampled_from(sorted(LISTS)), RUNS, st.data())
def test_a_clause_in_anothers_place_does_not_pass_for_it(key: str, steps: list[Step], data: st.DataObject) -> None:
    one, other = (data.draw(LISTS[key]) for _ in range(2))
    before, after = ({v.fingerprint for v in graded(steps, {key: [clause]}).violations} for clause in (one, other))
    assert one == other or not before & after


# ---- each key -----------------------------------------------------------------------------------

A = Step("a", {"n": 9, "m": "x"}, duration=9000.0)
FAILED = Step("a", {"n": 9}, ok=False, error="E", duration=9000.0)
RUN = Trajectory(
    steps=tuple(replace(step, t=i * 10_000.0) for i, step in enumerate((A, A, FAILED, FAILED, FAILED))),
    turns=(Turn("Do it."),),
    duration=9000.0,
    tokens=9,
)

# key → a clause, the same written anew, each broken by RUN at the same call
CHANGED: Mapping[str, tuple[Any, Any]] = {
    "required": (["x"], ["y"]),
    "forbidden": (["a"], None),
    **dict.fromkeys(("before", "each_before", "leads_to", "next"), ([["x", "a"]], [["y", "a"]])),
    "leads_to": ([["a", "x"]], [["a", "y"]]),
    "next": ([["a", "x"]], [["a", "y"]]),
    **dict.fromkeys(("not_after", "not_both"), ([["a", "a"]], [["a", ["a", "x"]]])),
    "any_of": ([{"calls": ["x"], "before": "a"}], [{"calls": ["y"], "before": "a"}]),
    "starts_with": ("x", "y"),
    "ends_with": (["x"], ["y"]),
    "exactly": (["x"], ["y"]),
    "max_steps": (1, 2),
    "max_calls": ({"a": 1}, {"a": 2}),
    "max_retries": (0, 1),
    "max_duration": (1, 2),
    "max_step_duration": ({"a": 1}, {"a": 2}),
    "max_tokens": (1, 2),
    "args": ({"a": {"properties": {"n": {"maximum": 1}}}}, {"a": {"properties": {"n": {"maximum": 2}}}}),
    "relations": (["a.n < 1"], ["a.n < 2"]),
    "agents": ({"main": {"max_steps": 1}}, {"main": {"max_steps": 2}}),
}


def fingerprints(spec: Spec) -> set[str]:
    return {violation.fingerprint for violation in graded(RUN, spec).violations}


@pytest.mark.parametrize("key", sorted(CHANGED))
def test_a_clause_that_changes_makes_its_findings_new(key: str) -> None:
    before, after = CHANGED[key]
    assert fingerprints({key: before})
    if after is not None:  # a forbidden tool is its own clause
        assert fingerprints({key: after})
        assert not fingerprints({key: before}) & fingerprints({key: after})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"max_retries": 1}, {"max_retries": [{"times": 0, "tool": "x"}, 1]}),
        ({"max_retries": [1]}, {"max_retries": 1}),
        ({"max_calls": {"a": 1}}, {"max_calls": {"b": 1, "a": 1}}),
        ({"max_calls": {"a": 1}}, {"max_calls": {"a": 1}, "aliases": {"a": ["A"]}}),
        ({"max_step_duration": "1s"}, {"max_step_duration": {"b": "2s", "*": "1s"}}),
        ({"forbidden": {"a"}}, {"forbidden": ["b", "a"]}),
        ({"tools": ["x"]}, {"tools": ["x", "y"]}),
        ({"agents": {"main": {"max_calls": {"a": 1}}}}, {"agents": {"main": {"max_calls": {"b": 1, "a": 1}}, "o": {}}}),
        (
            {"args": {"a": {"properties": {"n": {"maximum": 1}}}}},
            {"args": {"a": {"properties": {"n": {"maximum": 1}}, "from": {"m": "a"}}}},
        ),
        ({"args": {"a": {"from": {"n": "user"}}}}, {"args": {"a": {"maxProperties": 2, "from": {"n": ["user"]}}}}),
        ({"before": [("x", "a")]}, {"before": [["b", "c"], ["x", "a"]]}),
    ],
    ids=str,
)
def test_what_is_said_elsewhere_changes_nothing(before: Spec, after: Spec) -> None:
    old, new = fingerprints(before), fingerprints(after)
    assert old
    assert old <= new


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"args": {"a": {"from": {"n": "user"}}}}, {"args": {"a": {"from": {"n": ["user", "b"]}}}}),
        (
            {"args": {"a": {"properties": {"n": {"maximum": 1}}}}},
            {"args": {"a": {"properties": {"n": {"type": "string"}}}}},
        ),
    ],
    ids=str,
)
def test_what_is_asked_of_an_argument_is_part_of_its_clause(before: Spec, after: Spec) -> None:
    old, new = fingerprints(before), fingerprints(after)
    assert old
    assert new
    assert not old & new


def test_findings_of_one_clause_tool_and_argument_are_told_apart_by_what_they_accuse() -> None:
    schema = {"args": {"a": {"properties": {"n": {"maximum": 1, "type": "string"}}}}}
    assert len({v.fingerprint for v in graded([A], schema).violations}) == 2
    handed: Spec = {"handoffs": []}
    steps = [Step("x", agent="triage"), Step("a", agent="billing")]
    others = [Step("x", agent="triage"), Step("a", agent="refunds")]
    one, other = graded(steps, handed).violations + graded(others, handed).violations
    assert one.fingerprint != other.fingerprint


def test_identical_clauses_share_and_a_severity_is_no_part_of_a_clause() -> None:
    twice = graded([A], {"before": [["x", "a"], ["x", "a"]]}).violations
    lax = graded([A], {"before": [["x", "a"]], "severity": {"before": "warn"}}).violations
    assert len({v.fingerprint for v in twice + lax}) == 1


def test_every_rule_has_clauses_or_none_for_a_reason() -> None:
    of_rules = {key.name for rule in RULES.values() for key in rule.keys}
    with_clauses = {key.name for key in KEYS.values() if key.clauses is not no_clauses}
    assert with_clauses == set(CHANGED)
    assert with_clauses | NAMING == of_rules
    assert not with_clauses & NAMING


@given(SPECS, RUNS)
def test_a_verdict_that_was_stored_has_the_same_fingerprints(spec: Spec, steps: list[Step]) -> None:
    verdict = graded(steps, spec)
    assert from_record(json.loads(json.dumps(to_record(verdict)))) == verdict
