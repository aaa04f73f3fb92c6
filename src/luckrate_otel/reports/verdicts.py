"""`check --format json`: every run with its verdict, the Luck Rate, and the gate. A public contract, see the docs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from luckrate_otel.facts import NO_RETURN
from luckrate_otel.gate import Gate
from luckrate_otel.luck import LuckRate
from luckrate_otel.model import Trajectory, Verdict, Violation
from luckrate_otel.reports.graded import case_label
from luckrate_otel.reports.trajectory import to_json

# Why a call failed may quote the data it failed on; this one is our own word.
_OWN_ERRORS = frozenset({NO_RETURN})


def report_json(
    graded: Iterable[tuple[Trajectory, Verdict]], luck: LuckRate, gate: Gate, *, values: bool = False
) -> dict[str, Any]:
    """values: keep task texts, arguments and results, which may be private; else they are null."""
    return {
        "runs": [run_json(trajectory, verdict, values=values) for trajectory, verdict in graded],
        "luck_rate": luck.to_json(),
        "gate": {"failed": gate.failed, "reasons": list(gate.reasons)},
    }


def run_json(trajectory: Trajectory, verdict: Verdict, *, values: bool = False) -> dict[str, Any]:
    run = to_json(trajectory)
    case = verdict.case
    if not values:
        run = _without_values(run)
        case = case_label(trajectory, verdict)
    return {
        **run,
        "spec": verdict.spec,
        "spec_version": verdict.spec_version,
        "case": case,
        "output": str(verdict.output),
        "output_source": str(verdict.output_source),
        "path": str(verdict.path),
        "verdict": str(verdict.verdict),
        "reason": verdict.reason,
        "violations": [violation_json(violation) for violation in verdict.violations],
        "not_evaluated": [{"rule": item.rule, "reason": str(item.reason)} for item in verdict.not_evaluated],
        "vacuous": list(verdict.vacuous),
    }


def _without_values(run: Mapping[str, Any]) -> dict[str, Any]:
    """The keys stay, so that readers need no second form; `coverage` still tells what was captured."""
    steps = [
        {**step, "args": None, "result": None, "error": step["error"] if step["error"] in _OWN_ERRORS else None}
        for step in run["steps"]
    ]
    return {**run, "task_input": None, "final_output": None, "steps": steps}


def violation_json(violation: Violation) -> dict[str, Any]:
    return {
        "rule": violation.rule,
        "clause": violation.clause,
        "severity": str(violation.severity),
        "message": violation.message,
        "step": violation.step,
        "tool": violation.tool,
        "argument": violation.argument,
        "sources": list(violation.sources),
        "evidence": [{"step": item.step, "span": item.span} for item in violation.evidence],
        "span": violation.span,
        "fingerprint": violation.fingerprint,
    }
