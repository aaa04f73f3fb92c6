"""docs/code.md names files that exist, and every part that the package has."""

import re
from pathlib import Path

import luckrate_otel

ROOT = Path(__file__).parents[2]
PACKAGE = Path(luckrate_otel.__file__).parent
PAGE = (ROOT / "docs/code.md").read_text("utf-8")
PATHS = {path for path in re.findall(r"`([\w/.]+?(?:\.py|/))`", PAGE) if not path.startswith("src/")}


def test_what_it_names_exists() -> None:
    service = PACKAGE / "service"
    places = (PACKAGE, service, *(path for path in service.iterdir() if path.is_dir()), ROOT)
    assert [path for path in PATHS if not any((place / path).exists() for place in places)] == []


def test_it_names_every_part() -> None:
    parts = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - PATHS == {"__init__.py", "__main__.py"}
