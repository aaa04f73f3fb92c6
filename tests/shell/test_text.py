"""The text report, written out whole."""

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.gate import Gate
from luckrate_otel.luck import LuckRate, luck_rate
from luckrate_otel.model import (
    Coverage,
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
from luckrate_otel.reports.text import Style, gate_text, luck_text, run_text, safe, steps_text

RUN = Trajectory(
    steps=(
        Step("lookup_order", {"order_id": "88213"}, result="found", duration=12.4, span="a" * 16),
        Step("issue_refund", None, ok=False, result=None, error="Timeout: no answer", duration=1500.0),
        Step("send_email", {}, ok=None, result=None, error="no_return"),
    ),
    turns=(Turn("Refund order 88213."),),
    final_output="Done.",
    run_id="t:r",
    adapters=("genai",),
    agent="support",
)

LUCKY = Verdict(
    VerdictLabel.LUCKY,
    PathState.BAD,
    OutputState.OK,
    OutputSource.STATUS,
    violations=(
        Violation("before", "before[0]", Severity.HARD, "before[0]: issue_refund ran first", step=1),
        Violation("max_steps", "max_steps", Severity.SOFT, "max_steps: 3 steps, 2 allowed"),
    ),
    not_evaluated=(NotEvaluated("ground", Gap.NOT_CAPTURED),),
    spec="refunds",
)


def verdict(label: VerdictLabel) -> Verdict:
    return Verdict(label, PathState.OK, OutputState.OK, OutputSource.STATUS)


def test_a_graded_run() -> None:
    assert run_text(RUN, LUCKY) == (
        "support  t:r  [genai]\n"
        "  0  lookup_order  ok                12 ms\n"
        "  1  issue_refund  failed          1500 ms\n"
        "  2  send_email    never returned\n"
        "  ✗ hard step 1:  before[0]: issue_refund ran first\n"
        "  ✗ soft the run: max_steps: 3 steps, 2 allowed\n"
        "  ? not evaluated: ground (not_captured)\n"
        "  = lucky: output ok (by status), path bad, spec refunds"
    )


def test_values_are_shown_only_when_asked_for() -> None:
    assert steps_text([RUN], Style(values=True)) == (
        "support  t:r  [genai]\n"
        "  task   Refund order 88213.\n"
        "  0  lookup_order  ok                12 ms  (order_id='88213') → found\n"
        "  1  issue_refund  failed          1500 ms  (not captured) → Timeout: no answer\n"
        "  2  send_email    never returned           ()\n"
        "  answer Done."
    )


def test_colour_marks_verdict_and_severity() -> None:
    text = run_text(RUN, LUCKY, Style(colour=True))
    assert "\x1b[31m✗ hard\x1b[0m step 1" in text
    assert "= \x1b[33mlucky\x1b[0m:" in text
    assert "\x1b" not in run_text(RUN, LUCKY)


def test_agents_are_named_where_there_are_several() -> None:
    run = Trajectory(steps=(Step("a", agent="triage"), Step("b", agent="refunds")), run_id="t:r")
    assert run_text(run) == "run  t:r\n  0  a  ok    triage\n  1  b  ok    refunds"


@pytest.mark.parametrize(
    ("coverage", "words"),
    [(Coverage(), "no tool call"), (Coverage(tools=False), "nothing in this telemetry could show a tool call")],
)
def test_a_run_without_steps(coverage: Coverage, words: str) -> None:
    assert run_text(Trajectory(run_id="t:r", coverage=coverage)) == f"run  t:r\n  ({words})"


def test_a_run_not_graded_says_why() -> None:
    not_graded = Verdict(
        VerdictLabel.NOT_GRADED, PathState.UNKNOWN, OutputState.UNKNOWN, OutputSource.NONE, reason="no_spec"
    )
    assert run_text(Trajectory(run_id="t:r"), not_graded).splitlines()[-1] == "  = not graded (no_spec)"


def test_nothing_from_telemetry_reaches_the_terminal_raw() -> None:
    run = Trajectory(steps=(Step("\x1b[2J\nx", {"a": "\x07"}),), run_id="\x1b", agent="\r")
    assert not any(c in run_text(run, style=Style(values=True)) for c in "\x1b\x07\r")
    assert safe("a\x1bb\nc\u202ed") == "a\\x1bb\\nc\\u202ed"
    assert safe("x" * 101) == "x" * 99 + "…"


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ([], "Luck Rate —: no run was green, so there is nothing to take a share of\n  0 runs"),
        (
            [VerdictLabel.FAIL, VerdictLabel.UNKNOWN, VerdictLabel.NOT_GRADED],
            (
                "Luck Rate —: no run was green, so there is nothing to take a share of\n"
                "  3 runs, 1 with unknown output, 1 not graded"
            ),
        ),
        (
            [VerdictLabel.LUCKY, *[VerdictLabel.PASS] * 3],
            "Luck Rate 25 %: 1 lucky of 4 green, 95 % interval 5 % to 70 %\n  4 runs",
        ),
        (
            [VerdictLabel.LUCKY, VerdictLabel.UNVERIFIED, VerdictLabel.PASS, VerdictLabel.PASS],
            (
                "Luck Rate ≥ 25 %: 1 lucky of 4 green, 95 % interval 5 % to 70 %\n"
                "  at most 50 %: the path of 1 green could not be verified\n"
                "  4 runs"
            ),
        ),
        ([VerdictLabel.PASS], "Luck Rate 0 %: 0 lucky of 1 green, 95 % interval 0 % to 79 %\n  1 run"),
    ],
)
def test_luck_rate_stands_beside_its_counts(labels: list[VerdictLabel], text: str) -> None:
    luck: LuckRate = luck_rate(verdict(label) for label in labels)
    assert luck_text(luck) == text


def test_the_gate() -> None:
    assert gate_text(Gate(failed=False)) == "Gate passed"
    assert gate_text(Gate(failed=True, reasons=("hard: 1", "no_runs: x"))) == "Gate failed\n  hard: 1\n  no_runs: x"
