"""JUnit XML, as CI servers show it: a test case per run, and one for the gate.

A document has a failure exactly if the gate failed. A run fails by its new hard violations; what else was found stands
in its output, as soft violations decide per case and warnings never do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from luckrate_otel.model import Severity, Trajectory, Verdict, VerdictLabel, Violation
from luckrate_otel.reports.advice import mend, silence
from luckrate_otel.reports.graded import Report, case_label
from luckrate_otel.reports.words import evidence, place, why

# Everything that XML 1.0 cannot hold, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Report) -> str:
    """The whole document."""
    suites = ET.Element("testsuites", name="luckrate-otel")
    groups: dict[str, list[tuple[Trajectory, Verdict]]] = {}
    for run, verdict in report.runs:
        groups.setdefault(verdict.spec or "no spec", []).append((run, verdict))
    for spec, runs in groups.items():
        suite = ET.SubElement(suites, "testsuite", name=_text(spec))
        counts: dict[str, int] = {}
        for run, verdict in runs:
            label = case_label(run, verdict)
            counts[label] = counts.get(label, 0) + 1
            _add_run(suite, report, run, verdict, f"{label} #{counts[label]}")
        _sum_up(suite)
    _add_gate(ET.SubElement(suites, "testsuite", name="gate"), report)
    _sum_up(suites)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode")


def _add_run(suite: ET.Element, report: Report, run: Trajectory, verdict: Verdict, name: str) -> None:
    case = ET.SubElement(suite, "testcase", classname=suite.get("name", ""), name=_text(name))
    if run.duration is not None:
        case.set("time", f"{run.duration / 1000:.3f}")
    if verdict.verdict is VerdictLabel.NOT_GRADED:
        ET.SubElement(case, "skipped", message=_text(f"not graded: {verdict.reason or 'no reason given'}"))
    new = [v for v in verdict.violations if not report.is_known(run, verdict, v)]
    hard = [v for v in new if v.severity is Severity.HARD]
    for violation in hard:
        failure = ET.SubElement(case, "failure", type=violation.rule, message=_text(why(violation)))
        failure.text = _text(_told(violation))
    others = [_told(v) + ("" if v in new else "\n(known)") for v in verdict.violations if v not in hard]
    gaps = [f"not evaluated: {n.rule} ({n.reason})" for n in verdict.not_evaluated]
    source = f"output {verdict.output} (by {verdict.output_source}), path {verdict.path}"
    lines = [f"run {run.run_id}: {verdict.verdict}, {source}", *others, *gaps]
    ET.SubElement(case, "system-out").text = _text("\n\n".join(lines))


def _told(violation: Violation) -> str:
    lines = [f"{violation.severity} {place(violation)}: {why(violation)}"]
    if found := evidence(violation):
        lines.append(f"evidence: {found}")
    lines += [f"mend: {mend(violation.rule)}", f"silence: {silence(violation.rule)}"]
    return "\n".join(lines)


def _add_gate(suite: ET.Element, report: Report) -> None:
    properties = ET.SubElement(suite, "properties")
    for key, value in report.luck.to_json().items():
        ET.SubElement(properties, "property", name=f"luck_rate.{key}", value="" if value is None else str(value))
    case = ET.SubElement(suite, "testcase", classname="gate", name=f"gate (Luck Rate {report.luck})")
    for reason in report.gate.reasons:
        ET.SubElement(case, "failure", type=reason.partition(":")[0], message=_text(reason))
    _sum_up(suite)


def _sum_up(parent: ET.Element) -> None:
    """Counts as readers expect them: a test case with any failure is one failure."""
    cases: Iterable[ET.Element] = list(parent.iter("testcase"))
    parent.set("tests", str(sum(1 for _ in cases)))
    parent.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    parent.set("errors", "0")
    skipped = sum(case.find("skipped") is not None for case in cases)
    if parent.tag == "testsuite":
        parent.set("skipped", str(skipped))


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
