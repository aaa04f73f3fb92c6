"""Every dashboard passes the linter but for what `.lint` excludes with a reason, and the linter sees what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.programs.backends import Prometheus, prometheus
from tests.programs.lint import Finding, lint, panels

pytestmark = pytest.mark.programs

GRAFANA = Path(__file__).parents[2] / "examples/monitoring/grafana"
BOARDS = {file.name: json.loads(file.read_text("utf-8")) for file in sorted(GRAFANA.glob("*.json"))}
EXCLUDED = YAML(typ="safe").load((GRAFANA / ".lint").read_text("utf-8"))["exclusions"]
CLEAN = BOARDS["luckrate-processor.json"]


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus without data: only its parser is asked."""
    folder = tmp_path_factory.mktemp("parser")
    (folder / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
    with prometheus(folder, folder / "prometheus.yml") as ready:
        yield ready


def excluding(finding: Finding) -> list[tuple[str, int]]:
    """The exclusions that a finding falls under: rule, and index of its entry."""
    said = {"dashboard": finding.dashboard, "panel": finding.panel}
    entries = EXCLUDED.get(finding.rule, {}).get("entries", ())
    return [(finding.rule, i) for i, entry in enumerate(entries) if entry.items() <= said.items()]


def test_dashboards_pass(parser: Prometheus) -> None:
    found = [finding for board in BOARDS.values() for finding in lint(board, parser.parse)]
    assert [finding for finding in found if not excluding(finding)] == []
    needed = {exclusion for finding in found for exclusion in excluding(finding)}
    assert needed == {(rule, i) for rule, excluded in EXCLUDED.items() for i in range(len(excluded["entries"]))}


def test_every_exclusion_has_its_reason() -> None:
    assert [rule for rule, excluded in EXCLUDED.items() if not excluded.get("reason")] == []


# ---- the linter itself -------------------------------------------------------------------------


def first(board: Any) -> Any:
    return next(panels(board))


def variable(board: Any, name: str) -> Any:
    return next(one for one in board["templating"]["list"] if one["name"] == name)


def ask(expression: str) -> Callable[[Any], None]:
    def change(board: Any) -> None:
        first(board)["targets"][0]["expr"] = expression

    return change


HERE = 'job=~"$job", instance=~"$instance"'
BROKEN: dict[str, tuple[Callable[[Any], object], set[str]]] = {
    "name of the source": (
        lambda board: variable(board, "prometheus_datasource").update(name="metrics"),
        # Nothing that asks by the old name has a source any more.
        {"template-datasource-rule", "panel-datasource-rule"},
    ),
    "label of the source": (
        lambda board: variable(board, "prometheus_datasource").update(label="Metrics"),
        {"template-datasource-rule"},
    ),
    "no job": (lambda board: variable(board, "job").update(name="jobs"), {"template-job-rule"}),
    "one instance": (lambda board: variable(board, "instance").update(multi=False), {"template-instance-rule"}),
    "choices of yesterday": (
        lambda board: variable(board, "job").update(refresh=1),
        {"template-on-time-change-reload-rule"},
    ),
    "choices of no query": (
        lambda board: variable(board, "job").update(query="label_values(luckrate_open_runs{, job)"),
        {"template-label-promql-rule"},
    ),
    "editable": (lambda board: board.update(editable=True), {"uneditable-dashboard-rule"}),
    "a source by its id": (
        lambda board: first(board)["targets"][0]["datasource"].update(uid="prometheus"),
        {"panel-datasource-rule"},
    ),
    "no description": (lambda board: first(board).pop("description"), {"panel-title-description-rule"}),
    "no unit": (lambda board: first(board)["fieldConfig"]["defaults"].pop("unit"), {"panel-units-rule"}),
    "an unknown unit": (
        lambda board: first(board)["fieldConfig"].update(
            overrides=[{"properties": [{"id": "unit", "value": "furlongs"}]}]
        ),
        {"panel-units-rule"},
    ),
    "no query": (lambda board: first(board).update(targets=[]), {"panel-no-targets-rule"}),
    "no PromQL": (ask("sum(luckrate_open_runs"), {"target-promql-rule"}),
    "no job in the query": (ask('luckrate_open_runs{instance=~"$instance"}'), {"target-job-rule"}),
    "another job": (ask('luckrate_open_runs{job="$job", instance=~"$instance"}'), {"target-job-rule"}),
    "no instance in one side": (
        ask(f'luckrate_open_runs{{{HERE}}} / luckrate_held_spans{{job=~"$job"}}'),
        {"target-instance-rule"},
    ),
    "a fixed interval": (ask(f"rate(luckrate_late_spans_total{{{HERE}}}[5m])"), {"target-rate-interval-rule"}),
    "a bare counter": (ask(f"sum(luckrate_late_spans_total{{{HERE}}})"), {"target-counter-agg-rule"}),
    "a bare bucket": (
        ask(f"histogram_quantile(0.9, luckrate_run_steps_bucket{{{HERE}}})"),
        {"target-counter-agg-rule"},
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_found(parser: Prometheus, name: str) -> None:
    change, rules = BROKEN[name]
    board = deepcopy(CLEAN)
    change(board)
    assert {finding.rule for finding in lint(board, parser.parse)} == rules


@pytest.mark.parametrize(
    "expression",
    [
        f"rate(luckrate_late_spans_total{{{HERE}}}[$__rate_interval])",
        f"increase(luckrate_late_spans_total{{{HERE}}}[$__range])",
        f"max_over_time(luckrate_open_runs{{{HERE}}}[1h])",
    ],
)
def test_what_is_right_is_not(parser: Prometheus, expression: str) -> None:
    board = deepcopy(CLEAN)
    ask(expression)(board)
    assert lint(board, parser.parse) == []
