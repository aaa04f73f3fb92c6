"""JSON reports of earlier runs, read back: what `compare` and `--baseline` work on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luckrate_otel.errors import InputError
from luckrate_otel.gate import case_id
from luckrate_otel.model import Severity, VerdictLabel
from luckrate_otel.reports.graded import Known


@dataclass(frozen=True, slots=True)
class PastFinding:
    rule: str
    severity: Severity
    message: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class PastRun:
    """case: its label, "" for a run that is its own case. tools: of its steps, in order."""

    case: str
    verdict: VerdictLabel
    findings: tuple[PastFinding, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Past:
    """The runs of one report. source: the file it came from."""

    runs: tuple[PastRun, ...]
    source: str = ""

    @property
    def known(self) -> Known:
        return frozenset((run.case, finding.fingerprint) for run in self.runs for finding in run.findings)


def read_past(path: Path) -> Past:
    """Read the output of `check --format json`. Raises InputError that names the file and what is wrong with it."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; {_ADVICE}") from None
    except (ValueError, RecursionError) as error:
        place = f"{path}:{error.lineno}" if isinstance(error, json.JSONDecodeError) else str(path)
        raise InputError(f"{place}: not JSON; {_ADVICE}") from None
    return past(report, str(path))


def past(report: Any, source: str = "") -> Past:
    """The runs of a report as it was parsed."""
    runs = report.get("runs") if isinstance(report, Mapping) else None
    if not isinstance(runs, list):
        raise InputError(f"{source}: holds no runs; {_ADVICE}")
    kept = []
    for number, run in enumerate(runs):
        try:
            kept.append(_run(run))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{source}: runs[{number}]: not a run of a report: {_words(error)}; {_ADVICE}") from None
    return Past(tuple(kept), source)


def _words(error: Exception) -> str:
    """Python's own are about its types."""
    if isinstance(error, KeyError):
        return f"{error.args[0]} is missing"
    if isinstance(error, ValueError):  # "'good' is not a valid VerdictLabel"
        return f"{str(error).partition(' is not ')[0]} is nothing that a report says"
    return "it holds something of another kind"


_ADVICE = "give a report that --format json wrote"


def _run(run: Mapping[str, Any]) -> PastRun:
    return PastRun(
        case=_case(run),
        verdict=VerdictLabel(run["verdict"]),
        findings=tuple(
            PastFinding(str(v["rule"]), Severity(v["severity"]), str(v["message"]), str(v["fingerprint"]))
            for v in run["violations"]
        ),
        tools=tuple(str(step["tool"]) for step in run["steps"]),
    )


def _case(run: Mapping[str, Any]) -> str:
    """As `graded.case_key`: a report with values shows a task's text where others show its hash."""
    case = str(run["case"])
    if case == run["run_id"]:
        return ""
    return case_id(case) if case == run["task_input"] else case
