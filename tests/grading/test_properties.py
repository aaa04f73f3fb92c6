"""Whatever a run holds there is a verdict, and it does not depend on the order of any mapping's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from luckrate_otel import Spec, Step, Turn, check
from luckrate_otel.errors import SpecError
from luckrate_otel.facts import CloseReason, Gap
from luckrate_otel.model import Coverage, History, Trajectory, Verdict
from tests.grading.generated import TASKS, TOOLS, VALUES, plain_steps, spec_mapping

# The rules of luckrate 0.3, which the generator of its specs is about.
FIRST_BLOCK = (
    "unknown_tool",
    "required",
    "forbidden",
    "before",
    "max_steps",
    "no_repeat",
    "taint",
    "ground",
    "secrets",
)

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.binary(max_size=6),
    st.sampled_from(VALUES),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
arguments = st.dictionaries(st.one_of(st.text(max_size=6), st.integers()), values, max_size=4)
steps = st.builds(
    Step,
    tool=st.one_of(st.sampled_from(TOOLS), st.text(max_size=8)),
    args=st.one_of(st.none(), arguments),
    ok=st.sampled_from([True, False, None]),
    result=st.one_of(st.none(), st.text(max_size=20), st.sampled_from(TASKS)),
    t=st.floats(0, 1e6),
    error=st.sampled_from([None, "no_return", "timeout"]),
    duration=st.one_of(st.none(), st.floats(0, 1e6)),
)
step_lists = st.lists(steps, max_size=6).map(tuple)
turns = st.lists(st.builds(Turn, st.sampled_from(TASKS), st.integers(0, 4)), max_size=3).map(tuple)
trajectories = st.builds(
    Trajectory,
    steps=step_lists,
    turns=turns,
    system=st.lists(st.sampled_from(TASKS), max_size=1).map(tuple),
    final_output=st.one_of(st.none(), st.text(max_size=8)),
    close_reason=st.sampled_from(CloseReason),
    coverage=st.builds(Coverage, st.booleans(), st.booleans(), st.booleans()),
    gaps=st.dictionaries(
        st.tuples(st.integers(0, 5), st.sampled_from(["args", "result", "ok", "agent"])),
        st.sampled_from([gap for gap in Gap if gap is not Gap.ERROR]),
    ),
    history=st.builds(History, st.lists(st.sampled_from(TASKS), max_size=2).map(tuple), step_lists, st.booleans()),
    root=st.sampled_from([None, "r"]),
)


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    written = spec_mapping(Random(draw(st.integers(0, 10_000))))
    written["order"] = draw(st.sampled_from(["issue", "overlap"]))
    written["provenance"] = "substring"
    return written


def graded(trajectory: Trajectory, mapping: Mapping[str, Any]) -> Verdict | None:
    try:
        return check(trajectory, Spec.from_mapping(mapping))
    except SpecError:
        return None  # the generator also writes specs that are refused


@given(trajectories, specs())
def test_every_rule_answers_for_every_run(trajectory: Trajectory, mapping: dict[str, Any]) -> None:
    verdict = graded(trajectory, mapping)
    if verdict is None or verdict.reason is not None:
        return
    ends = [{v.rule for v in verdict.violations}, {n.rule for n in verdict.not_evaluated}, set(verdict.vacuous)]
    assert sum(map(len, ends)) == len(set().union(*ends)), "a rule ends in one state"
    assert all(n.reason is not Gap.ERROR for n in verdict.not_evaluated)
    for violation in verdict.violations:
        assert violation.step is None or violation.tool == trajectory.steps[violation.step].tool
        assert violation.message.isprintable()
        assert all(e.step < len(trajectory.steps) for e in violation.evidence)


@given(trajectories, specs())
def test_the_order_of_keys_does_not_matter(trajectory: Trajectory, mapping: dict[str, Any]) -> None:
    turned = replace(
        trajectory,
        steps=tuple(replace(step, args=_turned(step.args)) for step in trajectory.steps),
        gaps=_turned(trajectory.gaps),
    )
    assert graded(turned, _turned(mapping)) == graded(trajectory, mapping)


def _turned(value: Any) -> Any:
    """The same value, with the keys of every mapping in reverse."""
    if isinstance(value, dict):
        return {key: _turned(item) for key, item in reversed(value.items())}
    return tuple(_turned(item) for item in value) if isinstance(value, tuple) else value


@given(step_lists, specs(), st.sampled_from(list(CloseReason)))
@settings(max_examples=50)
def test_less_content_never_accuses_more(made: tuple[Step, ...], mapping: dict[str, Any], reason: CloseReason) -> None:
    """Hiding arguments and results may leave a rule unevaluated; it cannot add a violation."""
    whole = Trajectory(made, (Turn("hi"),), close_reason=reason)
    hidden = replace(whole, steps=tuple(replace(step, args=None, result=None) for step in made))
    seen, blind = graded(whole, mapping), graded(hidden, mapping)
    if seen is not None and blind is not None:
        assert {(v.rule, v.step) for v in blind.violations} <= {(v.rule, v.step) for v in seen.violations}


def test_random_runs_end_every_rule_in_every_state() -> None:
    """The generators reach what the properties above are meant to cover."""
    random = Random(7)
    states: dict[str, set[str]] = {rule: set() for rule in FIRST_BLOCK}
    for _ in range(1500):
        made = tuple(
            Step(s.tool, s.args if random.random() < 0.9 else None, s.ok, s.result if random.random() < 0.9 else None)
            for s in plain_steps(random, random.randint(0, 5))
        )
        trajectory = Trajectory(made, (Turn(random.choice(TASKS)),), close_reason=random.choice(list(CloseReason)))
        mapping = {**spec_mapping(random), "provenance": "substring"}
        if (verdict := graded(trajectory, mapping)) is None:
            continue
        ended = {v.rule: "violated" for v in verdict.violations}
        ended |= {n.rule: "not evaluated" for n in verdict.not_evaluated}
        ended |= dict.fromkeys(verdict.vacuous, "vacuous")
        for rule in Spec.from_mapping(mapping).rules:
            states[rule.id].add(ended.get(rule.id, "satisfied"))
    every, never_unknown = {"violated", "not evaluated", "satisfied", "vacuous"}, {"violated", "satisfied"}
    assert states == {
        "unknown_tool": never_unknown | {"vacuous"},
        "required": never_unknown | {"not evaluated"},
        "forbidden": never_unknown,
        "before": every,
        "max_steps": never_unknown,
        "no_repeat": every,
        "taint": every,
        "ground": every,
        "secrets": every,
    }
