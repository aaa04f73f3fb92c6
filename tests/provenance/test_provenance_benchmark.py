"""The benchmark runs on the sample, and what it prints about the self-made set is pinned."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks is not installed

from benchmarks.provenance.measures import Share  # noqa: E402


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks.provenance", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 0, "—"),
        (0, 10, "  0.0%  0/10  [0.0%, 27.8%]"),
        (5, 10, " 50.0%  5/10  [23.7%, 76.3%]"),
        (10, 10, "100.0%  10/10  [72.2%, 100.0%]"),
    ],
)
def test_shares_carry_a_wilson_interval(part: int, whole: int, shown: str) -> None:
    assert str(Share(part, whole)) == shown


@pytest.mark.slow
def test_the_sample_is_measured_beside_the_baseline() -> None:
    done = bench("--no-timing")
    assert (done.returncode, done.stderr) == (0, "")
    rows = {
        cells[1].strip(): cells[3].strip() for line in done.stdout.splitlines() if len(cells := line.split("|")) > 4
    }
    assert rows["injected calls, hard: recall"] == "100.0%  9/9  [70.1%, 100.0%]"
    assert rows["attack-free runs with a hard taint finding"] == "0.0%  0/6  [0.0%, 39.0%]"
    assert rows["made-up ids found: tau"] == "100.0%  15/15  [79.6%, 100.0%]"
    assert rows["argument leaves inspected: agentdyn"] == "100.0%  244/244  [98.5%, 100.0%]"
    assert rows["mutated flows found (hard)"] == "100.0%  900/900  [99.6%, 100.0%]"
    assert rows["clean twins with a hard finding"] == "0.0%  0/720  [0.0%, 0.5%]"
    assert rows["calculated amounts with a warning"] == "0.0%  0/45  [0.0%, 7.9%]"
    assert rows["other amounts with a warning"] == "100.0%  45/45  [92.1%, 100.0%]"
    assert rows["changes missed"] == "none"


def test_a_folder_without_runs_is_one_clear_line(tmp_path: Path) -> None:
    done = bench(str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{tmp_path}: no runs in {tmp_path}\n"
