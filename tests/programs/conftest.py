"""One scene for all tests that only look at it: it takes half a minute to set. What is skipped is one line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.programs.found import program
from tests.programs.scene import PROGRAMS, Seen, scene

# The fixtures that several tests share, and the programs that each starts.
_NEEDS = {"seen": PROGRAMS, "parser": ("prometheus",), "stored": ("jaeger",)}


def pytest_runtest_setup(item: pytest.Function) -> None:
    """Skip here what would be skipped in the fixture: pytest then folds all skips into one line of its summary."""
    for fixture, names in _NEEDS.items():
        if fixture in item.fixturenames:
            for name in names:
                program(name)


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with scene(tmp_path_factory.mktemp("scene")) as ready:
        yield ready
