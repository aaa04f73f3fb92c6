"""Comparing two reports: what surely changed, what cannot be told yet, and what the gate has seen before."""

import json
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel.cli import main
from luckrate_otel.compare import CaseState, Change, Share, compare, difference, newcombe
from luckrate_otel.errors import InputError
from luckrate_otel.luck import luck_rate
from luckrate_otel.reports.comparison import comparison_json, comparison_text, difference_text
from luckrate_otel.reports.graded import case_label
from luckrate_otel.reports.past import Past, past, read_past
from luckrate_otel.reports.verdicts import report_json
from tests.reports.example import HARD, RUNS, report


def finding(name: str, severity: str = "hard") -> dict[str, Any]:
    return {"rule": "forbidden", "severity": severity, "message": f"forbidden[0]: {name}", "fingerprint": name}


def run(verdict: str, *findings: dict[str, Any], case: str = "c", tools: str = "look") -> dict[str, Any]:
    return {
        "run_id": "t:r",
        "task_input": None,
        "case": case,
        "verdict": verdict,
        "violations": list(findings),
        "steps": [{"tool": tool} for tool in tools.split()],
    }


def runs(*groups: tuple[int, dict[str, Any]]) -> Past:
    return past({"runs": [one for count, one in groups for _ in range(count)]})


# ---- shares ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "interval"),
    [  # published examples, with the sides exchanged as theirs is first less second
        ((48, 80), (56, 70), (0.0524, 0.3339)),
        ((3, 10), (9, 10), (0.1705, 0.8090)),
        ((0, 29), (5, 56), (-0.0381, 0.1926)),
        ((0, 10), (10, 10), (0.6075, 1.0)),
    ],
)
def test_the_interval_is_newcombes(
    before: tuple[int, int], after: tuple[int, int], interval: tuple[float, float]
) -> None:
    assert newcombe(before, after) == pytest.approx(interval, abs=5e-5)


def test_the_interval_is_antisymmetric() -> None:
    forth, back = newcombe((3, 10), (6, 11)), newcombe((6, 11), (3, 10))
    assert forth is not None
    assert back == pytest.approx((-forth[1], -forth[0]))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ((0, 0), (1, 2), Change.NO_DATA),
        ((1, 2), (0, 0), Change.NO_DATA),
        ((1, 2), (2, 4), Change.SAME),
        ((1, 4), (2, 4), Change.UNDECIDED),
        ((0, 10), (10, 10), Change.HIGHER),
        ((10, 10), (0, 10), Change.LOWER),
        ((0, 3), (4, 4), Change.UNDECIDED),
        ((0, 4), (3, 3), Change.UNDECIDED),
        ((4, 4), (0, 4), Change.LOWER),
    ],
)
def test_what_a_difference_amounts_to(before: tuple[int, int], after: tuple[int, int], change: Change) -> None:
    found = difference(Share(*before), Share(*after))
    assert found.change is change
    assert (found.missing is not None) is (change is Change.UNDECIDED)


@pytest.mark.parametrize(("before", "after"), [((1, 4), (2, 4)), ((5, 10), (6, 10)), ((0, 3), (1, 3))])
def test_the_runs_it_asks_for_would_tell_and_one_less_would_not(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    found = difference(Share(*before), Share(*after))
    assert found.missing is not None
    size = before[1] + found.missing[0]

    def interval(of: int) -> tuple[float, float]:
        made = newcombe((before[0] / before[1] * of, of), (after[0] / after[1] * of, of))
        assert made is not None
        return made

    assert interval(size)[0] > 0
    assert interval(size - 1)[0] <= 0


def test_the_smaller_side_is_the_one_that_needs_runs() -> None:
    found = difference(Share(500, 1000), Share(3, 4))
    assert found.missing is not None
    assert found.missing[0] == 0 < found.missing[1]
    assert difference_text(found).startswith("50 % (500 of 1000) → 75 % (3 of 4): not enough runs: need ")
    assert " more in B (difference " in difference_text(found)


def test_a_difference_that_no_suite_could_see() -> None:
    found = difference(Share(500_000, 1_000_000), Share(500_001, 1_000_000))
    assert (found.change, found.missing) == (Change.UNDECIDED, None)
    assert "too small a difference to tell from chance" in difference_text(found)


# ---- cases -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (runs((5, run("pass"))), runs((5, run("pass"))), CaseState.UNCHANGED),
        (runs((5, run("pass"))), runs((4, run("pass")), (1, run("lucky", finding("a")))), CaseState.REGRESSED),
        (runs((1, run("lucky", finding("a")))), runs((1, run("lucky", finding("b")))), CaseState.REGRESSED),
        (runs((10, run("pass"))), runs((10, run("fail"))), CaseState.REGRESSED),
        (runs((2, run("pass"))), runs((1, run("pass")), (1, run("fail"))), CaseState.UNDECIDED),
        (runs((2, run("pass"))), runs((2, run("unverified"))), CaseState.UNCHANGED),
        (runs((10, run("fail"))), runs((10, run("pass"))), CaseState.IMPROVED),
        (runs((10, run("lucky", finding("a")))), runs((10, run("pass"))), CaseState.IMPROVED),
        (runs((1, run("lucky", finding("a")))), runs((1, run("pass"))), CaseState.UNDECIDED),
        (runs((5, run("lucky", finding("a", "soft")))), runs((5, run("lucky"))), CaseState.UNCHANGED),
    ],
)
def test_what_becomes_of_a_case(before: Past, after: Past, state: CaseState) -> None:
    (case,) = compare(before, after).cases
    assert case.state is state


def test_cases_of_one_side_are_named() -> None:
    found = compare(runs((1, run("pass", case="a"))), runs((1, run("pass", case="b"))))
    assert (found.only_before, found.only_after, found.cases) == (("a",), ("b",), ())
    assert not found.regressed


def test_a_luck_rate_that_surely_rose_is_a_regression() -> None:
    found = compare(runs((10, run("pass", case="a"))), runs((10, run("lucky", case="b"))))
    assert found.luck.change is Change.HIGHER
    assert found.regressed


def test_tool_drift() -> None:
    before = runs((8, run("pass", tools="look look pay")), (2, run("pass", tools="look old")))
    after = runs((10, run("pass", tools="look new")))
    drift = {tool.tool: tool for tool in compare(before, after).tools}
    assert list(drift) == ["pay", "old", "new"]
    assert drift["pay"].runs.change is Change.LOWER
    assert drift["pay"].calls == (0.8, 0.0)
    assert drift["old"].runs.change is Change.UNDECIDED


def test_the_text() -> None:
    before = runs((2, run("pass")), (1, run("pass", case="u")), (1, run("pass", case="\x1b")))
    after = runs((2, run("lucky", finding("pay"), tools="pay")), (1, run("pass", case="u")))
    assert comparison_text(compare(before, after)) == (
        "Luck Rate 0 % (0 of 4) → 67 % (2 of 3): not enough runs: need 1 more in B "
        "(difference 0 to +94 points at 95 %)\n"
        "\n"
        "Cases regressed\n"
        "  c\n"
        "    new hard finding: forbidden[0]: pay\n"
        "    passed 100 % (2 of 2) → 0 % (0 of 2): not enough runs: need 2 more in A and 2 more in B "
        "(difference \N{MINUS SIGN}100 to \N{MINUS SIGN}7 points at 95 %)\n"
        "    with a hard violation 0 % (0 of 2) → 100 % (2 of 2): not enough runs: need 2 more in A and 2 more in B "
        "(difference +7 to +100 points at 95 %)\n"
        "\n"
        "1 case unchanged\n"
        "only in A: \\x1b\n"
        "\n"
        "Tool drift\n"
        "  pay  in 0 % (0 of 4) → 67 % (2 of 3) of runs, new  0.0 → 0.7 calls a run\n"
        "\n"
        "Regressed"
    )


def test_nothing_in_common() -> None:
    assert comparison_text(compare(runs(), runs())) == "Luck Rate — → —: nothing to compare\n\nNo regression"


def test_the_json() -> None:
    told = comparison_json(compare(runs((2, run("pass"))), runs((2, run("lucky", finding("pay"))))))
    assert list(told) == ["regressed", "luck_rate", "cases", "only_in_a", "only_in_b", "tools"]
    assert told["cases"][0]["appeared"] == [
        {"rule": "forbidden", "severity": "hard", "message": "forbidden[0]: pay", "fingerprint": "pay"}
    ]
    assert told["luck_rate"]["a"] == [0, 2]


# ---- reports read back -------------------------------------------------------------------------


@pytest.mark.parametrize("values", [False, True])
def test_a_report_is_read_back_with_the_same_cases_with_and_without_values(values: bool) -> None:
    made = report()
    told = report_json(made.runs, luck_rate(verdict for _, verdict in RUNS), made.gate, values=values)
    back = past(json.loads(json.dumps(told)))
    assert [run.verdict for run in back.runs] == ["lucky", "pass", "pass"]
    assert {run.case for run in back.runs} == {case for case, _ in back.known}
    assert (case_label(*RUNS[0]), HARD.fingerprint) in back.known


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{", ":1: not JSON"),
        ("[]", ": holds no runs"),
        ('{"runs": {}}', ": holds no runs"),
        *(
            (f'{{"runs": [{run}]}}', f": runs[0]: not a run of a report: {words}")
            for run, words in (
                ("{}", "case is missing"),
                ("3", "it holds something of another kind"),
                (
                    '{"case": "c", "run_id": "r", "task_input": null, "verdict": "good"}',
                    "'good' is nothing that a report",
                ),
                ('{"case": "c", "run_id": "c", "verdict": "pass", "violations": [5]}', "it holds something of another"),
            )
        ),
    ],
)
def test_what_is_no_report_is_told_in_one_line(tmp_path: Path, text: str, cause: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_past(file)
    assert str(error.value).startswith(f"{file}{cause}")
    assert str(error.value).endswith("; give a report that --format json wrote")
    assert "\n" not in str(error.value)


# ---- the commands ------------------------------------------------------------------------------


def test_the_baseline_gates_on_what_is_new(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traces = Path(__file__).parents[1] / "traces/crewai-openinference/s2.traces.jsonl"
    spec = tmp_path / "s.yaml"
    spec.write_text("forbidden: [issue_refund]\nbefore: [[ask_human, issue_refund]]\n", encoding="utf-8")
    check = ["check", str(traces), "--spec", str(spec)]
    assert main([*check, "--format", "json"]) == 1
    base = tmp_path / "base.json"
    base.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main([*check, "--baseline", str(base)]) == 0
    assert "(known)" in capsys.readouterr().out
    assert main(["compare", str(base), str(base)]) == 0
    assert capsys.readouterr().out.endswith("No regression\n")
    spec.write_text("before: [[x, y], [ask_human, issue_refund]]\nforbidden: [z, issue_refund]\n", encoding="utf-8")
    assert main([*check, "--baseline", str(base)]) == 0  # clauses that moved
    spec.write_text("before: [[x, issue_refund]]\n", encoding="utf-8")
    assert main([*check, "--baseline", str(base)]) == 1  # one in another's place
    capsys.readouterr()
    assert main([*check, "--baseline", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"luckrate-otel: {tmp_path}/none: cannot be read: no such file or directory\n"
