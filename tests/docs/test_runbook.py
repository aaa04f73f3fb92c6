"""docs/runbook.md has every alert and every answer of a next hop; tests/programs/test_rules.py has the rest."""

import re
from pathlib import Path
from typing import Any

from luckrate_otel.document import read_yaml
from luckrate_otel.service.send.replies import Kind

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/runbook.md").read_text("utf-8")
ALERTS = ROOT / "examples/monitoring/prometheus/luckrate-alerts.yml"


def test_the_first_table_has_each_alert_with_its_severity() -> None:
    groups: Any = read_yaml(ALERTS.read_text("utf-8"), str(ALERTS)).value
    rules = {rule["alert"]: rule["labels"]["severity"] for group in groups["groups"] for rule in group["rules"]}
    rows = re.findall(r"^\| \[(\w+)\]\(#(\w+)\) \| (\w+) \|", PAGE, re.MULTILINE)
    assert {name: severity for name, _, severity in rows} == rules
    assert all(anchor == name.lower() for name, anchor, _ in rows)


def test_each_alert_ends_on_what_to_do() -> None:
    parts = re.split(r"^## (Luck\w+)$", PAGE, flags=re.MULTILINE)[1:]
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        assert "**Means** " in text, name
        assert "**Do** " in text or "**Do**\n" in text or "| do |" in text, name


def test_every_reason_for_a_loss_has_its_row() -> None:
    reasons = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert reasons == {*Kind} - {Kind.SENT, Kind.RETRY} | {"partial_success"}
