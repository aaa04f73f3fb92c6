"""The order-support specs on the runs of the capture scenarios: exactly these findings.

reference/runs.json holds each run's steps as its script made them, with what must be found in them: rule, tool,
argument. The captures themselves are read and graded in the tests of the adapters.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel import Spec, Step, Turn, check
from luckrate_otel.facts import CloseReason
from luckrate_otel.model import Coverage, Trajectory
from luckrate_otel.provenance.engines import ENGINES

REFERENCE = Path(__file__).parent / "reference"
RUNS: list[dict[str, Any]] = json.loads((REFERENCE / "runs.json").read_text(encoding="utf-8"))


def spec_of(run: dict[str, Any], engine: str) -> Spec:
    written = json.loads((REFERENCE / f"{run['spec']}.json").read_text(encoding="utf-8"))
    return Spec.from_mapping({**written, "provenance": engine})


def trajectory_of(run: dict[str, Any]) -> Trajectory:
    steps = tuple(Step(span=f"{i:016x}", t=float(i), **step) for i, step in enumerate(run["steps"]))
    return Trajectory(steps, (Turn(run["task"]),), root="f" * 16, close_reason=CloseReason.ROOT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["scenario"])
def test_what_is_found(run: dict[str, Any], engine: str) -> None:
    verdict = check(trajectory_of(run), spec_of(run, engine))
    assert [[v.rule, v.tool, v.argument] for v in verdict.violations] == run["found"]
    assert verdict.verdict == ("lucky" if run["found"] else "pass")
    assert verdict.not_evaluated == ()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["scenario"])
def test_what_needs_content_is_not_evaluated_without_it(run: dict[str, Any], engine: str) -> None:
    whole, spec = trajectory_of(run), spec_of(run, engine)
    bare = replace(
        whole,
        steps=tuple(replace(step, args=None, result=None) for step in whole.steps),
        turns=(),
        coverage=Coverage(args=False, results=False, task_input=False, final_output=False),
    )
    verdict = check(bare, spec)
    content = {"no_repeat", "taint", "ground", "secrets"} & {rule.id for rule in spec.rules}
    missed = {n.rule for n in verdict.not_evaluated}
    # A run that calls no untrusted tool at all holds no taint, whatever its content: an engine may say so.
    assert missed | ({"taint"} & set(verdict.vacuous)) == content
    assert "taint" not in verdict.vacuous or "fetch_page" not in {step.tool for step in bare.steps}
    assert [v.rule for v in verdict.violations] == [rule for rule, _, _ in run["found"] if rule not in content]
    assert verdict.verdict == ("lucky" if verdict.violations else "unverified")
