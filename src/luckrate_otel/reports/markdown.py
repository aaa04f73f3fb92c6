"""Markdown for a comment on a pull request: the number, the decision, and each finding once with its count of runs.

Whatever comes from telemetry stands in code spans: there neither markup nor mentions nor links work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from luckrate_otel.model import Severity, Trajectory, Verdict, VerdictLabel, Violation
from luckrate_otel.plural import plural
from luckrate_otel.reports.advice import mend, silence
from luckrate_otel.reports.graded import Report, case_label
from luckrate_otel.reports.text import REASON_CHARACTERS, percent, safe
from luckrate_otel.reports.words import RANK, evidence, place, why

# A comment on GitHub holds 65,536 characters; a row takes up to about 700.
MAX_FINDINGS = 50
MAX_CASES = 50

_GREEN = (VerdictLabel.PASS, VerdictLabel.LUCKY, VerdictLabel.UNVERIFIED)


def markdown(report: Report) -> str:
    """The whole comment."""
    luck = report.luck
    state = "failed" if report.gate.failed else "passed"
    lines = [f"### Luck Rate {luck}, gate {state}", ""]
    if luck.interval is None:
        lines.append(f"No run of {luck.runs} was green, so there is nothing to take a share of.")
    else:
        low, high = (percent(bound) for bound in luck.interval)
        lines.append(f"{luck.lucky} lucky of {plural(luck.green, 'green run')}, 95 % interval {low} to {high}.")
    beside = [plural(luck.runs, "run")]
    beside += [f"{count} {words}" for count, words in _beside(report) if count]
    lines += ["", f"{', '.join(beside)}.", ""]
    lines += [f"- {code(reason)}" for reason in report.gate.reasons]
    lines += [""] if report.gate.reasons else []
    lines += _cases(report)
    lines += _findings(report)
    return "\n".join(lines).rstrip() + "\n"


def _beside(report: Report) -> tuple[tuple[int, str], ...]:
    luck = report.luck
    failed = luck.runs - luck.green - luck.unknown - luck.not_graded
    return (
        (luck.unverified, "green but unverified"),
        (failed, "with a wrong output"),
        (luck.unknown, "with unknown output"),
        (luck.not_graded, f"not graded ({_reasons(report)})"),
    )


def _reasons(report: Report) -> str:
    """Of runs that were not graded: `no_agent 2, no_spec 1`, as the gate has it."""
    ungraded = (verdict for _, verdict in report.runs if verdict.verdict is VerdictLabel.NOT_GRADED)
    counts = Counter(verdict.reason or "no reason given" for verdict in ungraded)
    return ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))


def code(text: str, limit: int = REASON_CHARACTERS) -> str:
    """A code span, its fence longer than any in the text; `|` would end a table's cell even there."""
    shown = safe(text, limit).replace("|", "\\|")
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if not shown or shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


# ---- cases -------------------------------------------------------------------------------------


def _cases(report: Report) -> Iterator[str]:
    rows: dict[str, list[tuple[Trajectory, Verdict]]] = {}
    for run, verdict in report.runs:
        rows.setdefault(case_label(run, verdict), []).append((run, verdict))
    if not rows:
        return
    yield "| case | runs | green | lucky | hard | soft | warn |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for label, runs in list(rows.items())[:MAX_CASES]:
        labels = [verdict.verdict for _, verdict in runs]
        green = sum(verdict in _GREEN for verdict in labels)
        counts = [sum(any(v.severity is s for v in verdict.violations) for _, verdict in runs) for s in Severity]
        numbers = (len(runs), green, labels.count(VerdictLabel.LUCKY), *counts)
        yield f"| {code(label)} | {' | '.join(map(str, numbers))} |"
    if len(rows) > MAX_CASES:
        yield f"\n… and {plural(len(rows) - MAX_CASES, 'more case')}."
    yield ""


# ---- findings ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """One finding of one case, in however many runs."""

    case: str
    violation: Violation
    known: bool
    runs: set[str] = field(default_factory=set)


def _findings(report: Report) -> Iterator[str]:
    groups: dict[tuple[str, str], _Group] = {}
    for number, (run, verdict) in enumerate(report.runs):
        for violation in verdict.violations:
            label = case_label(run, verdict)
            known = report.is_known(run, verdict, violation)
            group = groups.setdefault((label, violation.fingerprint), _Group(label, violation, known))
            group.runs.add(f"{number}")
    if not groups:
        return
    ordered = sorted(groups.values(), key=lambda group: (group.known, RANK[group.violation.severity]))
    yield f"<details><summary>{plural(len(groups), 'finding')}</summary>"
    yield ""
    yield "| severity | rule | case | runs | where | why | evidence |"
    yield "|---|---|---|--:|---|---|---|"
    yield from (_row(group) for group in ordered[:MAX_FINDINGS])
    if len(ordered) > MAX_FINDINGS:
        yield f"\n… and {len(ordered) - MAX_FINDINGS} more; `--format json` has them all."
    yield ""
    for rule in dict.fromkeys(group.violation.rule for group in ordered[:MAX_FINDINGS]):
        yield f"- **{rule}**: {mend(rule)}. Silence: `{silence(rule)}`"
    yield ""
    yield "</details>"


def _row(group: _Group) -> str:
    violation = group.violation
    severity = f"{violation.severity} (known)" if group.known else str(violation.severity)
    leans = evidence(violation, shown=REASON_CHARACTERS)
    cells = (
        severity,
        violation.rule,
        code(group.case, 60),
        len(group.runs),
        place(violation),
        code(why(violation)),
        code(leans) if leans else "—",
    )
    return f"| {' | '.join(map(str, cells))} |"
