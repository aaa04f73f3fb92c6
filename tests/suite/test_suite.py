"""The suite: every case k times, a run that raises is recorded, nothing that is done is lost."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel import Step, evaluate, gate, report
from luckrate_otel.compare import compare
from luckrate_otel.errors import SpecError
from luckrate_otel.facts import Gap
from luckrate_otel.model import (
    Evidence,
    NotEvaluated,
    OutputSource,
    OutputState,
    PathState,
    Severity,
    Trajectory,
    Turn,
    Verdict,
    VerdictLabel,
    Violation,
)
from luckrate_otel.reports.past import past
from luckrate_otel.suite import Row, Rows
from luckrate_otel.suite.case import failed, read_cases
from luckrate_otel.verdict_json import from_record, to_record

Outcome = tuple[list[Step], str]

SPEC = {"name": "refunds", "forbidden": ["pay"], "ground": False}
CASE: dict[str, Any] = {
    "name": "refund",
    "input": "Refund order 88213.",
    "spec": SPEC,
    "expect": lambda output: "done" in output,
}


def clean(_: Any) -> Outcome:
    return [Step("look", {"id": "88213"}, result="found")], "done"


def lucky(_: Any) -> Outcome:
    return [Step("look"), Step("pay")], "done"


class Scripted:
    """A runner that does the next thing of its script at each call."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.inputs: list[Any] = []

    def __call__(self, task: Any) -> Outcome:
        self.inputs.append(task)
        step = self.script.pop(0)
        if isinstance(step, BaseException):
            raise step
        outcome: Outcome = step(task)
        return outcome


def labels(rows: Rows) -> list[str]:
    return [str(row.verdict.verdict) for row in rows]


# ---- running -----------------------------------------------------------------------------------


def test_every_case_runs_k_times_and_is_graded() -> None:
    runner = Scripted(clean, lucky, lambda _: ([], "sorry"))
    rows = evaluate([CASE], runner, k=3)
    assert labels(rows) == ["pass", "lucky", "fail"]
    assert [(row.case, row.run, row.tools) for row in rows] == [
        ("refund", 0, ("look",)),
        ("refund", 1, ("look", "pay")),
        ("refund", 2, ()),
    ]
    assert runner.inputs == ["Refund order 88213."] * 3
    assert {row.verdict.case for row in rows} == {"refund"}
    assert rows.complete
    assert gate(rows.verdicts).reasons == ("hard: 1 violation in 1 of 3 runs (forbidden 1)",)


def test_k_is_five_and_spec_and_expect_may_be_left_out() -> None:
    rows = evaluate([{"name": "a", "input": "hello"}], clean)
    assert len(rows) == 5
    assert {row.verdict.output for row in rows} == {OutputState.UNKNOWN}


def test_a_trajectory_is_graded_with_what_it_knows_itself() -> None:
    told = Trajectory(steps=(Step("look", {"id": "10254"}, result="x"),), turns=(Turn("Order 10254, please."),))
    rows = evaluate([{"name": "a", "input": {"order": 1}, "expect": bool}], lambda _: (told, "done"), k=1)
    assert labels(rows) == ["pass"]


@pytest.mark.parametrize(
    ("task", "label"),
    [
        ("Refund order 88213.", "pass"),
        (["Hello.", Turn("It is 88213.", 0)], "pass"),
        ({"order": "88213"}, "pass"),
        ("Refund it.", "lucky"),
    ],
)
def test_arguments_trace_to_the_input_whatever_its_form(task: Any, label: str) -> None:
    rows = evaluate([{"name": "a", "input": task, "expect": bool}], clean, k=1)
    assert labels(rows) == [label]


def test_the_output_can_be_checked_by_the_spec() -> None:
    spec = {"output": {"check": {"contains": ["done"]}}}
    assert labels(evaluate([{"name": "a", "input": "88213", "spec": spec}], clean, k=1)) == ["pass"]


@pytest.mark.parametrize("parallel", [1, 3])
def test_an_async_runner(parallel: int) -> None:
    busy = most = 0

    async def runner(task: Any) -> Outcome:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        return clean(task)

    rows = evaluate([CASE], runner, k=7, parallel=parallel)
    assert labels(rows) == ["pass"] * 7
    assert most == parallel


def test_an_async_runner_inside_a_running_loop() -> None:
    async def runner(task: Any) -> Outcome:
        return clean(task)

    async def notebook() -> Rows:
        return evaluate([CASE], runner, k=2)

    assert labels(asyncio.run(notebook())) == ["pass", "pass"]


def test_in_a_notebook_a_run_that_raises_says_why() -> None:
    async def work() -> Outcome:
        raise ValueError("the backend is down")

    async def notebook() -> Rows:
        return evaluate([CASE], lambda _: work(), k=1)

    (row,) = asyncio.run(notebook())
    assert [v.message for v in row.verdict.violations] == ["run_failed: ValueError: the backend is down"]


def test_in_a_notebook_results_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def runner(task: Any) -> Outcome:
        return clean(task)

    async def notebook() -> Rows:
        return evaluate([CASE], runner, k=1, results=tmp_path / "file/results.jsonl")

    with pytest.raises(OSError, match="file"):
        asyncio.run(notebook())


def test_in_a_notebook_ctrl_c_ends_the_suite(tmp_path: Path) -> None:
    """Nothing runs on in the background, or writes results, after what is done was given back."""
    calls: list[Any] = []

    async def runner(task: Any) -> Outcome:
        calls.append(task)
        if len(calls) == 2:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            await asyncio.Event().wait()
        return clean(task)

    async def notebook() -> Rows:
        return evaluate([CASE], runner, k=6, results=tmp_path / "results.jsonl")

    loop = asyncio.new_event_loop()  # a notebook's own: asyncio.run would take the signal
    try:
        rows = loop.run_until_complete(notebook())
    finally:
        loop.close()
    assert (len(rows), rows.complete, len(calls)) == (1, False, 2)


def test_a_plain_function_that_gives_a_coroutine() -> None:
    async def work(task: Any, times: int) -> Outcome:
        return clean(task)

    assert labels(evaluate([CASE], lambda task: work(task, 1), k=1)) == ["pass"]


def test_threads_are_bounded_and_rows_come_in_order() -> None:
    together = threading.Barrier(3, timeout=10)
    lock = threading.Lock()
    busy = most = 0

    def runner(task: Any) -> Outcome:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        together.wait()
        with lock:
            busy -= 1
        return clean(task)

    rows = evaluate([CASE], runner, k=6, parallel=3)
    assert [row.run for row in rows] == list(range(6))
    assert most == 3


# ---- what goes wrong ---------------------------------------------------------------------------


def test_a_run_that_raises_is_a_hard_violation_and_the_suite_goes_on() -> None:
    rows = evaluate([CASE], Scripted(clean, TimeoutError("no\nanswer"), clean), k=3)
    assert labels(rows) == ["pass", "fail", "pass"]
    assert rows[1].failed
    assert rows[1].verdict.violations == (
        Violation("run_failed", "run_failed", Severity.HARD, "run_failed: TimeoutError: no answer"),
    )
    assert gate(rows.verdicts).failed


@pytest.mark.parametrize("outcome", [None, (1, 2, 3), ([Step("look")],), (7, "done")])
def test_what_is_no_outcome_is_a_failed_run(outcome: Any) -> None:
    (row,) = evaluate([CASE], lambda _: outcome, k=1)
    assert row.failed


def test_an_expect_that_raises_is_a_failed_run() -> None:
    case = {**CASE, "expect": lambda output: output["total"]}
    (row,) = evaluate([case], clean, k=1)
    assert row.verdict.violations[0].message.startswith("run_failed: TypeError: ")


@pytest.mark.parametrize("error", [RuntimeError(), SystemExit(), asyncio.CancelledError()])
@pytest.mark.parametrize("parallel", [1, 2])
def test_whatever_a_run_raises_it_is_recorded(error: BaseException, parallel: int) -> None:
    async def runner(_: Any) -> Outcome:
        raise error

    def plain(_: Any) -> Outcome:
        raise error

    for kind in (runner, plain):
        rows = evaluate([CASE], kind, k=2, parallel=parallel)
        assert {row.verdict.violations[0].message for row in rows} == {f"run_failed: {type(error).__name__}"}


def test_a_long_error_is_cut() -> None:
    (case,) = read_cases([CASE])
    message = failed(case, ValueError("x" * 1000)).violations[0].message
    assert message == f"run_failed: ValueError: {'x' * 288}…"


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ([{"input": "x"}], r"cases\[0\]: name is missing"),
        ([{"name": "a"}], r"cases\[0\]: input is missing"),
        ([{**CASE}, {**CASE}], "two cases are called 'refund'"),
        ([{**CASE, "specs": {}}], r"cases\[0\]: specs: unknown key; did you mean 'spec'?"),
    ],
)
def test_a_bad_suite_costs_no_run(cases: list[dict[str, Any]], words: str) -> None:
    runner = Scripted()
    with pytest.raises(ValueError, match=words):
        evaluate(cases, runner)
    assert runner.inputs == []


def test_a_bad_spec_names_its_case() -> None:
    with pytest.raises(SpecError, match=r"^case 'refund': forbiden: unknown key"):
        evaluate([{**CASE, "spec": {"forbiden": []}}], clean)


@pytest.mark.parametrize("counts", [{"k": 0}, {"parallel": 0}])
def test_counts_are_at_least_one(counts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        evaluate([CASE], clean, **counts)


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = evaluate([CASE], Scripted(clean, lucky, KeyboardInterrupt()), k=5, results=tmp_path / "r.jsonl")
    assert labels(rows) == ["pass", "lucky"]
    assert (rows.complete, rows.planned) == (False, 5)
    assert capsys.readouterr().err == "luckrate-otel: interrupted; kept: 2 of 5 runs\n"
    again = evaluate([CASE], Scripted(clean, clean, clean), k=5, results=tmp_path / "r.jsonl")
    assert labels(again) == ["pass", "lucky", "pass", "pass", "pass"]


@pytest.mark.parametrize("kind", ["threads", "async"])
def test_ctrl_c_ends_parallel_runs_too(kind: str) -> None:
    program = f"""
import asyncio, os, signal, time
from luckrate_otel import Step, evaluate
count = 0
def work(task):
    global count
    count += 1
    if count == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return [Step("look")], "done"
async def runner(task):
    await asyncio.sleep(0)
    return work(task)
if {kind!r} == "threads":
    runner = work
rows = evaluate([{{"name": "a", "input": "x"}}], runner, k=10_000, parallel=2)
print(rows.complete, 2 <= len(rows) < 10_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "False True\n"


# ---- keeping -----------------------------------------------------------------------------------


def test_results_are_streamed_and_resumed(tmp_path: Path) -> None:
    file = tmp_path / "deep/r.jsonl"
    seen: list[int] = []

    def runner(task: Any) -> Outcome:
        seen.append(len(file.read_text("utf-8").splitlines()) if file.exists() else 0)
        return clean(task)

    first = evaluate([CASE], runner, k=3, results=file)
    assert seen == [0, 1, 2]
    again = evaluate([CASE], Scripted(), k=3, results=file)
    assert [row.verdict for row in again] == [row.verdict for row in first]
    more = evaluate([CASE, {**CASE, "name": "new"}], Scripted(lucky, lucky, lucky), k=3, results=file)
    assert labels(more) == ["pass"] * 3 + ["lucky"] * 3


def test_no_value_is_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    evaluate([CASE], clean, k=1, results=file)
    (line,) = file.read_text("utf-8").splitlines()
    assert list(json.loads(line)) == ["case", "run", "fingerprint", "seconds", "verdict", "told"]
    assert "88213" not in line


@pytest.mark.parametrize("change", [{"input": "Refund order 1."}, {"spec": {**SPEC, "required": ["look"]}}])
def test_a_changed_case_runs_again(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "r.jsonl"
    evaluate([CASE], clean, k=1, results=file)
    runner = Scripted(lucky)
    assert labels(evaluate([{**CASE, **change}], runner, k=1, results=file)) == ["lucky"]
    assert labels(evaluate([CASE], Scripted(), k=1, results=file)) == ["pass"]


def test_failed_runs_stay_failed_unless_asked(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    evaluate([CASE], Scripted(clean, OSError("down")), k=2, results=file)
    assert labels(evaluate([CASE], Scripted(), k=2, results=file)) == ["pass", "fail"]
    assert labels(evaluate([CASE], Scripted(clean), k=2, results=file, retry_failed=True)) == ["pass", "pass"]
    assert labels(evaluate([CASE], Scripted(), k=2, results=file)) == ["pass", "pass"]


def test_a_torn_last_line_costs_only_its_run(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    evaluate([CASE], clean, k=2, results=file)
    file.write_bytes(file.read_bytes()[:-30])
    assert labels(evaluate([CASE], Scripted(lucky), k=2, results=file)) == ["pass", "lucky"]
    assert labels(evaluate([CASE], Scripted(), k=2, results=file)) == ["pass", "lucky"]


def test_a_verdict_comes_back_whole() -> None:
    verdict = Verdict(
        VerdictLabel.LUCKY,
        PathState.BAD,
        OutputState.OK,
        OutputSource.CHECK,
        (Violation("r", "r[0]", Severity.SOFT, "m", 1, "t", "a", ("s",), (Evidence(0, "x"), Evidence(2)), "y"),),
        (NotEvaluated("taint", Gap.REDACTED, Severity.HARD),),
        ("before",),
        "spec",
        "version",
        "case",
        "reason",
    )
    back = from_record(json.loads(json.dumps(to_record(verdict))))
    assert back == verdict
    assert back.not_evaluated[0].severity is Severity.HARD


def test_a_suite_is_compared_like_any_other_report(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    before = evaluate([CASE], clean, k=4, results=file)
    after = evaluate([CASE], Scripted(clean, lucky, lucky, OSError("down")), k=4)
    resumed = evaluate([CASE], Scripted(), k=4, results=file)
    assert resumed.to_json() == before.to_json()
    assert list(before.to_json()) == ["runs", "luck_rate", "gate"]
    found = compare(past(before.to_json()), past(after.to_json()))
    assert [case.case for case in found.cases] == ["refund"]
    assert [finding.rule for finding in found.cases[0].appeared] == ["forbidden", "run_failed"]
    assert [drift.tool for drift in found.tools] == ["pay"]


# ---- reporting ---------------------------------------------------------------------------------


def row(run: int, label: VerdictLabel, *violations: Violation, seconds: float = 0.25) -> Row:
    path = PathState.BAD if violations else PathState.OK
    verdict = Verdict(label, path, OutputState.OK, OutputSource.CHECK, violations, case="refund")
    return Row("refund", run, verdict, {"steps": [{"tool": "look"}] * run}, seconds)


def told(rows: Rows) -> tuple[float | None, str]:
    out = io.StringIO()
    return report(rows, out), out.getvalue()


def test_every_run_is_printed_with_the_rate_counts_and_interval() -> None:
    bad = Violation("forbidden", "forbidden[0]", Severity.HARD, "forbidden[0]: pay (step 1) must not be called", 1)
    rows = Rows([row(0, VerdictLabel.PASS), row(1, VerdictLabel.LUCKY, bad, seconds=2.04)])
    rate, text = told(rows)
    assert rate == 0.5
    assert text == (
        "pass        refund  #0    0 steps    250 ms\n"
        "lucky       refund  #1     1 step     2.0 s\n"
        "  ✗ hard step 1: forbidden[0]: pay (step 1) must not be called\n"
        "\n"
        "Luck Rate 50 %: 1 lucky of 2 green, 95 % interval 9 % to 91 %\n"
        "  2 runs\n"
        "  median run 1.1 s, slowest 2.0 s\n"
    )


def test_the_gate_calls_cases_as_the_report_does() -> None:
    over = Violation("max_steps", "max_steps", Severity.SOFT, "max_steps: step 1 is over the budget of 1 (2 taken)")
    rows = Rows([row(0, VerdictLabel.PASS, over)])
    decision = gate(rows.verdicts, names=rows.names)
    assert decision.reasons == ("soft: violations in 1 of 1 run of case refund",)
    assert list(decision.reasons) == rows.to_json()["gate"]["reasons"]
    assert "pass        refund " in told(rows)[1]


def test_the_rate_of_nothing_is_a_dash() -> None:
    rate, text = told(Rows([row(0, VerdictLabel.FAIL)]))
    assert rate is None
    assert "Luck Rate —: no run was green" in text
    assert told(Rows()) == (None, "Luck Rate —: no run was green, so there is nothing to take a share of\n  0 runs\n")


def test_an_interrupted_suite_says_so() -> None:
    assert "\nInterrupted: 1 of 5 runs\n" in told(Rows([row(0, VerdictLabel.PASS)], 5))[1]


def test_report_takes_a_plain_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([row(0, VerdictLabel.PASS)]) == 0.0
    assert capsys.readouterr().out.startswith("pass ")


def test_progress_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, pipe = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    evaluate([CASE], clean, k=2)
    assert "██████████░░░░░░░░░░ 1 of 2  refund #0 pass" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[2K")
    monkeypatch.setattr(sys, "stderr", pipe)
    evaluate([CASE], clean, k=2)
    assert pipe.getvalue() == ""
