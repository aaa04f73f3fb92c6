"""One small report that every format is tried on: two runs of a case, one of them with a hostile tool name."""

from __future__ import annotations

from luckrate_otel.facts import Gap
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
from luckrate_otel.reports.graded import GateOptions, Place, Report, make_report

HOSTILE = "pay`|<b>@all</b>\x1b[31m\n#1"

HARD = Violation(
    "before",
    "before[0]",
    Severity.HARD,
    f"before[0]: {HOSTILE} (step 1) ran before ask_human",
    step=1,
    tool=HOSTILE,
    evidence=(Evidence(0, "a" * 16),),
    span="b" * 16,
)
SOFT = Violation("max_steps", "max_steps", Severity.SOFT, "max_steps: 2 steps, 1 allowed")
WARN = Violation(
    "ground", "ground", Severity.WARN, "ground: pay.id comes from nowhere", 1, "pay", "id", ("look (step 0)",)
)


def run(number: int) -> Trajectory:
    return Trajectory(
        steps=(Step("look", {"id": "88213"}, result="s3cret"), Step(HOSTILE, {"id": "1"})),
        turns=(Turn("Refund s3cret."),),
        run_id=f"t:{number}",
        agent="shop",
        root="c" * 16,
        duration=1500.0,
    )


def verdict(label: VerdictLabel, *violations: Violation, reason: str | None = None) -> Verdict:
    return Verdict(
        label,
        PathState.BAD if violations else PathState.OK,
        OutputState.OK,
        OutputSource.STATUS,
        violations=violations,
        not_evaluated=(NotEvaluated("secrets", Gap.NOT_CAPTURED),),
        spec="refunds",
        spec_version="0123456789abcdef",
        case="Refund s3cret.",
        reason=reason,
    )


RUNS = (
    (run(1), verdict(VerdictLabel.LUCKY, HARD, WARN)),
    (run(2), verdict(VerdictLabel.PASS)),
    (run(3), verdict(VerdictLabel.PASS, SOFT)),
)
PLACES = {
    ("0123456789abcdef", ""): Place("specs/my refunds.yaml", 1),
    ("0123456789abcdef", "before"): Place("specs/my refunds.yaml", 7),
}


def report(options: GateOptions | None = None) -> Report:
    return make_report(RUNS, options or GateOptions(), PLACES)
