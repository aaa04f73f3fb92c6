"""Prometheus' own tool accepts the rules and their cases; the rules speak of metrics and headings that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.programs.found import program
from tests.programs.names import unknown_names

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "examples/monitoring/prometheus"
RUNBOOK = (ROOT / "docs/runbook.md").read_text("utf-8")


def read(name: str) -> Any:
    return YAML(typ="safe").load((MONITORING / name).read_text("utf-8"))


RULES = [
    rule for name in ("luckrate-rules.yml", "luckrate-alerts.yml") for g in read(name)["groups"] for rule in g["rules"]
]
ALERTS = [rule for rule in RULES if "alert" in rule]


def promtool(*arguments: str) -> None:
    done = subprocess.run(
        [program("promtool"), *arguments], cwd=MONITORING, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.programs
def test_promtool_takes_the_rules() -> None:
    promtool("check", "rules", "--lint-fatal", "luckrate-rules.yml", "luckrate-alerts.yml")


@pytest.mark.programs
def test_alerts_fire_and_stay_quiet_as_told() -> None:
    promtool("test", "rules", "tests.yml")


def test_every_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    cases = [case for test in read("tests.yml")["tests"] for case in test.get("alert_rule_test", ())]
    fires = {case["alertname"] for case in cases if case["exp_alerts"]}
    quiet = {case["alertname"] for case in cases if not case["exp_alerts"]}
    assert fires == quiet == {rule["alert"] for rule in ALERTS}
    assert len(ALERTS) <= 12  # more than that is noise, and nobody reads it


@pytest.mark.parametrize("rule", ALERTS, ids=[rule["alert"] for rule in ALERTS])
def test_every_alert_leads_to_its_heading(rule: Any) -> None:
    assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
    assert f"\n## {rule['alert']}\n" in RUNBOOK
    assert rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in {"warning", "critical"}


def test_no_heading_is_left_of_an_alert_that_is_gone() -> None:
    assert set(re.findall(r"^## (Luck\w+)$", RUNBOOK, re.MULTILINE)) == {rule["alert"] for rule in ALERTS}


@pytest.mark.parametrize("rule", RULES, ids=[rule.get("alert") or rule["record"] for rule in RULES])
def test_rules_read_only_what_exists(rule: Any) -> None:
    recorded = {rule["record"] for rule in RULES if "record" in rule}
    assert unknown_names(rule["expr"], recorded) == set()
