"""Every `luckrate.*` name that a page, a recipe or a configuration mentions is one that is really sent or read."""

import re
from pathlib import Path

import pytest

from luckrate_otel.service.verdict_span import NAME
from luckrate_otel.vocabulary import ATTRIBUTES, METRICS, VIOLATION_EVENT

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file
    for pattern in ("docs/*.md", "collector-config/**/*", "examples/**/*.md", "examples/**/*.y*ml", "README.md")
    for file in ROOT.glob(pattern)
    if file.is_file()
)
SENT = {item.name for item in (*ATTRIBUTES, *METRICS)} | {name for metric in METRICS for name in metric.attributes}
# What users set themselves, and the name by which verdicts are told as evaluations.
READ = {"luckrate.case", "luckrate.path"}
NAMES = re.compile(r"(?<![\w./-])(?:span\.|event\.)?(luckrate\.[a-z_]+(?:\.[a-z_]+)*)(?![\w(])")  # not calls
NOT_NAMES = re.compile(r"\.(yaml|yml|json|md|svg|db|sqlite|toml|xml|sarif|report)$")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_names_exist(file: Path) -> None:
    found = NAMES.findall(file.read_text("utf-8"))
    names = {name for name in found if not NOT_NAMES.search(name)}
    groups = {name.rsplit(".", 1)[0] for name in SENT}  # `luckrate.violation_count.hard/.soft`
    assert names - SENT - READ - groups - {NAME, VIOLATION_EVENT} == set()
