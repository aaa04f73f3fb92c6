"""The examples in docs/configuration.md load; test_tables.py holds its tables to the code."""

import re
from pathlib import Path

import pytest

from luckrate_otel.config import parse

PAGE = (Path(__file__).parents[2] / "docs/configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
ENVIRON = {"LUCKRATE_TOKEN": "t", "BACKEND_KEY": "k"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_load(example: str) -> None:
    parse(example, "example.yaml", ENVIRON)
