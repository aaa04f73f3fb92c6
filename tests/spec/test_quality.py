"""Mutants of good runs, and what a spec is worth by them."""

from __future__ import annotations

import pytest
from hypothesis import given

from luckrate_otel import Spec, Step, Turn
from luckrate_otel.facts import Gap
from luckrate_otel.model import Trajectory
from luckrate_otel.quality import Quality, Share, quality
from luckrate_otel.quality.mutants import INVENTED, mutants
from luckrate_otel.reports.quality import quality_json, quality_text
from tests.grading.test_properties import trajectories

RUN = Trajectory(
    (Step("a", {"id": "W1001"}, t=0, duration=5), Step("b", {"n": 2}, t=10), Step("c", {}, t=20)),
    (Turn("do W1001"), Turn("and more", 2)),
    gaps={(1, "result"): Gap.REDACTED},
    run_id="r",
)


def test_the_mutants_of_a_run() -> None:
    made = [(m.kind, m.step, [s.tool for s in m.trajectory.steps]) for m in mutants(RUN)]
    assert made == [
        ("drop", 0, ["b", "c"]),
        ("duplicate", 0, ["a", "a", "b", "c"]),
        ("swap", 0, ["b", "a", "c"]),
        ("alter", 0, ["a", "b", "c"]),
        ("drop", 1, ["a", "c"]),
        ("duplicate", 1, ["a", "b", "b", "c"]),
        ("swap", 1, ["a", "c", "b"]),
        ("alter", 1, ["a", "b", "c"]),
        ("drop", 2, ["a", "b"]),
        ("duplicate", 2, ["a", "b", "c", "c"]),
    ]


def test_what_belongs_to_a_step_moves_with_it() -> None:
    by_kind = {(m.kind, m.step): m.trajectory for m in mutants(RUN)}
    assert by_kind["alter", 0].steps[0].args == {"id": INVENTED}
    assert by_kind["alter", 1].steps[1].args == {"n": 27}
    swapped = by_kind["swap", 0]
    assert ([s.t for s in swapped.steps], swapped.gaps) == ([0, 0, 20], {(0, "result"): Gap.REDACTED})
    assert [turn.before_step for turn in by_kind["drop", 0].turns] == [0, 1]
    assert [turn.before_step for turn in by_kind["duplicate", 0].turns] == [0, 3]
    assert [s.t for s in by_kind["duplicate", 0].steps] == [0, 5, 10, 20]


def test_a_swap_that_changes_nothing_is_none() -> None:
    same = Trajectory((Step("a", {}), Step("a", {})))
    side_by_side = Trajectory((Step("a", {}, t=0, duration=5), Step("b", {}, t=4)))
    assert [m.kind for m in mutants(same)] == ["drop", "duplicate", "drop", "duplicate"]
    assert [m.kind for m in mutants(side_by_side)] == ["drop", "duplicate", "drop", "duplicate"]


@given(trajectories)
def test_every_mutant_can_be_judged(run: Trajectory) -> None:
    spec = Spec.from_mapping({"max_steps": 3, "before": [("a", "b")], "no_repeat": True})
    found = quality(spec, [run])
    assert found.score.caught <= found.score.made


ORDERED = {"required": ["a"], "before": [("a", "b")], "leads_to": [("x", "y")], "max_tokens": 9, "ground": False}


def test_the_quality_of_a_spec() -> None:
    bad = Trajectory((Step("b", {}),), run_id="bad")
    assert quality(Spec.from_mapping(ORDERED), [RUN, bad]) == Quality(
        runs=2,
        failing={"bad": ("required", "before")},
        vacuous=("leads_to",),
        unjudged=("max_tokens",),
        mutants={"drop": Share(1, 3), "duplicate": Share(0, 3), "swap": Share(1, 2), "alter": Share(0, 2)},
    )


def test_what_is_said_of_it() -> None:
    bad = Trajectory((Step("b", {}),), run_id="bad")
    found = quality(Spec.from_mapping(ORDERED), [RUN, bad])
    assert quality_text(found).splitlines() == [
        "the spec is broken by 1 of 2 known-good runs: mend it, or the runs are not good",
        "  bad: required, before",
        "rules that never had a chance to fire: leads_to",
        "rules that could be judged in no run: max_tokens",
        "mutants caught: 2 of 10 (20%); drop 1 of 3 (33%), duplicate 0 of 3 (0%), swap 1 of 2 (50%), alter 0 of 2 (0%)",
    ]
    assert quality_json(found) == {
        "runs": 2,
        "failing": {"bad": ["required", "before"]},
        "vacuous": ["leads_to"],
        "unjudged": ["max_tokens"],
        "mutants": {
            "drop": {"caught": 1, "made": 3},
            "duplicate": {"caught": 0, "made": 3},
            "swap": {"caught": 1, "made": 2},
            "alter": {"caught": 0, "made": 2},
        },
        "score": 0.2,
    }
    assert quality_text(quality(Spec.from_mapping({}), [])).splitlines() == [
        "no known-good run to judge the spec by: their telemetry shows no agent, or could not show a tool call",
        "mutants caught: none made; drop none made, duplicate none made, swap none made, alter none made",
    ]


def test_one_good_run_is_one_run() -> None:
    assert quality_text(quality(Spec.from_mapping({}), [RUN])).splitlines()[0] == (
        "the spec is kept by 1 of 1 known-good run"
    )


def test_many_mutants_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luckrate_otel.quality.MAX_MUTANTS", 20)
    long = Trajectory(tuple(Step("a", {"n": n}) for n in range(30)))
    found = quality(Spec.from_mapping({"ground": False}), [long])
    assert found.score.made == 17  # every seventh of 119
    assert all(share.made for share in found.mutants.values())
