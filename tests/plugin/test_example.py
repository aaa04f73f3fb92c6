"""examples/ci as a user runs it: the agent's test, and the same agent in a hurry."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import luckrate_otel.pytest_plugin
import luckrate_otel.sdk.collect  # noqa: F401 - shared with the inner session

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples/ci"


@pytest.mark.parametrize(("hasty", "passed"), [(False, 3), (True, 0)])
def test_the_example(pytester: pytest.Pytester, hasty: bool, passed: int) -> None:
    for name in ("agent.py", "refunds.yaml", "test_agent.py"):
        shutil.copy(EXAMPLE / name, pytester.path / name)
    if hasty:
        test = pytester.path / "test_agent.py"
        test.write_text(test.read_text("utf-8").replace('"Refund order 88213."', '"Refund order 88213.", hasty=True'))
    pytester.syspathinsert()
    result = pytester.runpytest_inprocess(
        *("-p", "no:luckrate_otel", "-p", "luckrate_otel.pytest_plugin", "-p", "no:randomly", "-p", "no:cacheprovider")
    )
    result.assert_outcomes(passed=passed, failed=3 - passed)
    assert any(line == f"test_agent.py::test_refund: 3 {'lucky' if hasty else 'pass'}" for line in result.outlines)
