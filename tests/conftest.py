"""What holds for every test."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is. What a call may cost is measured in benchmarks/.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# A shell that starts the tests in the background has them ignore Ctrl-C, and every process that they start as well.
# What is tested is a process that can be interrupted.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# By name, as the package shows the function `load` in the module's place.
LOADING = import_module("luckrate_otel.config.load")


@pytest.fixture(autouse=True)
def _no_journal_outside_the_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`serve` keeps a journal where the system keeps state; a test that names no place gets one of its own."""
    with TemporaryDirectory(prefix="luckrate-test-") as folder:
        monkeypatch.setenv("STATE_DIRECTORY", folder)  # for the processes that a test starts

        def in_folder(_environ: Mapping[str, str]) -> Path:
            return Path(folder) / "state"

        monkeypatch.setattr(LOADING, "state_folder", in_folder)
        yield
