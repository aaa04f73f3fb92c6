"""A comparison as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from luckrate_otel.compare import CaseChange, CaseState, Change, Comparison, Difference, Share, ToolDrift
from luckrate_otel.plural import plural
from luckrate_otel.reports.past import PastFinding
from luckrate_otel.reports.text import PLAIN, Style, percent, safe

_COLOURS = {CaseState.REGRESSED: "red", CaseState.IMPROVED: "green", CaseState.UNDECIDED: "cyan"}
NO_CASE = "(runs without a case)"


def comparison_text(found: Comparison, style: Style = PLAIN) -> str:
    """The Luck Rate, the cases by what became of them, the tools that drifted, and the conclusion."""
    blocks = [f"Luck Rate {difference_text(found.luck)}"]
    order = (CaseState.REGRESSED, CaseState.IMPROVED, CaseState.UNDECIDED)
    for state in order:
        lines = [line for case in found.cases if case.state is state for line in _case(case)]
        if lines:
            blocks.append("\n".join([style.paint(f"Cases {state}", _COLOURS[state]), *lines]))
    unchanged = sum(case.state is CaseState.UNCHANGED for case in found.cases)
    blocks.append("\n".join(_rest(unchanged, found)))
    if found.tools:
        blocks.append("\n".join(["Tool drift", *_drift(found.tools)]))
    blocks.append(style.paint("Regressed", "red") if found.regressed else style.paint("No regression", "green"))
    return "\n\n".join(filter(None, blocks))


def difference_text(found: Difference) -> str:
    """`2 of 4 → 3 of 4: not enough runs: need 30 more in A and 30 more in B`."""
    shares = f"{_share(found.before)} → {_share(found.after)}"
    if found.interval is None:
        return f"{shares}: nothing to compare"
    low, high = map(_points, found.interval)
    spread = f"difference {low} to {high} points at 95 %"
    if found.change is Change.UNDECIDED:
        return f"{shares}: {_missing(found)} ({spread})"
    words = {Change.HIGHER: "rose", Change.LOWER: "fell", Change.SAME: "no difference seen"}[found.change]
    return f"{shares}: {words} ({spread})"


def _points(share: float) -> str:
    """Percentage points with their sign; zero has none."""
    points = round(share * 100)
    return f"{points:+d}".replace("-", "\N{MINUS SIGN}") if points else "0"


def _missing(found: Difference) -> str:
    if found.missing is None:
        return "too small a difference to tell from chance"
    needed = [f"{count} more in {side}" for count, side in zip(found.missing, "AB", strict=True) if count]
    return f"not enough runs: need {' and '.join(needed)}"


def _share(share: Share) -> str:
    return "—" if share.value is None else f"{percent(share.value)} ({share.hits} of {share.of})"


def _case(case: CaseChange) -> Iterator[str]:
    yield f"  {safe(case.case or NO_CASE)}"
    for word, findings in (("new", case.appeared), ("gone", case.gone)):
        yield from (f"    {word} hard finding: {safe(finding.message, 200)}" for finding in findings)
    if case.passes.change is not Change.SAME:
        yield f"    passed {difference_text(case.passes)}"
    if case.hard.change is not Change.SAME:
        yield f"    with a hard violation {difference_text(case.hard)}"


def _rest(unchanged: int, found: Comparison) -> Iterator[str]:
    if unchanged:
        yield f"{plural(unchanged, 'case')} unchanged"
    for side, cases in (("A", found.only_before), ("B", found.only_after)):
        if cases:
            yield f"only in {side}: {', '.join(safe(case or NO_CASE, 60) for case in cases)}"


def _drift(tools: Iterable[ToolDrift]) -> Iterator[str]:
    rows = [(safe(t.tool, 40), _drifted(t), f"{t.calls[0]:.1f} → {t.calls[1]:.1f} calls a run") for t in tools]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    yield from (f"  {tool:<{widths[0]}}  {shares:<{widths[1]}}  {calls}" for tool, shares, calls in rows)


def _drifted(tool: ToolDrift) -> str:
    before, after = tool.runs.before, tool.runs.after
    words = "" if before.hits and after.hits else ", gone" if before.hits else ", new"
    return f"in {_share(before)} → {_share(after)} of runs{words}"


# ---- JSON --------------------------------------------------------------------------------------


def comparison_json(found: Comparison) -> dict[str, Any]:
    return {
        "regressed": found.regressed,
        "luck_rate": _difference_json(found.luck),
        "cases": [
            {
                "case": case.case,
                "state": str(case.state),
                "appeared": [_finding_json(finding) for finding in case.appeared],
                "gone": [_finding_json(finding) for finding in case.gone],
                "passed": _difference_json(case.passes),
                "hard": _difference_json(case.hard),
            }
            for case in found.cases
        ],
        "only_in_a": list(found.only_before),
        "only_in_b": list(found.only_after),
        "tools": [
            {"tool": tool.tool, "runs": _difference_json(tool.runs), "calls_per_run": list(tool.calls)}
            for tool in found.tools
        ],
    }


def _difference_json(found: Difference) -> dict[str, Any]:
    return {
        "a": [found.before.hits, found.before.of],
        "b": [found.after.hits, found.after.of],
        "change": str(found.change),
        "interval": list(found.interval) if found.interval else None,
        "runs_needed": list(found.missing) if found.missing else None,
    }


def _finding_json(finding: PastFinding) -> dict[str, str]:
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "message": finding.message,
        "fingerprint": finding.fingerprint,
    }
