"""docs/reports.md names every key of the JSON report, which is a public contract."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reports.md").read_text("utf-8").partition("\n## The JSON report\n")[2].partition("\n## ")[0]
CAPTURE = ROOT / "tests/traces/langgraph-openinference/s3.traces.jsonl"


def keys(value: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Down to the keys of a run; what is in its lists and mappings is told in words."""
    for name, item in value.items():
        if name in {"runs", "luck_rate", "gate"} and not path:
            yield from keys(item[0] if isinstance(item, list) else item, f"{name}{'[]' * isinstance(item, list)}.")
        else:
            lists_objects = name in {"steps", "violations", "not_evaluated", "vacuous"}
            yield f"{path}{name}{'[]' * lists_objects}"


@pytest.fixture
def report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    spec = tmp_path / "spec.json"
    spec.write_text('{"forbidden": ["issue_refund"]}', encoding="utf-8")
    cli.main(["check", str(CAPTURE), "--spec", str(spec), "--format", "json"])
    return json.loads(capsys.readouterr().out)


def test_every_key_has_its_row(report: Any) -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    assert {key for row in rows for key in re.findall(r"`(.+?)`", row)} == set(keys(report))


def test_what_a_violation_and_coverage_hold_is_told(report: Any) -> None:
    (run,) = report["runs"]
    for row, value in (("violations[]", run["violations"][0]), ("coverage", run["coverage"])):
        (told,) = re.findall(rf"^\| `runs\[\]\.{re.escape(row)}` \| (.*?) \|$", PAGE, re.MULTILINE)
        assert set(re.findall(r"`(\w+)`", told)) == set(value)
