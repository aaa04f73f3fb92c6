"""Which case the runs of a command that was run several times are of, where nothing in their telemetry says it."""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from luckrate_otel.gate import case_id
from luckrate_otel.model import Trajectory


def with_cases(runs: Sequence[Trajectory], words: Sequence[str], started_ns: Sequence[int]) -> tuple[Trajectory, ...]:
    """Runs that neither name their case nor show their task are of the command's own: the same words, the same task.

    runs: by start. words: of the command; a hash stands for them, as they often hold the task. started_ns: when each of
    its executions began. Of a command that makes several such runs the first of each execution are one case, the second
    of each another, and so on: they are not all the same task. One execution alone says nothing of what belongs
    together, and leaves each run its own case, as `check` does.
    """
    if len(started_ns) < 2:
        return tuple(runs)
    untold = [run for run in runs if not (run.case or run.task_input)]
    executions = [bisect_right(started_ns, run.start_ns) for run in untold]
    several = len(set(executions)) < len(executions)
    name = f"command {case_id(shlex.join(words))}"
    seen: Counter[int] = Counter()
    cases: dict[str, str] = {}
    for run, execution in zip(untold, executions, strict=True):
        seen[execution] += 1
        cases[run.run_id] = f"{name}, run {seen[execution]}" if several else name
    return tuple(replace(run, case=cases[run.run_id]) if run.run_id in cases else run for run in runs)
