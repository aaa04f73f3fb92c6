"""A span that gets lost, by a full queue or a process that dies, must not make two runs of one."""

from __future__ import annotations

import pytest

from luckrate_otel.batch import trajectories
from tests.captured import CASES, Case, telemetry


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_span_that_gets_lost_splits_a_captured_run(case: Case) -> None:
    """Each span in turn."""
    spans, logs = telemetry(case)
    whole = len(trajectories(spans, logs))
    for at, lost in enumerate(spans):
        assert len(trajectories(spans[:at] + spans[at + 1 :], logs)) <= whole, lost.head.name
