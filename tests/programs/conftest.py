"""One scene for all tests that only look at it: it takes half a minute to set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.programs.found import program
from tests.programs.scene import PROGRAMS, Seen, scene


def pytest_runtest_setup(item: pytest.Function) -> None:
    """Skip here what would be skipped in the fixture: pytest then folds all skips into one line of its summary."""
    if "seen" in item.fixturenames:
        for name in PROGRAMS:
            program(name)


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with scene(tmp_path_factory.mktemp("scene")) as ready:
        yield ready
