"""Whatever a run holds: no exception, the same answer twice, findings only where they can be."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import TokenEngine, trace
from luckrate_otel.provenance.tokens.fold import phrase, within
from luckrate_otel.provenance.tokens.place import layout

POLICY = Policy(untrusted=("page",), privileged=("act",))
PIECES = [
    "ops@evil.example",
    "W-4471",
    "1,250.50",
    "2024-05-20",
    "https://a.example/b?c=1",
    "<p>",
    "{'a': '",
    '"',
    "- a: '",
    "\\u00e9",
    "%40",
    "&#64;",
]
TEXT = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
)
SCALAR = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT, st.binary(max_size=8))
JSON = st.recursive(
    SCALAR, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)), max_leaves=8
)
ARGS = st.dictionaries(st.one_of(st.sampled_from(["to", "order_id", "body", "url", "amount"]), TEXT), JSON, max_size=4)
STEP = st.builds(
    Step,
    tool=st.sampled_from(["page", "act", "look"]),
    args=st.one_of(st.none(), ARGS),
    ok=st.sampled_from([True, False, None]),
    result=st.one_of(st.none(), TEXT),
    error=st.one_of(st.none(), TEXT),
)
RUN = st.builds(
    Trajectory,
    steps=st.lists(STEP, max_size=5).map(tuple),
    turns=st.lists(st.builds(Turn, text=TEXT, before_step=st.integers(0, 3)), max_size=2).map(tuple),
    system=st.lists(TEXT, max_size=1).map(tuple),
)


def answers(run: Trajectory) -> tuple[Any, ...]:
    engine = TokenEngine()
    return engine.ground(run, POLICY), engine.taint(run, POLICY), trace(run)


@given(RUN)
def test_never_raises_and_answers_the_same_twice(run: Trajectory) -> None:
    assert answers(run) == answers(run)


@given(RUN)
def test_every_finding_names_a_leaf_of_its_step(run: Trajectory) -> None:
    ground, taint, leaves = answers(run)
    places = {(leaf.step, leaf.tool, leaf.path) for leaf in leaves}
    for violation in (*ground.violations, *taint.violations):
        assert (violation.step, violation.tool, violation.argument) in places


@given(TEXT, TEXT, st.text(alphabet="abc 12", max_size=8))
def test_a_match_is_a_run_of_whole_words(before: str, after: str, part: str) -> None:
    wanted = phrase(part)
    if wanted:
        assert within(wanted, phrase(f"{before} {part} {after}"))
        assert not within(wanted, phrase(f"x{part.strip()}x".replace(" ", "")) if " " not in wanted else "")


@given(TEXT)
def test_results_are_read_whatever_they_are(text: str) -> None:
    assert [f for f in layout(text).fields if not f.path.startswith("$")] == []


@given(st.from_regex(r"[A-Z]{2}-[0-9]{6}", fullmatch=True), st.from_regex(r"[A-Z]{2}-[0-9]{6}", fullmatch=True))
def test_an_id_is_known_only_by_itself(told: str, used: str) -> None:
    steps = (Step("act", {"order_id": used}, True, ""),)
    found = TokenEngine().ground(Trajectory(steps=steps, turns=(Turn(f"order {told} please"),)), Policy()).violations
    same_number = told[3:] == used[3:]
    assert bool(found) is not same_number
