"""One spec grades any framework: the reference specs on captured traffic find the same in every variant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from luckrate_otel.batch import read_files
from luckrate_otel.check import check
from luckrate_otel.model import Trajectory, Verdict
from luckrate_otel.spec import Spec

TRACES = Path(__file__).parent / "traces"
SPECS = Path(__file__).parent / "grading" / "reference"

# Scenario → the spec that grades it, and what it finds: (rule, severity, tool or tool.argument).
FORBIDDEN = ("forbidden", "hard", "issue_refund")
REPEAT = ("no_repeat", "soft", "lookup_order")
SCENARIOS = {
    "s1": ("order_support_over_limit", set()),
    "s2": ("order_support_over_limit", {FORBIDDEN}),
    "s3": ("order_support", {("ground", "warn", "issue_refund.order_id")}),
    "s4": (
        "order_support",
        {
            ("before", "hard", "issue_refund"),
            ("taint", "hard", "issue_refund.order_id"),
            ("taint", "hard", "send_email.to"),
        },
    ),
    "s5": ("order_support", set()),
    "s6": ("order_support", {REPEAT}),
    "s8": ("order_support_over_limit", set()),
}
# In s4 some pages name no amount, or no text for the mail: these then come from nowhere, and are warnings besides.
ALSO_IN_S4 = {("ground", "warn", "issue_refund.amount"), ("ground", "warn", "send_email.body")}

# Where a capture differs from its scenario, with the reason.
OTHERWISE = {
    # The telemetry of this instrumentation cannot show the soft failure, so identical calls look like repeats.
    ("langgraph-genai", "s5_soft"): {REPEAT},
    # n8n's form of s2 goes without check_policy; its s8 refunds, which this spec forbids.
    ("n8n-native", "s2"): {FORBIDDEN, ("required", "hard", "check_policy")},
    ("n8n-agents", "s2"): {FORBIDDEN, ("required", "hard", "check_policy")},
    ("n8n-native", "s8"): {FORBIDDEN},
    # A sub-workflow is a trace of its own here: the two halves are judged apart.
    ("n8n-tracekit", "s8b"): {
        FORBIDDEN,
        ("required", "hard", "lookup_order"),
        ("required", "hard", "check_policy"),
        ("before", "hard", "check_policy"),
    },
}


def captures() -> list[tuple[str, str]]:
    found = sorted(TRACES.glob("*/*.traces.jsonl"))
    return [(path.parent.name, path.name.removesuffix(".traces.jsonl")) for path in found]


def verdicts(variant: str, scenario: str, spec: Spec) -> list[tuple[Trajectory, Verdict]]:
    folder = TRACES / variant
    files = [f for f in (folder / f"{scenario}.{kind}.jsonl" for kind in ("traces", "logs")) if f.exists()]
    return [(run, check(run, spec)) for run in read_files([str(f) for f in files]).trajectories]


@pytest.mark.parametrize(("variant", "scenario"), [c for c in captures() if c[1][:2] in SCENARIOS])
def test_the_reference_specs_find_the_same_in_every_variant(variant: str, scenario: str) -> None:
    name, expected = SCENARIOS[scenario[:2]]
    expected = OTHERWISE.get((variant, scenario), expected)
    graded = [
        (run, verdict)
        for run, verdict in verdicts(
            variant, scenario, Spec.from_mapping(json.loads((SPECS / f"{name}.json").read_text()))
        )
        if verdict.reason is None  # no agent (an MCP server alone) or no tool information (CrewAI's own telemetry)
    ]
    found = {
        (v.rule, str(v.severity), f"{v.tool}.{v.argument}" if v.argument else v.tool or "")
        for _, verdict in graded
        for v in verdict.violations
    }
    if scenario.startswith("s4"):
        found -= ALSO_IN_S4
    content = all(run.coverage.args and run.coverage.task_input for run, _ in graded)
    if graded and content:
        assert found == expected
    else:  # what needs arguments cannot be found, and what does not still is
        assert found <= expected
        assert {v for v in expected if v[0] in {"forbidden", "required", "before"}} <= found or not graded


@pytest.mark.parametrize(("variant", "scenario"), captures())
def test_what_is_not_carried_is_not_evaluated(variant: str, scenario: str) -> None:
    """Never satisfied, and never a violation either."""
    spec = Spec.from_mapping(json.loads((SPECS / "order_support.json").read_text()))
    for run, verdict in verdicts(variant, scenario, spec):
        if verdict.reason is None and run.steps and not run.coverage.args:
            unjudged = {n.rule for n in verdict.not_evaluated}
            assert {"no_repeat", "ground", "taint", "secrets"} <= unjudged


@pytest.mark.parametrize(("variant", "scenario"), captures())
def test_no_capture_makes_a_call_that_its_own_definitions_do_not_allow(variant: str, scenario: str) -> None:
    """The scripts' arguments are what the tools take, so whatever is found was misread."""
    spec = Spec.from_mapping({"definitions": True, "ground": False, "secrets": False})
    assert [v.message for _, verdict in verdicts(variant, scenario, spec) for v in verdict.violations] == []
