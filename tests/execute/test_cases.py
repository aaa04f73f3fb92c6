"""Runs of one command several times over are of one case, unless they say otherwise; soft is decided per case."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel.cli import main
from luckrate_otel.execute.cases import with_cases
from luckrate_otel.execute.environment import CAPTURE
from luckrate_otel.gate import case_id
from luckrate_otel.model import Trajectory, Turn

AGENT = (Path(__file__).parents[2] / "examples/ci/agent.py").read_text("utf-8")

# Two calls when hasty, three when not.
SPEC = "max_steps: 2\noutput: {check: {contains: Done}}\n"

Exec = Callable[..., tuple[int, list[str], list[str]]]


@pytest.fixture
def exec_(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Exec:
    """Run an agent several times: exit status, cases of its runs, the gate's reasons."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", *(setting.variable for setting in CAPTURE)):
        monkeypatch.delenv(name, raising=False)
    spec = tmp_path / "s.yaml"
    spec.write_text(SPEC, encoding="utf-8")

    def run(agent: str, *words: str) -> tuple[int, list[str], list[str]]:
        program = tmp_path / "agent.py"
        program.write_text(agent, encoding="utf-8")
        command = ["--", sys.executable, str(program), "Refund order 88213."]
        status = main(["exec", "--spec", str(spec), "--settle", "0.1", "--format", "json", *words, *command])
        told: dict[str, Any] = json.loads(capfd.readouterr().out)
        return status, [found["case"] for found in told["runs"]], told["gate"]["reasons"]

    return run


def command_case(tmp_path: Path) -> str:
    return f"command {case_id(f'{sys.executable} {tmp_path}/agent.py ' + chr(39) + 'Refund order 88213.' + chr(39))}"


def thorough(tmp_path: Path, executions: int) -> str:
    """The agent, in so many of its executions not hasty."""
    counting = f"""
    from pathlib import Path
    made = Path({str(tmp_path / "made")!r})
    count = int(made.read_text()) if made.exists() else 0
    made.write_text(str(count + 1))
    print(answer(sys.argv[1], hasty=count >= {executions}))
"""
    line = '    print(answer(sys.argv[1], hasty="--hasty" in sys.argv))\n'
    assert line in AGENT
    return AGENT.replace(line, counting)


@pytest.mark.slow
@pytest.mark.parametrize(("soft", "failed"), [(1, False), (2, True)])
def test_most_runs_of_a_command_decide_without_its_task(tmp_path: Path, exec_: Exec, soft: int, failed: bool) -> None:
    status, cases, reasons = exec_(thorough(tmp_path, soft), "--runs", "3", "--no-capture")
    case = command_case(tmp_path)
    assert cases == [case] * 3
    assert reasons == ([f"soft: violations in {soft} of 3 runs of case {case}"] if failed else [])
    assert status == failed


TWO_TASKS = AGENT.replace(
    '    print(answer(sys.argv[1], hasty="--hasty" in sys.argv))\n',
    '    answer("Refund order 1.", hasty=True)\n    answer("Refund order 2.")\n',
)


@pytest.mark.slow
def test_a_command_of_several_tasks_keeps_them_apart(tmp_path: Path, exec_: Exec) -> None:
    one, two = case_id("Refund order 1."), case_id("Refund order 2.")
    assert exec_(TWO_TASKS, "--runs", "2") == (
        1,
        [one, two] * 2,
        [f"soft: violations in 2 of 2 runs of case {two}"],
    )
    case = command_case(tmp_path)
    assert exec_(TWO_TASKS, "--runs", "2", "--no-capture") == (
        1,
        [f"{case}, run 1", f"{case}, run 2"] * 2,
        [f"soft: violations in 2 of 2 runs of case {case}, run 2"],
    )


@pytest.mark.slow
def test_a_case_that_was_named_stands(exec_: Exec) -> None:
    assert exec_(AGENT, "--runs", "2", "--no-capture", "--case", "refund")[1] == ["refund", "refund"]
    named = AGENT.replace('{"service.name": "shop"}', '{"luckrate.case": "mine"}')
    assert exec_(named, "--runs", "2", "--no-capture")[1] == ["mine", "mine"]


@pytest.mark.slow
def test_one_execution_alone_groups_nothing(exec_: Exec) -> None:
    _, cases, reasons = exec_(TWO_TASKS, "--no-capture")
    assert len(set(cases)) == 2
    assert reasons == [f"soft: violations in 1 of 1 run of case {cases[1]}"]


# ---- by start --------------------------------------------------------------------------------------

WORDS = ("python", "agent.py", "a b")
NAME = f"command {case_id(chr(39).join(('python agent.py ', 'a b', '')))}"


def run(start_ns: int, task: str | None = None, case: str | None = None) -> Trajectory:
    turns = () if task is None else (Turn(task),)
    return Trajectory(run_id=f"r{start_ns}", start_ns=start_ns, turns=turns, case=case)


@pytest.mark.parametrize(
    ("runs", "started_ns", "cases"),
    [
        pytest.param([], [0, 10], [], id="none"),
        pytest.param([run(1), run(11)], [0, 10], [NAME, NAME], id="one each"),
        pytest.param([run(10), run(20)], [10, 20], [NAME, NAME], id="at the very start"),
        pytest.param([run(1), run(11), run(12)], [0, 10], [f"{NAME}, run {i}" for i in (1, 1, 2)], id="uneven"),
        pytest.param([run(11), run(21)], [0, 10, 20], [NAME, NAME], id="one execution without"),
        pytest.param([run(1, "t"), run(2), run(11, "t"), run(12)], [0, 10], [None, NAME, None, NAME], id="some told"),
        pytest.param([run(1, ""), run(11, case="c")], [0, 10], [NAME, "c"], id="an empty task, a named case"),
        pytest.param([run(1), run(2)], [0], [None, None], id="one execution"),
    ],
)
def test_which_runs_are_of_the_commands_case(
    runs: list[Trajectory], started_ns: list[int], cases: list[str | None]
) -> None:
    assert [found.case for found in with_cases(runs, WORDS, started_ns)] == cases
