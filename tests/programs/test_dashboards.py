"""The dashboards are what their code makes, ask only for what exists, and every query of theirs runs in Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.programs.found import program
from tests.programs.lint import panels
from tests.programs.names import labels, unknown_names
from tests.programs.running import until
from tests.programs.scene import GREEN, LUCKY, Seen

MONITORING = Path(__file__).parents[2] / "examples/monitoring"
DASHBOARDS = {
    file.name: json.loads(file.read_text("utf-8")) for file in sorted((MONITORING / "grafana").glob("*.json"))
}
RECORDED = re.findall(r"record: (\S+)", (MONITORING / "prometheus/luckrate-rules.yml").read_text("utf-8"))

VALUES = {"$__range": "1h", "$__rate_interval": "1h", "$spec": ".*", "$job": "luckrate-otel", "$instance": ".+"}

# What a fresh system without trouble has nothing to show of.
EMPTY = {"Revised verdicts", "Runs not graded", "Soft majority"}


PANELS = [pytest.param(panel, id=panel["title"]) for board in DASHBOARDS.values() for panel in panels(board)]
QUERIES = [
    pytest.param(panel["title"], target["expr"], id=f"{panel['title']} {target['refId']}")
    for board in DASHBOARDS.values()
    for panel in panels(board)
    for target in panel["targets"]
    if "expr" in target
]


def written_out(expression: str) -> str:
    """With values for Grafana's variables."""
    for variable, value in VALUES.items():
        expression = expression.replace(variable, value)
    return expression


@pytest.mark.programs
def test_they_are_what_their_code_makes() -> None:
    command = [program("tools"), "dashboards.py", "--check"]
    done = subprocess.run(command, cwd=MONITORING, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", DASHBOARDS)
def test_variables_and_ids(name: str) -> None:
    board = DASHBOARDS[name]
    used = set(re.findall(r"\$\{?([a-z]\w+)", json.dumps(board["panels"])))
    assert used == {variable["name"] for variable in board["templating"]["list"]}
    ids = [panel["id"] for panel in panels(board) if panel.get("id")]
    assert len(ids) == len(set(ids))
    assert board["uid"]


@pytest.mark.parametrize("panel", PANELS)
def test_each_panel_says_what_it_shows_and_that_there_is_nothing(panel: Any) -> None:
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["noValue"] == "—"
    assert panel["targets"]
    legends = " ".join(target.get("legendFormat", "") for target in panel["targets"])
    assert set(re.findall(r"\{\{(\w+)\}\}", legends)) <= labels()


@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_each_query_asks_only_for_what_exists(title: str, expression: str) -> None:
    assert unknown_names(expression, RECORDED) == set(), title


@pytest.mark.programs
@pytest.mark.parametrize(("title", "expression"), QUERIES)
def test_each_query_runs(seen: Seen, title: str, expression: str) -> None:
    if title in EMPTY:
        assert seen.prometheus.query(written_out(expression)) == []
    else:
        until(lambda: seen.prometheus.query(written_out(expression)), 20, what=lambda: expression)


# Values a minute, and what "Violations by tool" says of them after two hours with a range of one.
BARS = {
    "new in the range": ("x", "_x90 3x40", {"x": 3}),
    "grew in the range": ("x", "3x90 5x40", {"x": 2}),
    "old, and one scrape failed an hour ago": ("x", "3x59 stale 3x70", {}),
    # A rule that no single call breaks has no tool, and a bar has a name all the same.
    "of the run as a whole": ("", "_x90 3x40", {"the run": 3}),
}


@pytest.mark.programs
@pytest.mark.parametrize("case", BARS)
def test_a_bar_has_a_name_and_counts_what_is_of_its_range(tmp_path: Path, case: str) -> None:
    tool, values, bars = BARS[case]
    (asked,) = [str(param.values[1]) for param in QUERIES if param.values[0] == "Violations by tool"]
    series = f'luckrate_violations_total{{luckrate_spec_name="s", luckrate_rule="r", gen_ai_tool_name="{tool}"}}'
    told = [{"labels": f'{{gen_ai_tool_name="{name}"}}', "value": count} for name, count in bars.items()]
    query = {"expr": f"round({written_out(asked)}, 1)", "eval_time": "2h", "exp_samples": told}
    test = {
        "interval": "1m",
        "input_series": [{"series": series, "values": values}],
        "promql_expr_test": [query],
    }
    (tmp_path / "tests.yml").write_text(json.dumps({"tests": [test]}), encoding="utf-8")
    command = [program("promtool"), "test", "rules", "tests.yml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.programs
def test_the_number_is_the_truth(seen: Seen) -> None:
    (rate,) = [param.values[1] for param in QUERIES if param.values[0] == "Luck Rate"]
    assert isinstance(rate, str)
    truth = pytest.approx(LUCKY / GREEN, abs=0.005)
    until(lambda: seen.prometheus.number(written_out(rate)) == truth, what=lambda: rate)


@pytest.mark.programs
def test_nothing_green_is_a_dash_and_not_a_zero(seen: Seen) -> None:
    rates = {"Luck Rate", "at least (95 %)", "at most (95 %)", "green runs", "lucky runs", "unverified runs"}
    asked = [str(param.values[1]) for param in QUERIES if param.values[0] in rates]
    assert len(asked) == len(rates)
    for expression in asked:
        of_no_spec = expression.replace("$spec", "none")
        assert seen.prometheus.query(written_out(of_no_spec)) == []
