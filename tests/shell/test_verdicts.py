"""The JSON report, written out whole."""

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.gate import Gate
from luckrate_otel.luck import luck_rate
from luckrate_otel.model import (
    Evidence,
    NotEvaluated,
    OutputSource,
    OutputState,
    PathState,
    Severity,
    Step,
    Trajectory,
    Turn,
    Verdict,
    VerdictLabel,
    Violation,
)
from luckrate_otel.reports.verdicts import report_json

RUN = Trajectory(
    steps=(
        Step("look", {"id": "88213"}, result="found", t=1.5, duration=12.0, span="a" * 16),
        Step("pay", None, ok=None, result=None, t=20.0, error="no_return"),
        Step("mail", {}, ok=False, result=None, t=30.0, error="no such box: ann@example"),
    ),
    turns=(Turn("Refund order 88213."),),
    final_output="Done.",
    run_id="t:r",
    trace_ids=("t",),
    adapters=("genai",),
    agent="shop",
    root="r",
)
VERDICT = Verdict(
    VerdictLabel.LUCKY,
    PathState.BAD,
    OutputState.OK,
    OutputSource.STATUS,
    violations=(
        Violation(
            "ground",
            "ground",
            Severity.WARN,
            "pay.id comes from nowhere",
            step=1,
            tool="pay",
            argument="id",
            sources=("look #0",),
            evidence=(Evidence(0, "a" * 16),),
        ),
    ),
    not_evaluated=(NotEvaluated("secrets", Gap.NOT_CAPTURED),),
    vacuous=("taint",),
    spec="refunds",
    spec_version="0123456789abcdef",
    case="Refund order 88213.",
)


def test_a_report_without_values() -> None:
    report = report_json([(RUN, VERDICT)], luck_rate([VERDICT]), Gate(failed=False))
    interval = report["luck_rate"].pop("interval")
    assert interval == [pytest.approx(0.2065, abs=1e-4), 1.0]
    assert report == {
        "runs": [
            {
                "run_id": "t:r",
                "trace_ids": ["t"],
                "conversation_id": None,
                "adapters": ["genai"],
                "agent": "shop",
                "task_input": None,
                "final_output": None,
                "close_reason": "end_of_input",
                "coverage": {"tools": True, "args": True, "results": True, "task_input": True, "final_output": True},
                "steps": [
                    step("look", ok=True, t=1.5, duration=12.0, span="a" * 16),
                    step("pay", ok=None, t=20.0, error="no_return"),
                    step("mail", ok=False, t=30.0),
                ],
                "spec": "refunds",
                "spec_version": "0123456789abcdef",
                "case": "f3fb011d",
                "output": "ok",
                "output_source": "status",
                "path": "bad",
                "verdict": "lucky",
                "reason": None,
                "violations": [
                    {
                        "rule": "ground",
                        "clause": "ground",
                        "severity": "warn",
                        "message": "pay.id comes from nowhere",
                        "step": 1,
                        "tool": "pay",
                        "argument": "id",
                        "sources": ["look #0"],
                        "evidence": [{"step": 0, "span": "a" * 16}],
                        "span": None,
                        "fingerprint": VERDICT.violations[0].fingerprint,
                    }
                ],
                "not_evaluated": [{"rule": "secrets", "reason": "not_captured"}],
                "vacuous": ["taint"],
            }
        ],
        "luck_rate": {
            "rate": 1.0,
            "lucky": 1,
            "green": 1,
            "unverified": 0,
            "upper": 1.0,
            "runs": 1,
            "unknown": 0,
            "not_graded": 0,
        },
        "gate": {"failed": False, "reasons": []},
    }


@pytest.mark.parametrize("reason", ["no_spec", "no_agent", "no_tools", "error"])
def test_a_run_that_was_not_graded_says_why(reason: str) -> None:
    verdict = Verdict(VerdictLabel.NOT_GRADED, PathState.UNKNOWN, OutputState.UNKNOWN, OutputSource.NONE, reason=reason)
    run = report_json([(RUN, verdict)], luck_rate([verdict]), Gate(failed=True))["runs"][0]
    assert (run["verdict"], run["reason"]) == ("not_graded", reason)


def step(
    tool: str,
    *,
    ok: bool | None,
    t: float,
    error: str | None = None,
    duration: float | None = None,
    span: str | None = None,
) -> dict[str, object]:
    return {
        "tool": tool,
        "args": None,
        "ok": ok,
        "result": None,
        "error": error,
        "t": t,
        "duration": duration,
        "agent": "main",
        "span": span,
    }


def test_values_on_request() -> None:
    run = report_json([(RUN, VERDICT)], luck_rate([VERDICT]), Gate(failed=False), values=True)["runs"][0]
    assert (run["task_input"], run["final_output"], run["case"]) == (
        "Refund order 88213.",
        "Done.",
        "Refund order 88213.",
    )
    assert [(s["args"], s["result"], s["error"]) for s in run["steps"]] == [
        ({"id": "88213"}, "found", None),
        (None, None, "no_return"),
        ({}, None, "no such box: ann@example"),
    ]


@pytest.mark.parametrize(
    ("case", "shown"),
    [("nightly-7", "nightly-7"), (None, "t:r")],
)
def test_a_case_that_is_no_task_text_is_shown(case: str | None, shown: str) -> None:
    run = Trajectory(run_id="t:r", case=case)
    verdict = Verdict(VerdictLabel.PASS, PathState.OK, OutputState.OK, OutputSource.STATUS, case=shown)
    assert report_json([(run, verdict)], luck_rate([verdict]), Gate(failed=False))["runs"][0]["case"] == shown


def test_no_green_run_has_no_rate() -> None:
    report = report_json([], luck_rate([]), Gate(failed=True, reasons=("no_runs: x",)))
    assert report["luck_rate"] == {
        "rate": None,
        "lucky": 0,
        "green": 0,
        "unverified": 0,
        "upper": None,
        "interval": None,
        "runs": 0,
        "unknown": 0,
        "not_graded": 0,
    }
