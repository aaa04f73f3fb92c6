"""Verdicts as JSON and back, whole: what a suite keeps on disk, and what test workers send home."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.facts import Gap
from luckrate_otel.model import (
    Evidence,
    NotEvaluated,
    OutputSource,
    OutputState,
    PathState,
    Severity,
    Verdict,
    VerdictLabel,
    Violation,
)


def to_record(verdict: Verdict) -> dict[str, Any]:
    """A JSON object that from_record reads."""
    return {
        "verdict": str(verdict.verdict),
        "path": str(verdict.path),
        "output": str(verdict.output),
        "output_source": str(verdict.output_source),
        "violations": [_violation(violation) for violation in verdict.violations],
        "not_evaluated": [[n.rule, str(n.reason), str(n.severity)] for n in verdict.not_evaluated],
        "vacuous": list(verdict.vacuous),
        "spec": verdict.spec,
        "spec_version": verdict.spec_version,
        "case": verdict.case,
        "reason": verdict.reason,
    }


def _violation(violation: Violation) -> dict[str, Any]:
    return {
        "rule": violation.rule,
        "clause": violation.clause,
        "severity": str(violation.severity),
        "message": violation.message,
        "step": violation.step,
        "tool": violation.tool,
        "argument": violation.argument,
        "sources": list(violation.sources),
        "evidence": [[item.step, item.span] for item in violation.evidence],
        "span": violation.span,
        "content": violation.content,
    }


def from_record(record: Mapping[str, Any]) -> Verdict:
    """Raises KeyError, TypeError or ValueError if to_record did not write it."""
    return Verdict(
        verdict=VerdictLabel(record["verdict"]),
        path=PathState(record["path"]),
        output=OutputState(record["output"]),
        output_source=OutputSource(record["output_source"]),
        violations=tuple(map(_read_violation, record["violations"])),
        not_evaluated=tuple(
            NotEvaluated(rule, Gap(reason), Severity(severity)) for rule, reason, severity in record["not_evaluated"]
        ),
        vacuous=tuple(record["vacuous"]),
        spec=record["spec"],
        spec_version=record["spec_version"],
        case=record["case"],
        reason=record["reason"],
    )


def _read_violation(record: Mapping[str, Any]) -> Violation:
    return Violation(
        rule=record["rule"],
        clause=record["clause"],
        severity=Severity(record["severity"]),
        message=record["message"],
        step=record["step"],
        tool=record["tool"],
        argument=record["argument"],
        sources=tuple(record["sources"]),
        evidence=tuple(Evidence(step, span) for step, span in record["evidence"]),
        span=record["span"],
        content=record["content"],
    )
