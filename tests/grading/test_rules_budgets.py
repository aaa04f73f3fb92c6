"""Budgets, retries, agents and handoffs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.errors import SpecError
from luckrate_otel.facts import CloseReason, Gap
from luckrate_otel.model import Severity, Step, Trajectory
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import Spec
from tests.grading.asking import ask, only, places, run, state

Places = list[tuple[str, int | None, str | None]]


def failed(tool: str = "a", error: str = "Timeout: after 3 s", **args: Any) -> Step:
    return Step(tool, args, False, "", error=error)


def by(agent: str, tool: str = "a") -> Step:
    return Step(tool, {}, agent=agent)


def whose(*agents: str | None, **fields: Any) -> Trajectory:
    """A run of calls by these agents; None: nobody knows whose."""
    gaps = {(i, "agent"): Gap.INCOMPLETE for i, agent in enumerate(agents) if agent is None}
    return run(*[by(agent or "main") for agent in agents], gaps=gaps, **fields)


CASES: list[tuple[str, Any, Trajectory, str, Places]] = [
    ("max_calls", {"a": 1}, run("a", "b", "b"), "satisfied", []),
    ("max_calls", {"a": 1}, run(), "satisfied", []),
    ("max_calls", {"a": 1}, run("a", "b", "a", "a"), "violated", [("max_calls.a", 2, "a")]),
    ("max_calls", {"a": 0}, run("a"), "violated", [("max_calls.a", 0, "a")]),
    ("max_calls", {"a": {"max": 1, "same": "id"}}, run(Step("a", {"id": 1}), Step("a", {"id": 2})), "satisfied", []),
    (
        "max_calls",
        {"a": {"max": 1, "same": "id"}},
        run(Step("a", {"id": 1}), Step("a", {"id": 2}), Step("a", {"id": "1"})),
        "violated",
        [("max_calls.a", 2, "a")],
    ),
    ("max_calls", {"a": {"max": 0, "where": {"ok": False}}}, run("a"), "satisfied", []),
    ("max_calls", {"a": {"max": 0, "where": {"id": 1}}}, run(Step("a", None)), Gap.NOT_CAPTURED, []),
    ("max_calls", {"a": {"max": 1, "same": "id"}}, run(Step("a", None), Step("a", {"id": 1})), Gap.NOT_CAPTURED, []),
    ("max_calls", {"a": {"max": 2, "same": "id"}}, run(Step("a", None), Step("a", {"id": 1})), "satisfied", []),
    ("max_retries", 1, run(failed(), failed()), "satisfied", []),
    ("max_retries", 1, run(failed(), failed(), failed(), failed()), "violated", [("max_retries", 2, "a")]),
    ("max_retries", 0, run(failed(), failed()), "violated", [("max_retries", 1, "a")]),
    ("max_retries", 0, run(failed(x=1), failed(x=2)), "satisfied", []),
    ("max_retries", 0, run(failed(), failed("b")), "satisfied", []),
    ("max_retries", 0, run(failed(), "b", failed()), "violated", [("max_retries", 2, "a")]),
    ("max_retries", 0, run(failed(), "a", failed()), "satisfied", []),
    ("max_retries", 0, run(failed(), failed(error="Refused")), "satisfied", []),
    ("max_retries", 0, run(failed(), failed(error="Timeout: after 9 s")), "violated", [("max_retries", 1, "a")]),
    ("max_retries", 0, run(Step("a", {}, False, "10 %"), Step("a", {}, False, "20 %")), "satisfied", []),
    (
        "max_retries",
        0,
        run(Step("a", {}, False, "x"), Step("a", {}, False, "x")),
        "violated",
        [("max_retries", 1, "a")],
    ),
    ("max_retries", 0, run("a", "a"), "satisfied", []),
    ("max_retries", {"times": 0, "errors": "REFUSED"}, run(failed(), failed()), "satisfied", []),
    (
        "max_retries",
        {"times": 0, "errors": ["time"]},
        run(failed(), failed()),
        "violated",
        [("max_retries", 1, "a")],
    ),
    ("max_retries", {"times": 0, "tool": "b"}, run(failed(), failed()), "satisfied", []),
    ("max_retries", [{"times": 9}, {"times": 0}], run(failed(), failed()), "violated", [("max_retries[1]", 1, "a")]),
    ("max_retries", {"times": 1, "then": "help"}, run(failed(), failed(), "b", "help"), "satisfied", []),
    ("max_retries", {"times": 1, "then": "help"}, run(failed(), failed(), "a"), "satisfied", []),
    ("max_retries", {"times": 1, "then": "help"}, run(failed()), "satisfied", []),
    ("max_retries", {"times": 1, "then": "help"}, run(failed(), failed(), "b"), "violated", [("max_retries", 1, "a")]),
    ("max_retries", 0, run(failed(), Step("a", {}, None)), Gap.NOT_CAPTURED, []),
    ("max_retries", 0, run(failed(), Step("a", {}, None, None, error="no_return")), Gap.NOT_CAPTURED, []),
    ("max_retries", 0, run(failed(), Step("a", None, False)), Gap.NOT_CAPTURED, []),
    ("max_retries", 0, run(Step("a", {}, False, None), Step("a", {}, False, None)), Gap.NOT_CAPTURED, []),
    ("max_duration", "2s", run(duration=2000), "satisfied", []),
    ("max_duration", "2s", run(duration=2001), "violated", [("max_duration", None, None)]),
    ("max_duration", "2s", run(duration=None), Gap.NOT_CAPTURED, []),
    ("max_duration", "2s", run(Step("a", t=2001), duration=None), "violated", [("max_duration", None, None)]),
    ("max_duration", "2s", run(duration=1, close_reason=CloseReason.MEMORY), Gap.INCOMPLETE, []),
    ("max_tokens", 10, run(tokens=10), "satisfied", []),
    ("max_tokens", 10, run(tokens=11), "violated", [("max_tokens", None, None)]),
    ("max_tokens", 10, run(), Gap.NOT_CAPTURED, []),
    ("max_tokens", 10, run(tokens=1, close_reason=CloseReason.MEMORY), Gap.INCOMPLETE, []),
    ("max_tokens", 10, run(tokens=11, close_reason=CloseReason.MEMORY), "violated", [("max_tokens", None, None)]),
    ("max_step_duration", 1, run(Step("a", duration=1000)), "satisfied", []),
    ("max_step_duration", 1, run(Step("a", duration=1001)), "violated", [("max_step_duration", 0, "a")]),
    ("max_step_duration", 1, run("a"), Gap.NOT_CAPTURED, []),
    ("max_step_duration", {"b": 1}, run("a"), "satisfied", []),
    (
        "max_step_duration",
        {"b": 2, "*": 1},
        run(Step("a", duration=1500), Step("b", duration=1500), Step("b", duration=2500)),
        "violated",
        [("max_step_duration", 0, "a"), ("max_step_duration.b", 2, "b")],
    ),
    ("handoffs", [("x", "y")], run(by("x"), by("y"), by("x"), by("y")), "satisfied", []),
    ("handoffs", [("x", "y")], run(by("y"), by("x")), "violated", [("handoffs", 1, "a")]),
    ("handoffs", [("x", "y"), ("x", "z")], run(by("x"), by("y"), by("z")), "satisfied", []),
    ("handoffs", [("x", "y")], run(by("x"), by("y"), by("z"), by("z")), "violated", [("handoffs", 2, "a")]),
    ("handoffs", [("x", "y")], run(by("y"), agent="x"), "satisfied", []),
    ("handoffs", [], run(by("y"), agent="x"), "violated", [("handoffs", 0, "a")]),
    ("handoffs", [], run(by("x"), by("x")), "vacuous", []),
    ("handoffs", [], whose("x", None, "x", None), Gap.INCOMPLETE, []),
    ("handoffs", [], whose(None, "x"), Gap.INCOMPLETE, []),
    ("handoffs", [], whose(None, agent="x"), Gap.INCOMPLETE, []),
    ("handoffs", [], whose("x", None, "y"), Gap.INCOMPLETE, []),
    ("handoffs", [], whose("x", None, "x", "y"), "violated", [("handoffs", 3, "a")]),
    ("agents", {"main": {"tools": ["b"]}}, whose(None), Gap.INCOMPLETE, []),
    ("agents", {"x": {"max_steps": 1}}, whose("x", None), Gap.INCOMPLETE, []),
    ("agents", {"x": {"max_steps": 1}}, whose("x", None, "x"), "violated", [("agents.x.max_steps", 2, "a")]),
    ("agents", {"x": {"tools": ["a"]}}, run(by("x"), by("y", "b")), "satisfied", []),
    ("agents", {"x": {"tools": ["a"]}}, run(by("y", "b")), "vacuous", []),
    ("agents", {"x": {"tools": ["a"]}}, run(by("x", "b"), by("x", "b")), "violated", [("agents.x.tools", 0, "b")]),
    ("agents", {"x": {"forbidden": ["b"]}}, run(by("x"), by("x", "b")), "violated", [("agents.x.forbidden", 1, "b")]),
    ("agents", {"x": {"max_steps": 1}}, run(by("x"), by("y"), by("x")), "violated", [("agents.x.max_steps", 2, "a")]),
    ("agents", {"x": {"max_steps": 2}}, run(by("x"), by("y"), by("x")), "satisfied", []),
    (
        "agents",
        {"x": {"max_calls": {"a": 1}}},
        run(by("x"), by("y"), by("x")),
        "violated",
        [("agents.x.max_calls.a", 2, "a")],
    ),
]


@pytest.mark.parametrize(("rule", "written", "trajectory", "ends", "found"), CASES)
def test_rule(rule: str, written: Any, trajectory: Trajectory, ends: str, found: Places) -> None:
    outcome = ask(rule, {rule: written}, trajectory)
    assert (state(outcome), places(outcome)) == (ends, found)


@pytest.mark.parametrize(
    ("rule", "written", "trajectory", "message", "evidence"),
    [
        ("max_calls", {"a": 1}, run("a", "a", "a"), "max_calls.a: a (step 1) is over the limit of 1 (3 made)", [2]),
        (
            "max_retries",
            1,
            run(failed(), failed(), failed()),
            "max_retries: a (step 2) is retry 2 of a call that fails the same way, 1 allowed",
            [0, 1],
        ),
        (
            "max_retries",
            {"times": 0, "then": "help"},
            run(failed()),
            "max_retries: a (step 0) failed 1 time and help did not follow",
            [],
        ),
        ("max_duration", 1.5, run(duration=2345.6), "max_duration: 2.35 s is over the budget of 1.5 s", []),
        ("max_tokens", 10, run(tokens=11), "max_tokens: 11 tokens are over the budget of 10", []),
        (
            "max_step_duration",
            1,
            run(Step("a", duration=2345.6)),
            "max_step_duration: a (step 0) took 2.35 s, over the budget of 1 s",
            [],
        ),
        ("handoffs", [], run(by("x"), by("y")), "handoffs: x may not hand over to y (step 1)", []),
        (
            "agents",
            {"x": {"tools": []}},
            run(by("x"), by("x")),
            "agents.x.tools: a (step 0) is not for x to call",
            [1],
        ),
        (
            "agents",
            {"x": {"max_steps": 1}},
            run(by("x"), by("x"), by("x")),
            "agents.x.max_steps: a (step 1) is over x's budget of 1 (3 made)",
            [2],
        ),
        (
            "agents",
            {"x": {"max_calls": {"a": 1}}},
            run(by("x"), by("x"), by("x")),
            "agents.x.max_calls.a: a (step 1) is over x's limit of 1 (3 made)",
            [2],
        ),
    ],
)
def test_messages(rule: str, written: Any, trajectory: Trajectory, message: str, evidence: list[int]) -> None:
    violation = only(ask(rule, {rule: written}, trajectory))
    assert (violation.message, [e.step for e in violation.evidence]) == (message, evidence)


def test_an_agents_tools_are_hard_and_its_budgets_soft() -> None:
    outcome = ask("agents", {"agents": {"x": {"tools": ["a"], "max_steps": 0}}}, run(by("x", "b")))
    assert [v.severity for v in outcome.violations] == [Severity.HARD, Severity.SOFT]


def test_an_escalation_may_still_come_in_a_run_cut_short() -> None:
    cut = run(failed(), close_reason=CloseReason.NO_ROOT)
    assert state(ask("max_retries", {"max_retries": {"times": 0, "then": "help"}}, cut)) is Gap.INCOMPLETE


@pytest.mark.parametrize(
    ("mapping", "problems"),
    [
        ({"max_calls": {"a": None}}, ["max_calls.a: expected a whole number from 0 on, got nothing"]),
        ({"max_calls": {"a": {"mx": 1}}},
         ["max_calls.a.mx: unknown key; did you mean 'max'?", "max_calls.a: max is missing"]),
        ({"max_calls": ["a"]}, ["max_calls: expected a mapping from tools to numbers, got a list"]),
        ({"max_calls": {"c": 1}}, ["max_calls.c: 'c' is not one of the spec's tools"]),
        ({"max_retries": -1}, ["max_retries: expected a whole number from 0 on, got -1"]),
        ({"max_retries": {"tims": 1}},
         ["max_retries.tims: unknown key; did you mean 'times'?", "max_retries: times is missing"]),
        ({"max_retries": {"times": 1, "then": "c"}}, ["max_retries.then: 'c' is not one of the spec's tools"]),
        ({"max_step_duration": {"c": "1s", "*": "x"}},
         ['max_step_duration.*: expected seconds or a duration like "10s" or "2m", got \'x\'',
          "max_step_duration.c: 'c' is not one of the spec's tools"]),
        ({"handoffs": ["ab", ("x", 1)]},
         ["handoffs[0]: expected a pair of agents, [from, to], got 'ab'",
          "handoffs[1][1]: expected a text, got 1; put it in quotes"]),
        ({"agents": {"x": {"tool": ["a"]}}}, ["agents.x.tool: unknown key; did you mean 'tools'?"]),
        ({"agents": {"x": {"tools": ["c"], "max_calls": {"a": "1"}}}},
         ["agents.x.max_calls.a: expected a whole number from 0 on, got '1'",
          "agents.x.tools[0]: 'c' is not one of the spec's tools"]),
    ],
)  # fmt: skip
def test_problems(mapping: Any, problems: list[str]) -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"tools": ["a", "b"], **mapping})
    assert [str(problem) for problem in raised.value.problems] == problems


# ---- against the definitions -----------------------------------------------------------------------

retried = st.builds(
    Step,
    tool=st.sampled_from("ab"),
    args=st.sampled_from([{"x": 1}, {"x": 2}]),
    ok=st.booleans(),
    result=st.sampled_from(["p", "q"]),
)
vague = st.builds(
    Step,
    tool=st.just("a"),
    args=st.sampled_from([{"x": 1}, None]),
    ok=st.sampled_from([True, False, False, None]),
    result=st.sampled_from(["p", "p", None]),
)


def over_retried(steps: tuple[Step, ...], times: int) -> list[int]:
    """Each failure that has exactly so many of the same call before it, failed alike, with none otherwise between."""
    found = []
    for i, step in enumerate(steps):
        same = [s for s in steps[: i + 1] if (s.tool, s.args) == (step.tool, step.args)]
        run_length = 0
        for earlier in reversed(same):
            if earlier.ok or earlier.result != step.result:
                break
            run_length += 1
        if not step.ok and run_length == times + 2:
            found.append(i)
    return found


def retries(steps: tuple[Step, ...], times: int) -> Outcome:
    return RULES["max_retries"].evaluate(Trajectory(steps), Spec.from_mapping({"max_retries": times}))


def test_a_budget_that_is_nothing_is_none() -> None:
    nothing = {"max_retries": None, "max_duration": None, "max_tokens": None, "max_step_duration": None}
    spec = Spec.from_mapping(nothing)
    assert [rule.id for rule in spec.rules] == ["ground", "secrets"]
    for rule in nothing:  # asked all the same, they find nothing
        assert state(RULES[rule].evaluate(run("a"), spec)) in ("satisfied", "vacuous")


def test_an_agent_that_keeps_to_one_limit_and_breaks_another() -> None:
    outcome = ask("agents", {"agents": {"x": {"max_calls": {"a": 2, "b": 0}}}}, run(by("x"), by("x", "b")))
    assert places(outcome) == [("agents.x.max_calls.b", 1, "b")]


@given(steps=st.lists(retried, max_size=10).map(tuple), times=st.integers(0, 2))
def test_retries_are_their_definition(steps: tuple[Step, ...], times: int) -> None:
    assert [v.step for v in retries(steps, times).violations] == over_retried(steps, times)


@given(steps=st.lists(vague, max_size=5).map(tuple), times=st.integers(0, 1))
def test_retries_that_are_not_known_are_never_guessed(steps: tuple[Step, ...], times: int) -> None:
    options = [
        list(
            product(
                [s.args] if s.args is not None else [{"x": 1}, {"x": 2}],
                [s.ok] if s.ok is not None else [True, False],
                [s.result] if s.result is not None else ["p", "q"],
            )
        )
        for s in steps
    ]
    outcome = retries(steps, times)
    for chosen in list(product(*options))[:200]:
        whole = tuple(replace(s, args=a, ok=o, result=r) for s, (a, o, r) in zip(steps, chosen, strict=True))
        known = retries(whole, times)
        # What is missing may move a violation to an earlier retry, but not take it back.
        assert known.violations or not outcome.violations
        assert outcome.violations or outcome.gap is not None or not known.violations


@given(
    steps=st.lists(st.builds(Step, st.sampled_from("ab"), st.sampled_from([{"id": 1}, {"id": 2}])), max_size=8).map(
        tuple
    ),
    most=st.integers(0, 3),
)
def test_calls_are_counted_by_what_they_are_about(steps: tuple[Step, ...], most: int) -> None:
    mapping = {"max_calls": {"a": {"max": most, "same": "id"}}}
    outcome = RULES["max_calls"].evaluate(Trajectory(steps), Spec.from_mapping(mapping))
    of = {key: [i for i, s in enumerate(steps) if (s.tool, s.args) == ("a", {"id": key})] for key in (1, 2)}
    assert [v.step for v in outcome.violations] == sorted(those[most] for those in of.values() if len(those) > most)


@given(names=st.lists(st.sampled_from("wxyz"), max_size=8), allowed=st.sets(st.tuples(*[st.sampled_from("wxyz")] * 2)))
def test_handoffs_are_their_definition(names: list[str], allowed: set[tuple[str, str]]) -> None:
    """A chain of waiting agents; a handoff needs one of them that may give, and ends those it gave to before."""
    chain: list[str] = []
    first_broken: dict[tuple[str, str], int] = {}
    for i, name in enumerate(names):
        if name in chain:
            chain = chain[: chain.index(name) + 1]
            continue
        able = [k for k, waiting in enumerate(chain) if (waiting, name) in allowed]
        if able:
            chain = chain[: max(able) + 1]
        elif chain:
            first_broken.setdefault((chain[-1], name), i)
        chain = [*chain, name]
    steps = tuple(by(name) for name in names)
    outcome = RULES["handoffs"].evaluate(Trajectory(steps), Spec.from_mapping({"handoffs": list(allowed)}))
    assert [v.step for v in outcome.violations] == sorted(first_broken.values())


@given(
    names=st.lists(st.tuples(st.sampled_from("wxyz"), st.booleans()), max_size=8),
    allowed=st.sets(st.tuples(*[st.sampled_from("wxyz")] * 2)),
)
def test_a_call_of_nobody_knows_whom_accuses_nobody(
    names: list[tuple[str, bool]], allowed: set[tuple[str, str]]
) -> None:
    """Each agent with whether it is known. What is broken then is broken when all of them are known."""
    spec = Spec.from_mapping({"handoffs": list(allowed)})
    told = whose(*[name if known else None for name, known in names])
    outcome = RULES["handoffs"].evaluate(told, spec)
    whole = RULES["handoffs"].evaluate(whose(*[name for name, _ in names]), spec)
    assert {v.content for v in outcome.violations} <= {v.content for v in whole.violations}
    assert (outcome.gap is None) is all(known for _, known in names)


@given(
    steps=st.lists(st.builds(by, st.sampled_from("xy"), st.sampled_from("ab")), max_size=8).map(tuple),
    most=st.integers(0, 3),
)
def test_agents_are_their_definition(steps: tuple[Step, ...], most: int) -> None:
    mapping = {"agents": {"x": {"tools": ["a"], "max_steps": most}}}
    outcome = RULES["agents"].evaluate(Trajectory(steps), Spec.from_mapping(mapping))
    own = [i for i, s in enumerate(steps) if s.agent == "x"]
    wrong = [i for i in own if steps[i].tool == "b"][:1]
    assert [v.step for v in outcome.violations] == wrong + (own[most : most + 1])


durations = st.one_of(st.none(), st.floats(0, 3000))


@given(steps=st.lists(st.builds(Step, st.sampled_from("ab"), duration=durations), max_size=5).map(tuple))
def test_long_calls_are_told_one_by_one(steps: tuple[Step, ...]) -> None:
    outcome = RULES["max_step_duration"].evaluate(Trajectory(steps), Spec.from_mapping({"max_step_duration": 1}))
    assert [v.step for v in outcome.violations] == [i for i, s in enumerate(steps) if (s.duration or 0) > 1000]
