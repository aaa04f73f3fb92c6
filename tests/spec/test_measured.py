"""The benchmark of `spec infer` works; it measures nothing on what the tests have."""

from __future__ import annotations

from benchmarks.inferred import measure, row
from tests.spec.test_infer import RUNS


def test_every_run_is_held_out_once_and_every_kind_of_mutant_made() -> None:
    found = measure(RUNS)
    assert (found.runs, dict(found.rules)) == (25, {"max_tokens": 2})
    assert row("shop", found) == (
        "| shop | 2 of 25 (8%), 2% to 25% | 69 of 69 (100%) | 69 of 69 (100%) | 46 of 46 (100%) | 69 of 69 (100%) "
        "| 253 of 253 (100%) |"
    )
