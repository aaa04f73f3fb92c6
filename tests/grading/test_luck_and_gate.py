"""The Luck Rate and the gate, over verdicts."""

from __future__ import annotations

import pytest

from luckrate_otel import gate, luck_rate
from luckrate_otel.facts import Gap
from luckrate_otel.gate import Gate, case_id
from luckrate_otel.luck import LuckRate, wilson
from luckrate_otel.model import (
    NotEvaluated,
    OutputSource,
    OutputState,
    PathState,
    Severity,
    Verdict,
    VerdictLabel,
    Violation,
)


def verdict(
    label: str = "pass",
    *severities: str,
    case: str = "c",
    missed: tuple[NotEvaluated, ...] = (),
    spec: str = "s",
    reason: str | None = None,
) -> Verdict:
    return Verdict(
        VerdictLabel(label),
        PathState.OK,
        OutputState.OK,
        OutputSource.CHECK,
        violations=tuple(Violation(f"{s}_rule", "x", Severity(s), "m") for s in severities),
        not_evaluated=missed,
        spec=spec,
        spec_version="1",
        case=case,
        reason=reason,
    )


def counted(**counts: int) -> list[Verdict]:
    return [verdict(label) for label, count in counts.items() for _ in range(count)]


# ---- Luck Rate -------------------------------------------------------------------------------------


def test_the_counts_and_bounds() -> None:
    rate = luck_rate(counted(lucky=1, unverified=2, fail=3, unknown=4, not_graded=5, **{"pass": 5}))
    assert rate == LuckRate(
        rate=0.125,
        lucky=1,
        green=8,
        unverified=2,
        upper=0.375,
        interval=wilson(1, 8),
        runs=20,
        unknown=4,
        not_graded=5,
    )


@pytest.mark.parametrize("counts", [{}, {"fail": 3}, {"unknown": 2, "not_graded": 1}])
def test_no_green_run_is_not_no_luck(counts: dict[str, int]) -> None:
    rate = luck_rate(counted(**counts))
    assert (rate.rate, rate.upper, rate.interval, rate.green) == (None, None, None, 0)
    assert str(rate) == "—"
    assert rate.to_json()["rate"] is None
    assert rate.to_json()["interval"] is None


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ({"pass": 4}, "0 %"),
        ({"lucky": 1, "pass": 3}, "25 %"),
        ({"lucky": 1, "pass": 6, "unverified": 1}, "≥ 12 %"),
        ({"unverified": 1}, "≥ 0 %"),
        ({"lucky": 2}, "100 %"),
    ],
)
def test_how_the_rate_is_shown(counts: dict[str, int], shown: str) -> None:
    assert str(luck_rate(counted(**counts))) == shown


def test_the_json_form() -> None:
    assert luck_rate(counted(lucky=2)).to_json() == {
        "rate": 1.0,
        "lucky": 2,
        "green": 2,
        "unverified": 0,
        "upper": 1.0,
        "interval": [pytest.approx(0.3424, abs=1e-4), 1.0],
        "runs": 2,
        "unknown": 0,
        "not_graded": 0,
    }


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (1, 1, 0.2065, 1.0),
        (1, 100, 0.0018, 0.0545),
    ],
)
def test_wilson(hits: int, of: int, low: float, high: float) -> None:
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


def test_wilson_is_exact_at_the_ends() -> None:
    for of in range(1, 200):
        none, every = wilson(0, of), wilson(of, of)
        assert none is not None
        assert every is not None
        assert (none[0], every[1]) == (0.0, 1.0)
    assert wilson(0, 0) is None


# ---- gate ------------------------------------------------------------------------------------------


def test_one_hard_violation_in_any_run_fails() -> None:
    runs = [verdict(), verdict("lucky", "hard", "hard"), verdict("fail", "hard", "soft"), verdict()]
    assert gate(runs) == Gate(failed=True, reasons=("hard: 3 violations in 2 of 4 runs (hard_rule 3)",))


def test_warnings_never_fail() -> None:
    assert gate([verdict("lucky", "warn")] * 9) == Gate(failed=False)


@pytest.mark.parametrize(
    ("soft", "clean", "failed"), [(1, 0, True), (1, 1, False), (2, 1, True), (2, 2, False), (3, 2, True), (0, 3, False)]
)
def test_soft_violations_fail_in_more_than_half_the_runs_of_a_case(soft: int, clean: int, failed: bool) -> None:
    decision = gate([*[verdict("lucky", "soft", "soft")] * soft, *[verdict()] * clean])
    reason = (
        f"soft: violations in {soft} of {soft + clean} run{'' if soft + clean == 1 else 's'} of case {case_id('c')}"
    )
    assert decision == Gate(failed, (reason,) if failed else ())


def test_soft_violations_are_counted_case_by_case() -> None:
    runs = [verdict("lucky", "soft", case="a"), *[verdict(case="b")] * 9]
    assert gate(runs).reasons == (f"soft: violations in 1 of 1 run of case {case_id('a')}",)
    assert gate(runs, names={"a": "refund"}).reasons == ("soft: violations in 1 of 1 run of case refund",)


def test_runs_that_were_not_graded_have_no_say_in_what_most_runs_do() -> None:
    runs = [
        verdict("lucky", "soft"),
        verdict("not_graded", reason="no_tools"),
        verdict("not_graded", reason="no_tools"),
    ]
    assert gate(runs).failed


def test_a_case_is_named_without_its_text() -> None:
    assert case_id("Refund W1001 for Ann") == "cc83d60e"
    assert "Ann" not in str(gate([verdict("lucky", "soft", case="Ann")]))
    case_id("\ud800")


def test_no_runs() -> None:
    assert gate([]) == Gate(failed=True, reasons=("no_runs: nothing to judge",))
    assert gate([], allow_empty=True) == Gate(failed=False)


TAINT = NotEvaluated("taint", Gap.NOT_CAPTURED, Severity.HARD)


def test_a_hard_rule_evaluated_in_no_run() -> None:
    runs = [verdict(missed=(TAINT,)), verdict(missed=(NotEvaluated("taint", Gap.NO_TASK, Severity.HARD),))]
    expected = "not_judged: taint was evaluated in none of 2 runs of spec s (no_task, not_captured)"
    assert gate(runs) == Gate(failed=True, reasons=(expected,))
    assert gate(runs, allow_unjudged=True) == Gate(failed=False)
    assert gate([*runs, verdict()]) == Gate(failed=False)


def test_each_spec_must_judge_its_own_hard_rules() -> None:
    runs = [verdict(missed=(TAINT,)), verdict(spec="other")]
    assert gate(runs).reasons == ("not_judged: taint was evaluated in none of 1 run of spec s (not_captured)",)


def test_soft_rules_and_warnings_may_go_unjudged() -> None:
    missed = (NotEvaluated("no_repeat", Gap.NO_TASK, Severity.SOFT), NotEvaluated("ground", Gap.NO_TASK, Severity.WARN))
    assert gate([verdict(missed=missed)]) == Gate(failed=False)


def test_no_run_graded_is_not_a_pass() -> None:
    runs = [
        verdict("not_graded", reason="no_tools"),
        verdict("not_graded", reason="no_spec"),
        verdict("not_graded", reason="no_tools"),
    ]
    assert gate(runs) == Gate(failed=True, reasons=("not_judged: no run was graded (no_spec 1, no_tools 2)",))
    assert gate(runs, allow_unjudged=True) == Gate(failed=False)


def test_the_luck_rate_limit_is_compared_with_the_lower_end_of_the_interval() -> None:
    runs = counted(lucky=5, **{"pass": 5})  # 50 %, interval from 23.7 %
    assert gate(runs, max_luck_rate=0.24) == Gate(failed=False)
    assert gate(runs, max_luck_rate=0.23) == Gate(
        failed=True, reasons=("luck_rate: at least 24%, 23% allowed (5 lucky of 10 green runs)",)
    )
    low = luck_rate(runs).interval
    assert low is not None
    assert gate(runs, max_luck_rate=low[0]) == Gate(failed=False)
    assert gate(counted(fail=3), max_luck_rate=0.0) == Gate(failed=False)
