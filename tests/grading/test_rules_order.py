"""The order rules: cases written out, and each automaton against its definition on random runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.errors import SpecError
from luckrate_otel.facts import CloseReason, Gap
from luckrate_otel.model import Step, Trajectory
from luckrate_otel.rules.key import shown
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import Spec
from tests.grading import slow
from tests.grading.asking import ask, only, places, run, state


def call(tool: str, id_: Any = None, **fields: Any) -> Step:
    return Step(tool, {} if id_ is None else {"id": id_}, **fields)


def pair(*both: Any, **more: Any) -> dict[str, Any]:
    return {"first": both[0], "then": both[1], **more}


PAID = {"tool": "b", "where": {"amount": {"gt": 100}}}
big, small = Step("b", {"amount": 101}), Step("b", {"amount": 100})

# rule, clauses, run → state, places
CASES: list[tuple[str, Any, Trajectory, str, list[tuple[str, int | None, str | None]]]] = [
    ("before", [pair("a", "b", same="id")], run(call("a", 1), call("b", 1)), "satisfied", []),
    ("before", [pair("a", "b", same="id")], run(call("a", 1), call("b", 2)), "violated", [("before[0]", 1, "b")]),
    ("before", [pair("a", "b", same="id")], run(call("a", "1"), call("b", 1)), "satisfied", []),
    ("before", [pair("a", "b", same="id")], run(call("a", "01"), call("b", 1)), "violated", [("before[0]", 1, "b")]),
    ("before", [pair("a", PAID)], run(small), "vacuous", []),
    ("before", [pair("a", PAID)], run(big), "violated", [("before[0]", 0, "b")]),
    ("before", [pair(["a", "c"], "b")], run("c", "b"), "satisfied", []),
    ("before", [pair("a", "b", within="1 step")], run("a", "b"), "satisfied", []),
    ("before", [pair("a", "b", within="1 step")], run("a", "c", "b"), "violated", [("before[0]", 2, "b")]),
    ("leads_to", [("a", "b")], run("a", "c", "b"), "satisfied", []),
    ("leads_to", [("a", "b")], run("a", "a", "b"), "satisfied", []),
    ("leads_to", [("a", "b")], run("b", "a"), "violated", [("leads_to[0]", 1, "a")]),
    ("leads_to", [("a", "b")], run("b"), "vacuous", []),
    ("leads_to", [pair("a", "b", within="2 steps")], run("a", "c", "b"), "satisfied", []),
    ("leads_to", [pair("a", "b", within="2 steps")], run("a", "c", "c", "b"), "violated", [("leads_to[0]", 0, "a")]),
    ("leads_to", [pair("a", "b", within=2)], run("a", call("b", t=2000)), "satisfied", []),
    ("leads_to", [pair("a", "b", within=2)], run("a", call("b", t=2001)), "violated", [("leads_to[0]", 0, "a")]),
    ("leads_to", [pair({"tool": "a", "where": {"ok": False}}, "b")], run(Step("a", ok=True)), "vacuous", []),
    (
        "leads_to",
        [pair({"tool": "a", "where": {"ok": False}}, "b")],
        run(Step("a", ok=False)),
        "violated",
        [("leads_to[0]", 0, "a")],
    ),
    (
        "leads_to",
        [pair("a", "b", same={"result.order.id": "id"})],
        run(Step("a", result='{"order": {"id": 7}}'), call("b", 7)),
        "satisfied",
        [],
    ),
    (
        "leads_to",
        [pair("a", "b", same={"result.order.id": "id"})],
        run(Step("a", result='{"order": {"id": 8}}'), call("b", 7)),
        "violated",
        [("leads_to[0]", 0, "a")],
    ),
    (
        "leads_to",
        [pair("a", "b", same={"result.id": "id"})],
        run(Step("a", result="no JSON"), call("b", 7)),
        "violated",
        [("leads_to[0]", 0, "a")],
    ),
    ("next", [("a", "b")], run("a", "b"), "satisfied", []),
    ("next", [("a", "b")], run("a", "c", "b"), "violated", [("next[0]", 0, "a")]),
    ("next", [("a", "b")], run("c", "a"), "violated", [("next[0]", 1, "a")]),
    ("next", [("a", "b")], run("b"), "vacuous", []),
    ("not_after", [("a", "b")], run("b", "a"), "satisfied", []),
    (
        "not_after",
        [("a", "b")],
        run("a", "c", "b", "b"),
        "violated",
        [("not_after[0]", 2, "b"), ("not_after[0]", 3, "b")],
    ),
    ("not_after", [("a", "b")], run("b"), "vacuous", []),
    ("not_after", [pair("a", "b", within="1 step")], run("a", "c", "b"), "satisfied", []),
    ("not_both", [("a", "b")], run("a", "c"), "satisfied", []),
    ("not_both", [("a", "b")], run("b", "c", "a"), "violated", [("not_both[0]", 2, "a")]),
    ("not_both", [("a", "b")], run("c"), "vacuous", []),
    ("not_both", [pair("a", "b", same="id")], run(call("a", 1), call("b", 2)), "satisfied", []),
    ("each_before", [("a", "b")], run("a", "b", "a", "b"), "satisfied", []),
    ("each_before", [("a", "b")], run("a", "a", "b", "b"), "satisfied", []),
    ("each_before", [("a", "b")], run("a", "b", "b"), "violated", [("each_before[0]", 2, "b")]),
    ("each_before", [("a", "b")], run("a"), "vacuous", []),
    (
        "each_before",
        [pair("a", "b", same="id")],
        run(call("a", 1), call("a", 2), call("b", 2), call("b", 2)),
        "violated",
        [("each_before[0]", 3, "b")],
    ),
    ("any_of", [["a", "b"]], run("c", "b"), "satisfied", []),
    ("any_of", [["a", "b"]], run("c"), "violated", [("any_of[0]", None, None)]),
    ("any_of", [{"calls": ["a", "b"], "before": "c"}], run("b", "c", "c"), "satisfied", []),
    ("any_of", [{"calls": ["a", "b"], "before": "c"}], run("c", "b"), "violated", [("any_of[0]", 0, "c")]),
    ("any_of", [{"calls": ["a", "b"], "before": "c"}], run("b"), "vacuous", []),
    (
        "any_of",
        [{"calls": ["a", "b"], "before": "c", "same": "id"}],
        run(call("a", 1), call("b", 2), call("c", 1), call("c", 2), call("c", 3)),
        "violated",
        [("any_of[0]", 4, "c")],
    ),
    ("starts_with", ["a", "b"], run("a", "b", "c"), "satisfied", []),
    ("starts_with", "a", run("a"), "satisfied", []),
    ("starts_with", ["a", "b"], run("a", "c", "b"), "violated", [("starts_with", 1, "c")]),
    ("starts_with", ["a", "b"], run("a"), "violated", [("starts_with", None, "b")]),
    ("ends_with", ["b", "c"], run("a", "b", "c"), "satisfied", []),
    ("ends_with", "c", run("c", "d"), "violated", [("ends_with", 1, "d")]),
    ("ends_with", ["b", "c"], run("c"), "violated", [("ends_with", None, "b")]),
    ("exactly", ["a", "b"], run("a", "b"), "satisfied", []),
    ("exactly", ["a", "b"], run("a", "b", "c", "d"), "violated", [("exactly", 2, "c")]),
    ("exactly", ["a", "b"], run("a"), "violated", [("exactly", None, "b")]),
    ("exactly", ["a", "b"], run("b", "a"), "violated", [("exactly", 0, "b")]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "clauses", "trajectory", "ends", "found"), CASES)
def test_rule(rule: str, clauses: Any, trajectory: Trajectory, ends: str, found: list[Any]) -> None:
    outcome = ask(rule, {rule: clauses}, trajectory)
    assert (state(outcome), places(outcome)) == (ends, found)


@pytest.mark.parametrize(
    ("rule", "clauses", "trajectory", "message", "evidence"),
    [
        ("before", [pair("a", "b", within="1 step")], run("a", "c", "b"),
         "before[0]: b (step 2) did not come within 1 step of a (step 0)", [0]),
        ("leads_to", [pair("a", PAID, within=90)], run("a"),
         "leads_to[0]: a (step 0) was not followed by b (where) within 90 s", []),
        ("next", [("a", ["b", "c"])], run("a", "d"), "next[0]: the call after a (step 0) was not b or c", []),
        ("not_after", [("a", "b")], run("a", "a", "b"), "not_after[0]: b (step 2) came after a (step 1)", [1]),
        ("not_both", [("a", "b")], run("b", "a"), "not_both[0]: a (step 1) and b (step 0) exclude each other", [0]),
        ("each_before", [("a", "b")], run("b"), "each_before[0]: b (step 0) has no a of its own before it", []),
        ("any_of", [["a", "b"]], run(), "any_of[0]: a or b was never called", []),
        ("any_of", [{"calls": ["a", "b"], "before": "c", "within": "2 steps"}], run("c"),
         "any_of[0]: c (step 0) was called without a or b before it within 2 steps", []),
        ("starts_with", ["a"], run("b"), "starts_with: a was to be step 0, not b (step 0)", []),
        ("starts_with", ["a"], run(), "starts_with: a was to be step 0, but no more came", []),
        ("ends_with", ["b", "c"], run("a", "c"), "ends_with: b was to be the last call but one, not a (step 0)", []),
        (
            "ends_with",
            ["a", "b", "c"],
            run("b", "c"),
            "ends_with: a was to be the last call but 2, but no more came",
            [],
        ),
        ("ends_with", ["b"], run(), "ends_with: b was to be the last call, but no more came", []),
        ("exactly", ["a"], run("a", "b", "c"), "exactly: b (step 1) is one call too many", [2]),
        ("exactly", ["a", "b"], run("a", "c"), "exactly: b was to be step 1, not c (step 1)", []),
    ],
)  # fmt: skip
def test_messages(rule: str, clauses: Any, trajectory: Trajectory, message: str, evidence: list[int]) -> None:
    violation = only(ask(rule, {rule: clauses}, trajectory))
    assert (violation.message, [e.step for e in violation.evidence]) == (message, evidence)


@pytest.mark.parametrize(
    ("rule", "clauses", "trajectory", "ends"),
    [
        ("leads_to", [("a", "b")], run("a"), Gap.INCOMPLETE),
        ("leads_to", [pair("a", "b", within="1 step")], run("a"), Gap.INCOMPLETE),
        ("leads_to", [pair("a", "b", within="1 step")], run("a", "c"), Gap.INCOMPLETE),
        ("leads_to", [pair("a", "b", within="1 step")], run("a", "c", "c"), "violated"),
        ("next", [("a", "b")], run("a"), Gap.INCOMPLETE),
        ("next", [("a", "b")], run("a", "c"), "violated"),
        ("each_before", [("a", "b")], run("b"), Gap.INCOMPLETE),
        ("any_of", [["a", "b"]], run("c"), Gap.INCOMPLETE),
        ("any_of", [{"calls": ["a"], "before": "c"}], run("c"), Gap.INCOMPLETE),
        ("starts_with", ["a", "b"], run("a"), Gap.INCOMPLETE),
        ("starts_with", ["a", "b"], run("c"), "violated"),
        ("ends_with", "a", run("c"), Gap.INCOMPLETE),
        ("ends_with", "a", run("c", "a"), "satisfied"),
        ("exactly", ["a", "b"], run("a"), Gap.INCOMPLETE),
        ("exactly", ["a", "b"], run("a", "c"), "violated"),
        ("not_after", [("a", "b")], run("a", "b"), "violated"),
        ("not_both", [("a", "b")], run("a", "b"), "violated"),
    ],
)
def test_a_run_cut_short_tells_broken_from_unfulfilled(
    rule: str, clauses: Any, trajectory: Trajectory, ends: str
) -> None:
    assert state(ask(rule, {rule: clauses}, replace(trajectory, close_reason=CloseReason.NO_ROOT))) == ends


@pytest.mark.parametrize(
    ("rule", "clauses", "trajectory", "ends"),
    [
        ("leads_to", [pair("a", "b", same="id")], run(call("a", 1), Step("b", None)), Gap.NOT_CAPTURED),
        ("leads_to", [pair("a", "b", same="id")], run(Step("a", None), call("b", 1)), Gap.NOT_CAPTURED),
        ("leads_to", [pair("a", "b", same="id")], run(Step("a", None), call("c", 1)), Gap.NOT_CAPTURED),
        ("leads_to", [pair("a", PAID)], run("a", Step("b", None)), Gap.NOT_CAPTURED),
        ("leads_to", [pair("a", PAID)], run("a", Step("b", None), big), "satisfied"),
        ("not_after", [pair("a", PAID)], run("a", Step("b", None)), Gap.NOT_CAPTURED),
        ("not_after", [pair("a", PAID)], run(Step("b", None), "a"), "satisfied"),
        ("not_after", [pair("a", PAID)], run("a", Step("b", None), big), "violated"),
        ("starts_with", [PAID], run(Step("b", None)), Gap.NOT_CAPTURED),
    ],
)
def test_content_that_is_missing_matters_only_where_it_could_decide(
    rule: str, clauses: Any, trajectory: Trajectory, ends: str
) -> None:
    assert state(ask(rule, {rule: clauses}, trajectory)) == ends


# ---- against the definitions -----------------------------------------------------------------------

wanted = st.one_of(st.sampled_from("abc"), st.tuples(st.sampled_from("abc"), st.integers(1, 2)))
clauses = st.builds(
    slow.Clause,
    wanted,
    wanted,
    st.booleans(),
    st.one_of(st.none(), st.integers(1, 3)),
    st.one_of(st.none(), st.integers(0, 3)),
)


@st.composite
def step_lists(draw: st.DrawFn, gaps: bool = False, most: int = 8) -> tuple[Step, ...]:
    at = 0.0
    made = []
    for _ in range(draw(st.integers(0, most))):
        at += draw(st.sampled_from([0.0, 1000.0, 2000.0]))
        args = draw(st.fixed_dictionaries({"id": st.integers(1, 2), "amount": st.integers(0, 2)}))
        hidden = gaps and draw(st.integers(0, 2)) == 0
        duration = draw(st.sampled_from([None, 0.0, 500.0, 1000.0, 3000.0]))
        made.append(Step(draw(st.sampled_from("abc")), None if hidden else args, t=at, duration=duration))
    return tuple(made)


def evaluated(rule: str, clause: slow.Clause, steps: tuple[Step, ...], order: str, reason: CloseReason) -> Outcome:
    spec = Spec.from_mapping({rule: [clause.mapping()], "order": order})
    return RULES[rule].evaluate(Trajectory(steps, close_reason=reason), spec)


@pytest.mark.parametrize("rule", slow.REFERENCES)
@given(clause=clauses, steps=step_lists(), order=st.sampled_from(["issue", "overlap"]))
def test_a_pair_rule_is_its_definition(rule: str, clause: slow.Clause, steps: tuple[Step, ...], order: str) -> None:
    broken = slow.REFERENCES[rule](slow.Run(steps, order == "overlap", clause))
    outcome = evaluated(rule, clause, steps, order, CloseReason.ROOT)
    assert [v.step for v in outcome.violations] == sorted(step for step, _ in broken if step is not None)
    cut = evaluated(rule, clause, steps, order, CloseReason.NO_ROOT)
    certain = sorted(step for step, is_open in broken if step is not None and not is_open)
    assert [v.step for v in cut.violations] == certain
    assert cut.violations or (cut.gap is Gap.INCOMPLETE) is bool(broken)


@pytest.mark.parametrize("rule", slow.REFERENCES)
@given(clause=clauses, steps=step_lists(gaps=True, most=5), order=st.sampled_from(["issue", "overlap"]))
def test_what_is_not_known_is_never_guessed(
    rule: str, clause: slow.Clause, steps: tuple[Step, ...], order: str
) -> None:
    """Whatever the missing arguments were, a violation stays one, and a rule that was satisfied stays so."""
    hidden = [i for i, step in enumerate(steps) if step.args is None][:3]
    outcome = evaluated(rule, clause, steps, order, CloseReason.ROOT)
    options = [{"id": i, "amount": amount} for i in (1, 2) for amount in (0, 2)]
    for chosen in product(options, repeat=len(hidden)):
        args = dict(zip(hidden, chosen, strict=True))
        whole = tuple(replace(s, args=args.get(i, s.args or {"id": 1, "amount": 1})) for i, s in enumerate(steps))
        known = evaluated(rule, clause, whole, order, CloseReason.ROOT)
        if rule == "before":  # a call that may be an earlier b would only move the violation to it
            assert known.violations or not outcome.violations
        else:
            assert {v.step for v in outcome.violations} <= {v.step for v in known.violations}
        assert outcome.violations or outcome.gap is not None or not known.violations


@pytest.mark.parametrize("kind", ["starts_with", "ends_with", "exactly"])
@given(
    steps=step_lists(most=5),
    names=st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple),
    order=st.sampled_from(["issue", "overlap"]),
)
def test_a_sequence_rule_is_its_definition(
    kind: str, steps: tuple[Step, ...], names: tuple[str, ...], order: str
) -> None:
    spec = Spec.from_mapping({kind: list(names), "order": order})
    outcome = RULES[kind].evaluate(Trajectory(steps), spec)
    expected = slow.sequence(slow.Run(steps, order == "overlap", slow.Clause("a", "b")), kind, names)
    assert (not outcome.violations) is expected


@given(steps=step_lists(), order=st.sampled_from(["issue", "overlap"]), same=st.booleans())
def test_any_of_is_its_definition(steps: tuple[Step, ...], order: str, same: bool) -> None:
    choice: Mapping[str, Any] = {"calls": ["a", "b"], "before": "c", **({"same": "id"} if same else {})}
    spec = Spec.from_mapping({"any_of": [choice, ["a", "b"]], "order": order})
    known = slow.Run(steps, order == "overlap", slow.Clause("a", "b", same))
    able = [*known.all("a"), *known.all("b")]
    expected: list[int | None] = [
        c for c in known.all("c") if not any(known.precedes(a, c) and known.same(a, c) for a in able)
    ]
    expected += [] if able else [None]
    assert [v.step for v in RULES["any_of"].evaluate(Trajectory(steps), spec).violations] == expected


@pytest.mark.parametrize("within", ["soon", "0.5 steps", "3 calls", -1, True, None, [3], "", "1e3"])
def test_a_window_that_is_none_is_told_with_both_ways_to_write_one(within: Any) -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"leads_to": [pair("a", "b", within=within)]})
    assert [str(problem) for problem in raised.value.problems] == [
        (
            'leads_to[0].within: expected steps like "3 steps", seconds, or a duration like "10s" or "2m", '
            f"got {shown(within)}"
        )
    ]
