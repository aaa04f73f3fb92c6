"""docs/configuration.md says of every key what the code says of it, and its examples load."""

import re
from pathlib import Path

import pytest

from luckrate_otel.config import Key, keys, parse

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
ENVIRON = {"LUCKRATE_TOKEN": "t", "BACKEND_KEY": "k"}


@pytest.mark.parametrize(("path", "key"), keys().items(), ids=keys())
def test_each_key_has_its_row(path: str, key: Key) -> None:
    default = f"`{key.default}`" if key.default else "—"
    assert f"| `{path}` | {key.kind.label} | {default} | {key.meaning} | {key.reason or '—'} |" in PAGE.splitlines()


def test_no_row_is_left_of_a_key_that_is_gone() -> None:
    assert set(re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)) == set(keys())


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_load(example: str) -> None:
    parse(example, "example.yaml", ENVIRON)
