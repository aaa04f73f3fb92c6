"""Every configuration that a page shows loads; test_tables.py holds the tables of docs/configuration.md to the code."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from luckrate_otel.config import Config, parse

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    example
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for example in re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    if re.search(r"^destinations:", example, re.MULTILINE)
]
ENVIRON = {"LUCKRATE_TOKEN": "t", "BACKEND_KEY": "k"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_load(example: str) -> None:
    parse(example, "example.yaml", ENVIRON)


def test_the_whole_file_has_every_section() -> None:
    page = (ROOT / "docs/configuration.md").read_text("utf-8")
    (whole,) = re.findall(r"^## A whole file\n\n```yaml\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    left_out = {"verdict_spans", "source"}  # the first is for `mode: tap` alone, the second is no key
    assert set(re.findall(r"^(\w+):", whole, re.MULTILINE)) == {each.name for each in fields(Config)} - left_out
