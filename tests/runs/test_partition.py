"""What is a run: one small trace per rule, with the runs it holds written out."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luckrate_otel.facts import Facts, Role
from luckrate_otel.runs import partition
from tests.making import agent, asks, links, log, model, sid, tool, wrapper


@dataclass(frozen=True)
class Case:
    """runs: per run (root, members, complete, has_agent), all by short span name."""

    name: str
    facts: tuple[Facts, ...]
    runs: tuple[tuple[str, str, bool, bool], ...]
    links: dict[str, str] = field(default_factory=dict)
    final: bool = False


CASES = (
    Case("one agent", (agent("a", "", 0, 9), model("b", "a", 1), tool("c", "a", 2)), (("a", "a b c", True, True),)),
    Case(
        "an agent inside an agent is not a run of its own",
        (agent("a", "", 0, 9), agent("b", "a", 1, 5), tool("c", "b", 2)),
        (("a", "a b c", True, True),),
    ),
    Case(
        "an agent called as a tool",
        (agent("a", "", 0, 9), tool("b", "a", 1, 5), agent("c", "b", 2, 4), tool("d", "c", 3)),
        (("a", "a b c d", True, True),),
    ),
    Case(
        "an agent whose parent was not seen is not known to be outermost",
        (agent("a", "f", 0, 9), tool("b", "a", 1)),
        (("a", "a b", False, True),),
    ),
    Case(
        "an outer agent folds the inner one in",
        (agent("a", "f", 1, 8), tool("b", "a", 2), agent("f", "", 0, 9)),
        (("f", "f a b", True, True),),
    ),
    Case(
        "agents of one crew are one run, rooted at the crew",
        (wrapper("c", "", 0, 9), agent("a", "c", 1, 3), agent("b", "c", 4, 6), tool("d", "b", 5)),
        (("c", "c a b d", True, True),),
    ),
    Case(
        "a crew with one agent has the same root",
        (wrapper("c", "", 0, 9), agent("a", "c", 1, 3)),
        (("c", "c a", True, True),),
    ),
    Case(
        "the topmost workflow is the root, also across spans that nobody claimed",
        (wrapper("c", "1", 0, 9), wrapper("d", "2", 1, 8), agent("a", "d", 2, 7), tool("e", "c", 3)),
        (("c", "c d a e", True, True),),
        links(**{"1": "", "2": "c"}),
    ),
    Case(
        "agents under an HTTP server span are runs of their own",
        (agent("a", "1", 1, 3), tool("c", "a", 2), agent("b", "1", 4, 6), tool("d", "b", 5)),
        (("a", "a c", True, True), ("b", "b d", True, True)),
        links(**{"1": ""}),
    ),
    Case(
        "a handoff tool joins agents under an HTTP server span",
        (
            agent("a", "1", 1, 3, agent="triage"),
            tool("c", "a", 2, tool="transfer_to_billing_agent"),
            agent("b", "1", 4, 6, agent="Billing Agent"),
        ),
        (("a", "a c b", True, True),),
        links(**{"1": ""}),
    ),
    Case(
        "a handoff that only the model's message tells of",
        (
            agent("a", "1", 1, 3, agent="triage"),
            model("c", "a", 2, outputs=(asks("transfer_to_billing"),)),
            agent("b", "1", 4, 6, agent="billing"),
        ),
        (("a", "a c b", True, True),),
        links(**{"1": ""}),
    ),
    Case(
        "a generic handoff names its target in the arguments",
        (
            agent("a", "1", 1, 3),
            tool("c", "a", 2, tool="transfer_to_agent", args={"agent_name": "billing"}),
            agent("d", "1", 4, 6, agent="other"),
            agent("b", "1", 5, 6, agent="billing"),
        ),
        (("a", "a c b", True, True), ("d", "d", True, True)),
        links(**{"1": ""}),
    ),
    Case(
        "a generic handoff whose arguments were not captured goes to the next agent beside it",
        (
            agent("a", "1", 1, 3),
            tool("c", "a", 2, tool="handoff_to_agent", args=None),
            agent("b", "1", 4, 6),
            agent("d", "1", 7, 8),
        ),
        (("a", "a c b", True, True), ("d", "d", True, True)),
        links(**{"1": ""}),
    ),
    Case(
        "a handoff that the telemetry states itself",
        (agent("a", "1", 1, 3), tool("c", "a", 2, tool="x", handoff="b"), agent("b", "1", 4, 6)),
        (("a", "a c b", True, True),),
        links(**{"1": ""}),
    ),
    Case(
        "a handoff goes forward in time, and a chain of them is one run",
        (
            agent("a", "1", 1, 3, agent="one"),
            tool("c", "a", 2, tool="transfer_to_two"),
            agent("b", "1", 4, 6, agent="two"),
            tool("d", "b", 5, tool="transfer_to_one"),
            agent("e", "1", 7, 9, agent="one"),
        ),
        (("a", "a c b d e", True, True),),
        links(**{"1": ""}),
    ),
    Case(
        "a tool that only sounds like a handoff joins nothing",
        (
            agent("a", "1", 1, 3),
            tool("c", "a", 2, tool="transfer_to_account"),
            agent("b", "1", 4, 6, agent="billing"),
        ),
        (("a", "a c", True, True), ("b", "b", True, True)),
        links(**{"1": ""}),
    ),
    Case(
        "a handoff to an agent under another parent joins nothing",
        (
            agent("a", "1", 1, 3),
            tool("c", "a", 2, tool="transfer_to_billing"),
            agent("b", "2", 4, 6, agent="billing"),
        ),
        (("a", "a c", True, True), ("b", "b", True, True)),
        links(**{"1": "", "2": ""}),
    ),
    Case(
        "agents under one parent that never came may be a killed crew",
        (agent("a", "f", 1, 3), agent("b", "f", 4, 6), tool("c", "f", 7)),
        (("a", "a b c", False, True),),
    ),
    Case(
        "an agent below a lost span is of the run that is the whole trace",
        (agent("a", "", 0, 6), tool("c", "a", 1), agent("b", "f", 2, 8), tool("d", "b", 7)),
        (("a", "a c b d", True, True),),
    ),
    Case(
        "so is a crew below one, of a workflow, from the moment that it starts to the one at which it ends",
        (wrapper("a", "", 1, 6), agent("b", "a", 2), wrapper("c", "1", 1, 3), agent("d", "c", 2), agent("e", "g", 6)),
        (("a", "c a b d e", True, True),),
        links(**{"1": "f"}),
    ),
    Case(
        "the whole trace may be a crew that lost what was right below it",
        (wrapper("a", "", 0, 9), wrapper("b", "a", 1, 2), agent("c", "f", 2, 4), agent("d", "g", 5, 7)),
        (("a", "a b c d", True, True),),
    ),
    Case(
        "but not an agent that was started beside that crew",
        (wrapper("a", "", 1, 9), agent("c", "f", 2, 4), agent("d", "g", 0, 7)),
        (("d", "d", False, True), ("a", "a c", True, True)),
    ),
    Case(
        "not an agent that starts when it is over, or before: it may have been given the trace by name",
        (agent("e", "g", 0, 3), agent("a", "", 1, 6), agent("b", "f", 7, 9)),
        (("e", "e", False, True), ("a", "a", True, True), ("b", "b", False, True)),
    ),
    Case(
        "nor where another span has no parent either",
        (agent("a", "", 0, 6), agent("b", "f", 2, 5)),
        (("a", "a", True, True), ("b", "b", False, True)),
        links(**{"1": ""}),
    ),
    Case(
        "nor where the run has a request around it, which may have other agents",
        (agent("a", "1", 0, 6), agent("b", "f", 2, 5)),
        (("a", "a", True, True), ("b", "b", False, True)),
        links(**{"1": ""}),
    ),
    Case(
        "nor an agent with all spans above it",
        (agent("a", "", 0, 6), agent("b", "1", 2, 5)),
        (("a", "a", True, True), ("b", "b", True, True)),
        links(**{"1": ""}),
    ),
    Case(
        "who was handed over to goes along",
        (
            agent("a", "", 0, 6),
            agent("b", "1", 2, 5, agent="one"),
            tool("c", "b", 3, tool="transfer_to_two"),
            agent("d", "1", 7, 9, agent="two"),
        ),
        (("a", "a b c d", True, True),),
        links(**{"1": "f"}),
    ),
    Case(
        "a tool under a span between it and its agent",
        (agent("a", "", 0, 9), tool("b", "1", 2)),
        (("a", "a b", True, True),),
        links(**{"1": "2", "2": "a"}),
    ),
    Case(
        "a model call beside the only agent of a request goes with it",
        (model("c", "1", 0), agent("a", "1", 1, 3)),
        (("a", "c a", True, True),),
        links(**{"1": ""}),
    ),
    Case(
        "between two agents of a request it goes with the one it runs beside in time",
        (agent("a", "1", 1, 3), model("c", "1", 2), agent("b", "1", 4, 6)),
        (("a", "a c", True, True), ("b", "b", True, True)),
        links(**{"1": ""}),
    ),
    Case(
        "outside both it goes with neither",
        (agent("a", "1", 1, 3), model("c", "1", 8), agent("b", "1", 4, 6)),
        (("a", "a", True, True), ("b", "b", True, True), ("c", "c", True, False)),
        links(**{"1": ""}),
    ),
    Case(
        "a tool whose parents have not come yet may belong to an agent that has not either",
        (agent("a", "", 0, 9), tool("b", "f", 2)),
        (("a", "a", True, True), ("b", "b", False, False)),
    ),
    Case(
        "when nothing more comes it goes with the only agent there is",
        (agent("a", "", 0, 9), tool("b", "f", 2)),
        (("a", "a b", True, True),),
        final=True,
    ),
    Case(
        "no agent: the run is the trace, its root the topmost model or tool span",
        (wrapper("c", "", 0, 9), model("a", "c", 1, 8), tool("b", "a", 2)),
        (("a", "c a b", True, False),),
    ),
    Case(
        "no agent, and a parent that was not seen",
        (model("a", "f", 1, 2), tool("b", "f", 3)),
        (("a", "a b", False, False),),
    ),
    Case("tools alone", (tool("a", "1", 1), tool("b", "1", 2)), (("a", "a b", True, False),), links(**{"1": ""})),
    Case(
        "a log record goes where its span is",
        (agent("a", "", 0, 9), log(Role.MODEL, "1", 2), log(Role.MODEL, "a", 3), log(Role.MODEL, "", 4)),
        (("a", "a 1 a -", True, True),),
        links(**{"1": "a"}),
    ),
    Case("only log records: no root", (log(Role.MODEL, "a", 2),), (("", "a", False, False),)),
    Case(
        "cyclic parents end",
        (agent("a", "b", 0, 9), agent("b", "a", 1, 8), tool("c", "c", 2), tool("d", "b", 3)),
        (("b", "a b d", False, True), ("c", "c", False, False)),
    ),
    Case(
        "no span at all",
        (),
        (),
    ),
)


def seen(case: Case, facts: tuple[Facts, ...]) -> tuple[tuple[str, str, bool, bool], ...]:
    names = {sid(name): name for run in case.runs for name in run[1].split()} | {"": "-"}
    return tuple(
        (
            names[g.root.head.span_id] if g.root else "",
            " ".join(names[f.head.span_id] for f in g.facts),
            g.complete,
            g.has_agent,
        )
        for g in partition(facts, case.links, final=case.final)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_runs_of(case: Case) -> None:
    assert seen(case, case.facts) == case.runs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_runs_do_not_depend_on_order(case: Case) -> None:
    for seed in range(4):
        shuffled = list(case.facts)
        random.Random(seed).shuffle(shuffled)
        assert seen(case, tuple(shuffled)) == case.runs


@pytest.mark.parametrize(
    ("facts", "is_run"),
    [
        ((agent("a"),), True),
        ((tool("a"),), True),
        ((model("a"), tool("b", "a")), True),
        ((model("a", outputs=(asks("x"),)),), True),
        ((model("a"),), False),
        ((wrapper("a"), model("b", "a")), False),
        ((log(Role.AGENT, "a"),), True),
    ],
)
def test_a_run_needs_an_agent_or_a_tool_call(facts: tuple[Facts, ...], is_run: bool) -> None:
    assert [g.is_run for g in partition(facts, {})] == [is_run]


names = st.sampled_from([f"{i:x}" for i in range(1, 10)])
roles = st.sampled_from([agent, tool, model, wrapper])


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[Facts], dict[str, str]]:
    """Any shape at all: cycles, unseen parents, the same span twice."""
    make = draw(st.lists(st.tuples(roles, names, names | st.just("")), max_size=12))
    times = draw(st.lists(st.integers(0, 9), min_size=len(make), max_size=len(make)))
    facts = [kind(span, parent, t, t + 2) for (kind, span, parent), t in zip(make, times, strict=True)]
    return facts, links(**draw(st.dictionaries(names, names | st.just(""), max_size=4)))


@given(shapes(), st.randoms(use_true_random=False), st.booleans())
@example(([agent("a", "a", 0), agent("b", "b", 0), agent("a", "", 0)], {}), random.Random(0), False)
def test_every_fact_is_in_one_run_whatever_the_shape(
    shape: tuple[list[Facts], dict[str, str]], rng: random.Random, final: bool
) -> None:
    facts, parents = shape
    groups = partition(facts, parents, final=final)
    assert sorted(map(repr, facts)) == sorted(repr(f) for g in groups for f in g.facts)
    assert all(g.root is None or g.root in g.facts for g in groups)
    shuffled = facts.copy()
    rng.shuffle(shuffled)
    assert partition(shuffled, dict(reversed(parents.items())), final=final) == groups


@pytest.mark.parametrize("shape", ["deep", "wide", "chain of unclaimed spans"])
def test_the_cost_grows_with_the_trace_and_not_with_its_square(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from luckrate_otel.runs import lineage  # noqa: PLC0415 - the operation counted is one of its own

    visits = 0
    below = lineage.Lineage._below

    def counted(self: lineage.Lineage, above: lineage.Place, span_id: str) -> lineage.Place:
        nonlocal visits
        visits += 1
        return below(self, above, span_id)

    monkeypatch.setattr(lineage.Lineage, "_below", counted)
    n = 3000
    parents: dict[str, str] = {}
    if shape == "deep":
        facts = [tool(f"{i:x}", f"{i - 1:x}" if i > 1 else "", i) for i in range(1, n)]
    elif shape == "wide":
        facts = [agent("1"), *(tool(f"{i:x}", "1", i) for i in range(2, n))]
    else:
        parents = links(**{f"{i:x}": f"{i - 1:x}" if i > 1 else "" for i in range(1, n)})
        facts = [tool(f"{n + i:x}", f"{n - 1:x}", i) for i in range(n)]
    partition(facts, parents)
    assert visits <= 2 * n
