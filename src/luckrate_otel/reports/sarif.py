"""SARIF 2.1.0: a result per finding, placed on the clause of the spec that it breaks.

Code scanning services file results by file and line. A run has neither, but the clause has: the spec's. Which run and
step it was stands in the logical location. Source: OASIS SARIF 2.1.0; section numbers in comments are its own.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from luckrate_otel.model import Severity, Trajectory, Verdict, Violation
from luckrate_otel.reports.advice import mend, silence
from luckrate_otel.reports.graded import Place, Report, case_key, case_label
from luckrate_otel.reports.words import evidence, place, why

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LEVELS = {Severity.HARD: "error", Severity.SOFT: "warning", Severity.WARN: "note"}


def sarif(report: Report, version: str) -> str:
    """The whole log. version: of this program."""
    found = list(report.findings())
    rules = list(dict.fromkeys(violation.rule for _, _, violation in found))
    run = {
        "tool": {
            "driver": {
                "name": "luckrate-otel",
                "semanticVersion": version,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, *item, rules) for item in found],
        "properties": {
            "luckRate": report.luck.to_json(),
            "gate": {"failed": report.gate.failed, "reasons": list(report.gate.reasons)},
        },
    }
    return json.dumps({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, ensure_ascii=False, indent=2)


def _rule(rule: str) -> dict[str, Any]:
    told = f"To mend it, {mend(rule)}. To silence it: {silence(rule)}."
    return {"id": rule, "shortDescription": {"text": f"Rule {rule} of the spec"}, "help": {"text": told}}


def _result(
    report: Report, run: Trajectory, verdict: Verdict, violation: Violation, rules: list[str]
) -> dict[str, Any]:
    words = [f"{place(violation)[0].upper()}{place(violation)[1:]}: {why(violation)}."]
    if told := evidence(violation):
        words.append(f"Evidence: {told}.")
    words.append(f"To mend it, {mend(violation.rule)}.")
    where: dict[str, Any] = {"logicalLocations": [_logical(run, verdict, violation.step, violation.tool)]}
    written = report.place(verdict, violation.clause)
    if written is not None:
        where["physicalLocation"] = _physical(written)
    result: dict[str, Any] = {
        "ruleId": violation.rule,
        "ruleIndex": rules.index(violation.rule),
        "level": _LEVELS[violation.severity],
        "message": {"text": _plain(" ".join(words))},
        "locations": [where],
        "partialFingerprints": {"luckrate/v1": f"{violation.fingerprint}:{case_key(run, verdict)}"},
        "baselineState": "unchanged" if report.is_known(run, verdict, violation) else "new",
        "properties": {
            "clause": violation.clause,
            "severity": str(violation.severity),
            "verdict": str(verdict.verdict),
            "argument": violation.argument,
            "span": violation.span,
        },
    }
    if violation.evidence:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": f"Evidence: step {item.step}"}, "logicalLocations": [at]}
            for number, item in enumerate(violation.evidence, 1)
            for at in [_logical(run, verdict, item.step, _tool(run, item.step))]
        ]
    if not report.known:  # 3.27.24: only where the results were compared with a baseline
        del result["baselineState"]
    return result


def _plain(text: str) -> str:
    """3.11.6: `[text](target)` is a link in plain text too, and names of tools come from telemetry."""
    return text.replace("](", "] (")


def _tool(run: Trajectory, step: int) -> str | None:
    return run.steps[step].tool if 0 <= step < len(run.steps) else None


def _logical(run: Trajectory, verdict: Verdict, step: int | None, tool: str | None) -> dict[str, Any]:
    """3.33; `kind` is free text where none of the listed ones fits."""
    name = run.run_id or case_label(run, verdict)
    if step is None:
        return {"name": name, "fullyQualifiedName": name, "kind": "run"}
    return {"name": tool or f"step {step}", "fullyQualifiedName": f"{name}/step {step}", "kind": "step"}


def _physical(written: Place) -> dict[str, Any]:
    path = PurePath(written.file)
    # 3.4.3: a URI reference. Relative to the place the program was run in, which is a checkout's root in CI.
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix().encode(errors="surrogateescape"))
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if written.line is not None:
        physical["region"] = {"startLine": written.line}
    return physical
