"""docs/spec.md: its examples run, and it names every rule and key there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from luckrate_otel.facts import Gap
from luckrate_otel.model import VerdictLabel
from luckrate_otel.provenance.engines import ENGINES
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import ALIASES, GENERAL, KEYS, Spec

TEXT = (Path(__file__).parents[2] / "docs" / "spec.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^###? (.+?)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL))


def blocks(language: str, text: str = TEXT) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_python_examples_run_in_order() -> None:
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, block, "exec"), names)
    assert len(blocks("python")) > len(RULES)


def test_the_yaml_example_loads() -> None:
    (block,) = blocks("yaml")
    spec = Spec.from_mapping(YAML(typ="safe").load(block))
    assert {rule.id for rule in RULES.values() if spec.writes(rule) or rule.default_on} == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_has_a_section_with_an_example_that_breaks_it(rule: str) -> None:
    assert any("for v in verdict.violations] == [" in example for example in blocks("python", SECTIONS[rule]))


def test_the_table_of_rules_is_the_table_in_the_code() -> None:
    on = {"no_repeat": "when true", "definitions": "when true", "taint": "when both lists are written"}
    assert re.findall(r"^\| `.*$", SECTIONS["Rules"], re.MULTILINE) == [
        f"| `{rule.id}` | {', '.join(f'`{key.name}`' for key in rule.keys)} | {rule.severity} | "
        f"{'by default' if rule.default_on else on.get(rule.id, 'when written')} |"
        for rule in sorted(RULES.values(), key=lambda rule: rule.default_on)
    ]


def test_every_key_is_documented() -> None:
    others = re.findall(r"^\| `(\w+)` \|", SECTIONS["Other keys"], re.MULTILINE)
    assert sorted(others) == sorted([*(key.name for key in GENERAL), ALIASES])
    of_rules = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| `.*?\| (.*?) \|", SECTIONS["Rules"], re.MULTILINE)))
    assert sorted({*of_rules, *others}) == sorted([*KEYS, ALIASES])


def test_every_engine_is_documented_and_the_first_is_the_default() -> None:
    first, *others = (f"`{name}`" for name in ENGINES)
    row = next(line for line in TEXT.splitlines() if line.startswith("| `provenance`"))
    assert row == f"| `provenance` | engine of `ground` and `taint`: {first} or {' or '.join(others)} | {first} |"


def test_every_verdict_and_reason_is_documented() -> None:
    concepts = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text(encoding="utf-8")
    verdicts = concepts.partition("\n## Verdicts\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", verdicts, re.MULTILINE) == [
        "not_graded",
        "fail",
        "unknown",
        "lucky",
        "unverified",
        "pass",
    ]
    assert set(VerdictLabel) == {"not_graded", "fail", "unknown", "lucky", "unverified", "pass"}
    assert set(Gap) <= set(re.findall(r"`(\w+)`", SECTIONS["States of a rule"]))
    (reasons,) = re.findall(r"The reasons are (.*?)[.;]", concepts, re.DOTALL)
    assert re.findall(r"`(\w+)`", reasons) == [str(gap) for gap in Gap]
