from __future__ import annotations

import subprocess
import sys

import luckrate_otel
import luckrate_otel.reports.text  # a module of the package must not hide a public name


def test_the_public_names() -> None:
    assert luckrate_otel.__all__ == ["Spec", "Step", "Turn", "check", "evaluate", "gate", "luck_rate", "report"]
    assert all(callable(getattr(luckrate_otel, name)) for name in luckrate_otel.__all__)


def test_who_only_grades_loads_no_event_loop_and_no_thread_pool() -> None:
    names = "{'asyncio', 'concurrent.futures', 'luckrate_otel.suite'}"
    program = f"import sys, luckrate_otel; print({names} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_other_names_are_not_there() -> None:
    assert not hasattr(luckrate_otel, "evaluates")
