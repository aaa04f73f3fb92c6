"""What a suite's runs came to, as text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from statistics import median
from typing import TextIO

from luckrate_otel.luck import luck_rate
from luckrate_otel.plural import plural
from luckrate_otel.reports.text import Style, luck_text, safe, verdict_colour, violation_line
from luckrate_otel.suite.rows import Row, Rows


def report(rows: Iterable[Row], file: TextIO | None = None) -> float | None:
    """Print every run with its findings, then the Luck Rate with counts and interval; give the rate back.

    The rate is None, shown as `—`, when no run was green. file: where to, standard output if not told.
    """
    out = sys.stdout if file is None else file
    kept = rows if isinstance(rows, Rows) else Rows(rows)
    style = Style(colour=out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb")
    lines = [*_runs(kept, style), ""] if kept else []
    if not kept.complete:
        lines += [f"Interrupted: {len(kept)} of {plural(kept.planned, 'run')}", ""]
    luck = luck_rate(kept.verdicts)
    lines.append(luck_text(luck, style))
    if kept:
        times = [row.seconds for row in kept]
        lines.append(f"  median run {_seconds(median(times))}, slowest {_seconds(max(times))}")
    out.write("\n".join(lines) + "\n")
    return luck.rate


def _runs(rows: Rows, style: Style) -> Iterable[str]:
    names = {row.case: safe(row.case, 40) for row in rows}
    width = max(map(len, names.values()))
    digits = max(len(str(row.run)) for row in rows)
    for row in rows:
        label = f"{row.verdict.verdict.replace('_', ' '):<10}"
        steps = plural(len(row.tools), "step")
        painted = style.paint(label, verdict_colour(row.verdict.verdict))
        yield f"{painted}  {names[row.case]:<{width}}  #{row.run:<{digits}}  {steps:>9}  {_seconds(row.seconds):>8}"
        yield from (f"  {violation_line(violation, style)}" for violation in row.verdict.violations)


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
