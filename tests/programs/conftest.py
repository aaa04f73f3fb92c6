"""One scene for all tests that only look at it: it takes half a minute to set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.programs.scene import Seen, scene


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with scene(tmp_path_factory.mktemp("scene")) as ready:
        yield ready
