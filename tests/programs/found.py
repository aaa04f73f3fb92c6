"""Where the real programs are, and what a test does without them."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.programs.build import PROGRAMS

# With this set, as in continuous integration, a program that is absent fails the test that wants it.
REQUIRE = "LUCKRATE_REQUIRE_PROGRAMS"

# Environments are ours alone; a binary of that name on PATH may be some other program (`tools`, `langgraph`).
_FROM_PATH = {"otelcol", "jaeger", "prometheus", "promtool", "telemetrygen"}

# One sentence for all, so that the summary of a test run folds every skip into one line.
_ABSENT = "the real programs are not built; `make programs` builds them (needs Go)"


def program(name: str) -> str:
    """The path of a program's executable; skips the test if there is none."""
    executable = PROGRAMS[name].executable
    if executable.exists():
        return str(executable)
    on_path = shutil.which(name) if name in _FROM_PATH else None
    if on_path:
        return on_path
    if os.environ.get(REQUIRE):
        pytest.fail(f"{name} is required and not built: make programs", pytrace=False)
    pytest.skip(_ABSENT)
