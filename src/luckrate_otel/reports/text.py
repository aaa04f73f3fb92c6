"""Runs, verdicts and the Luck Rate as text for people.

What comes from telemetry is shown with control characters written out: a tool name must not be able to move the cursor
of the terminal it is read in.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from luckrate_otel.facts import NO_RETURN
from luckrate_otel.gate import Gate
from luckrate_otel.luck import LuckRate
from luckrate_otel.model import OutputSource, Severity, Step, Trajectory, Verdict, VerdictLabel, Violation
from luckrate_otel.plural import plural
from luckrate_otel.printable import printable
from luckrate_otel.reports.advice import mend, silence
from luckrate_otel.reports.graded import Report, case_key
from luckrate_otel.reports.words import RANK, evidence, place, why

# Long enough for a sentence of a task, short enough for one line beside its label.
SHOWN_CHARACTERS = 100

# Of a finding's sentence, which names a tool, an argument and a source.
REASON_CHARACTERS = 240

_COLOURS: Mapping[str, str] = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "dim": "2", "bold": "1"}
_VERDICT_COLOURS: Mapping[VerdictLabel, str] = {
    VerdictLabel.PASS: "green",
    VerdictLabel.LUCKY: "yellow",
    VerdictLabel.FAIL: "red",
    VerdictLabel.UNVERIFIED: "cyan",
    VerdictLabel.UNKNOWN: "cyan",
    VerdictLabel.NOT_GRADED: "cyan",
}
_SEVERITY_COLOURS: Mapping[Severity, str] = {Severity.HARD: "red", Severity.SOFT: "yellow", Severity.WARN: "yellow"}


@dataclass(frozen=True, slots=True)
class Style:
    """colour: use terminal colours. values: show arguments, results and task texts, which may be private."""

    colour: bool = False
    values: bool = False

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.colour else text


PLAIN = Style()


def safe(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """One printable line of at most limit characters."""
    text = text if len(text) <= limit else f"{text[: limit - 1]}…"
    return printable(text)


# ---- runs --------------------------------------------------------------------------------------


def run_text(
    trajectory: Trajectory,
    verdict: Verdict | None = None,
    style: Style = PLAIN,
    *,
    title: str = "",
    case: str = "",
    not_evaluated: Sequence[str] | None = None,
    known: Container[str] = (),
) -> str:
    """One run: a heading, its steps aligned, then, if it was graded, its findings and its verdict.

    not_evaluated: the rules that could not be judged, where the verdict came over the wire, which tells no reasons.
    case: what the gate calls the run's case, "" where that is the run's own id. known: fingerprints of findings that a
    baseline has already.
    """
    lines = [_heading(trajectory, style, title, case)]
    if style.values and trajectory.task_input is not None:
        lines.append(f"  task   {safe(trajectory.task_input)}")
    lines += _steps(trajectory, style)
    if style.values and trajectory.final_output is not None:
        lines.append(f"  answer {safe(trajectory.final_output)}")
    if verdict is not None:
        gaps = [f"{item.rule} ({item.reason})" for item in verdict.not_evaluated]
        lines += _findings(verdict, gaps if not_evaluated is None else not_evaluated, style, known)
    return "\n".join(lines)


def _heading(trajectory: Trajectory, style: Style, title: str, case: str) -> str:
    name = safe(title or trajectory.agent or "run")
    parts = [style.paint(name, "bold"), safe(trajectory.run_id)]
    if trajectory.adapters:
        parts.append(f"[{safe(', '.join(trajectory.adapters))}]")
    if case:
        parts.append(f"case {safe(case)}")
    return "  ".join(part for part in parts if part)


def _steps(trajectory: Trajectory, style: Style) -> Iterator[str]:
    steps = trajectory.steps
    if not steps:
        words = "no tool call" if trajectory.coverage.tools else "nothing in this telemetry could show a tool call"
        yield style.paint(f"  ({words})", "dim")
        return
    several = len({step.agent for step in steps}) > 1
    rows = [(str(i), safe(step.tool, 40), _outcome(step), _milliseconds(step), step) for i, step in enumerate(steps)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]  # type: ignore[arg-type]  # texts
    for index, tool, outcome, took, step in rows:
        line = f"  {index:>{widths[0]}}  {tool:<{widths[1]}}  {outcome:<{widths[2]}}  {took:>{widths[3]}}"
        if several:
            line += f"  {safe(step.agent, 40)}"
        if style.values:
            line += f"  {_values(step)}"
        yield line.rstrip()


def _outcome(step: Step) -> str:
    if step.ok is None:
        return "never returned" if step.error == NO_RETURN else "outcome not known"
    return "ok" if step.ok else "failed"


def _milliseconds(step: Step) -> str:
    return "" if step.duration is None else f"{step.duration:.0f} ms"


def _values(step: Step) -> str:
    args = "(not captured)" if step.args is None else f"({', '.join(f'{k}={v!r}' for k, v in step.args.items())})"
    result = step.error if step.ok is False and step.error else step.result
    return safe(args if result is None else f"{args} → {result}")


# ---- verdicts ----------------------------------------------------------------------------------


def _findings(verdict: Verdict, gaps: Sequence[str], style: Style, known: Container[str]) -> Iterator[str]:
    width = max((len(place(violation)) for violation in verdict.violations), default=0)
    for violation in verdict.violations:
        yield f"  {violation_line(violation, style, width, known)}"
    if gaps:
        yield style.paint(f"  ? not evaluated: {safe(', '.join(gaps), 240)}", "cyan")
    yield f"  {_verdict(verdict, style)}"


def violation_line(violation: Violation, style: Style = PLAIN, width: int = 0, known: Container[str] = ()) -> str:
    """One finding. width: of the place, to align several. known: fingerprints that a baseline has."""
    mark = style.paint(f"✗ {violation.severity:<4}", _SEVERITY_COLOURS[violation.severity])
    leans = evidence(violation, shown=REASON_CHARACTERS)
    told = f"{safe(why(violation), REASON_CHARACTERS)}{f' [{safe(leans, 120)}]' if leans else ''}"
    old = style.paint(" (known)", "dim") if violation.fingerprint in known else ""
    return f"{mark} {f'{place(violation)}:':<{width + 1}} {told}{old}"


def verdict_colour(label: VerdictLabel) -> str:
    return _VERDICT_COLOURS[label]


def _verdict(verdict: Verdict, style: Style) -> str:
    label = style.paint(verdict.verdict.replace("_", " "), _VERDICT_COLOURS[verdict.verdict])
    if verdict.verdict is VerdictLabel.NOT_GRADED:
        return f"= {label} ({verdict.reason or 'no reason given'})"
    source = "" if verdict.output_source is OutputSource.NONE else f" (by {verdict.output_source})"
    spec = f", spec {safe(verdict.spec)}" if verdict.spec else ""
    return f"= {label}: output {verdict.output.replace('_', ' ')}{source}, path {verdict.path}{spec}"


# ---- numbers -----------------------------------------------------------------------------------


def luck_text(luck: LuckRate, style: Style = PLAIN) -> str:
    """The Luck Rate with its counts. `—` when no run was green; `≥` when some green runs could not be verified."""
    if luck.interval is None:
        head = f"Luck Rate {luck}: no run was green, so there is nothing to take a share of"
    else:
        low, high = luck.interval
        share = style.paint(f"Luck Rate {luck}", "bold")
        head = f"{share}: {luck.lucky} lucky of {luck.green} green, 95 % interval {percent(low)} to {percent(high)}"
    lines = [head]
    if luck.unverified and luck.upper is not None:
        lines.append(f"  at most {percent(luck.upper)}: the path of {luck.unverified} green could not be verified")
    beside = [plural(luck.runs, "run")]
    beside += [f"{luck.unknown} with unknown output"] if luck.unknown else []
    beside += [f"{luck.not_graded} not graded"] if luck.not_graded else []
    lines.append(f"  {', '.join(beside)}")
    return "\n".join(lines)


def percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def gate_text(gate: Gate, style: Style = PLAIN) -> str:
    if not gate.failed:
        return style.paint("Gate passed", "green")
    return "\n".join([style.paint("Gate failed", "red"), *(f"  {safe(reason, 200)}" for reason in gate.reasons)])


def steps_text(trajectories: Sequence[Trajectory], style: Style = PLAIN) -> str:
    return "\n\n".join(run_text(trajectory, style=style) for trajectory in trajectories)


# ---- the whole ---------------------------------------------------------------------------------


def report_text(report: Report, style: Style = PLAIN) -> str:
    """Every run, what can be done about the findings, the Luck Rate and the gate."""
    blocks = [
        run_text(
            run,
            verdict,
            style,
            case=case_key(run, verdict),
            known={v.fingerprint for v in verdict.violations if report.is_known(run, verdict, v)},
        )
        for run, verdict in report.runs
    ]
    return "\n\n".join([*blocks, *_advice(report, style), luck_text(report.luck, style), gate_text(report.gate, style)])


def _advice(report: Report, style: Style) -> Iterator[str]:
    found = sorted((violation for _, _, violation in report.findings()), key=lambda violation: RANK[violation.severity])
    rules = tuple(dict.fromkeys(violation.rule for violation in found))
    if rules:
        width = max(map(len, rules))
        lines = [line for rule in rules for line in _advice_on(rule, width)]
        yield "\n".join([style.paint("What to do", "bold"), *lines])


def _advice_on(rule: str, width: int) -> tuple[str, str]:
    return f"  {rule:<{width}}  mend: {mend(rule)}", f"  {'':<{width}}  silence: {silence(rule)}"
