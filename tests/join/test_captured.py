"""Every captured run gives the whole trajectory written down beside it, in whatever order its telemetry comes."""

from __future__ import annotations

import re
from itertools import chain, zip_longest
from random import Random
from typing import Any

import pytest

from tests.captured import CASES, Case, rebuilt, telemetry

IDS = [str(case) for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_whole(case: Case) -> None:
    assert rebuilt(*telemetry(case)) == case.json("trajectory.json")


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_in_any_order_and_with_retries(case: Case) -> None:
    spans, logs = telemetry(case)
    expected = case.json("trajectory.json")
    assert rebuilt(spans[::-1], logs[::-1]) == expected
    shuffled = Random(7).sample(spans, len(spans))
    assert rebuilt((*shuffled, *spans), (*logs, *logs)) == expected


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_interleaved_with_another_trace(case: Case) -> None:
    other = CASES[(CASES.index(case) + 7) % len(CASES)]
    spans, logs = telemetry(case)
    more, more_logs = telemetry(other)
    mixed = tuple(s for s in chain.from_iterable(zip_longest(spans, more)) if s is not None)
    runs = case.json("trajectory.json") + other.json("trajectory.json")
    assert sorted(rebuilt(mixed, (*more_logs, *logs)), key=_run_id) == sorted(runs, key=_run_id)


def _run_id(run: dict[str, Any]) -> str:
    return str(run["run_id"])


# ---- against the ground truth ------------------------------------------------------------------


def _canonical(tool: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", tool.lower()).strip("_")


def _squashed(text: object) -> str:
    return re.sub(r"[\\\s\"']+", "", str(text))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_against_the_ground_truth(case: Case) -> None:
    truth = case.json("expected.json")
    runs = case.json("trajectory.json")
    steps = [step for run in runs for step in run["steps"]]
    if truth.get("no_tool_information"):
        assert steps == []
        assert [run["coverage"]["tools"] for run in runs] == [False]
        return
    wanted = [w for w in truth["steps"] if not (w.get("optional") and len(steps) < len(truth["steps"]))]
    assert [_canonical(s["tool"]) for s in steps] == [_canonical(w["tool"]) for w in wanted]
    for want, step in zip(wanted, steps, strict=True):
        _check(want, step, {**truth, **want})


def _check(want: dict[str, Any], step: dict[str, Any], flags: dict[str, Any]) -> None:
    assert step["args"] is None or step["args"] == want["args"]
    if want["ok"] is None:
        assert step["ok"] is not True
        assert step["result"] is None
    elif not (flags.get("ok_not_carried") or (step["ok"] is None and flags.get("ok_unknown_allowed"))):
        assert step["ok"] is want["ok"]
    if step["result"] is not None and want["ok"]:
        assert _squashed(want.get("result_contains") or "") in _squashed(step["result"])
    assert step["agent"] in (want.get("agent"), "main")


def test_every_variant_has_its_expected_files() -> None:
    for case in CASES:
        assert case.path("expected.json").exists()
        assert case.path("trajectory.json").exists()
