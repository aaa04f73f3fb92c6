"""The run that README.md opens with is one of the demo's, graded with the spec that README.md shows."""

import re
from pathlib import Path

import pytest

import luckrate_otel.demo
from luckrate_otel import cli

PAGE = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
CAPTURE = Path(luckrate_otel.demo.__file__).parent / "captures/langgraph-s4.jsonl.gz"


def test_the_run_is_graded_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    (spec,) = re.findall(r"```yaml\n# refunds.yaml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "refunds.yaml"
    file.write_text(spec, encoding="utf-8")
    cli.main(["check", str(CAPTURE), "--spec", str(file), "--show-values"])
    printed = capsys.readouterr().out.splitlines()
    for line in shown.splitlines():  # one that is cut short ends on …
        assert any(each.startswith(line.removesuffix("…")) for each in printed), line
