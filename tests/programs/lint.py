"""A linter for Grafana dashboards with Prometheus queries.

The rules have the names, and ask for what the documentation says, of the rules of Grafana's dashboard linter, whose
module could not be had; so a `.lint` file of its form names what is excluded, and why. Queries are read as Prometheus'
own parser reads them, not by pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from luckrate_otel.vocabulary import METRICS, Kind
from tests.programs.names import series

Parse = Callable[[str], Any]
"""PromQL → syntax tree, None if it is none."""


@dataclass(frozen=True)
class Finding:
    """panel: "" for what is said of the dashboard."""

    rule: str
    dashboard: str
    panel: str
    message: str


@dataclass(frozen=True)
class Selected:
    """What a query selects. function: the innermost that is applied to it. span: its range in ms, 0 if it has none."""

    metric: str
    labels: Mapping[str, str]
    function: str
    span: int


# Grafana puts lengths in where these variables are; here ones that nobody writes, so that they are known again.
_LENGTHS = {"$__rate_interval": "11m", "$__range": "13h"}
_RATE_INTERVAL = 11 * 60_000
# Of Grafana's units, those that are in use here.
UNITS = frozenset({"short", "percentunit", "bytes", "s", "none"})
_COUNTERS = {
    name
    for metric in METRICS
    if metric.kind is not Kind.GAUGE
    for name in series(metric)
}  # fmt: skip


def lint(board: Any, parse: Parse) -> list[Finding]:
    """Everything that the rules find in one dashboard."""
    found = [
        Finding(rule, board["title"], "", message) for rule, check in OF_BOARDS.items() for message in check(board)
    ]
    found += [Finding("template-label-promql-rule", board["title"], "", text) for text in _label_queries(board, parse)]
    for panel in panels(board):
        said = [(rule, message) for rule, check in OF_PANELS.items() for message in check(board, panel)]
        for target in panel.get("targets", ()):
            if "expr" in target:
                said += _of_query(target["expr"], parse)
        found += [Finding(rule, board["title"], panel.get("title", ""), message) for rule, message in said]
    return found


def panels(board: Any) -> Iterator[Any]:
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", ())
        else:
            yield panel


# ---- rules of a dashboard ----------------------------------------------------------------------


def _variables(board: Any, kind: str) -> list[Any]:
    return [variable for variable in board["templating"]["list"] if variable["type"] == kind]


def _datasources(board: Any) -> Iterator[str]:
    sources = _variables(board, "datasource")
    if not sources:
        yield "no variable chooses the data source"
    for variable in sources:
        kind = variable["query"]
        if variable["name"] != f"{kind}_datasource":
            yield f"the variable {variable['name']} should be {kind}_datasource"
        if variable.get("label") != f"{kind.title()} data source":
            yield f"the label of {variable['name']} should be {kind.title()} data source"


def _needs(name: str) -> Callable[[Any], Iterator[str]]:
    def check(board: Any) -> Iterator[str]:
        found = [variable for variable in _variables(board, "query") if variable["name"] == name]
        if not found:
            yield f"no variable {name}"
        for variable in found:
            wanted = {"label": name, "multi": True, "includeAll": True, "allValue": ".+"}
            if any(variable.get(key) != value for key, value in wanted.items()):
                yield f"the variable {name} should be labelled so, take several values, and all as .+"

    return check


def _reloads(board: Any) -> Iterator[str]:
    for variable in _variables(board, "query"):
        if variable.get("refresh") != 2:
            yield f"the variable {variable['name']} should be asked again when the time range changes"


def _editable(board: Any) -> Iterator[str]:
    if board.get("editable", True):
        yield "it can be edited by hand, and the next provisioning undoes that"


OF_BOARDS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "template-datasource-rule": _datasources,
    "template-job-rule": _needs("job"),
    "template-instance-rule": _needs("instance"),
    "template-on-time-change-reload-rule": _reloads,
    "uneditable-dashboard-rule": _editable,
}


def _label_queries(board: Any, parse: Parse) -> Iterator[str]:
    for variable in _variables(board, "query"):
        asked = re.fullmatch(r"label_values\((.+), \w+\)", variable["query"])
        if asked is None or parse(asked[1]) is None:
            yield f"the variable {variable['name']} asks what is no query: {variable['query']}"


# ---- rules of a panel --------------------------------------------------------------------------


def _templated(board: Any, panel: Any) -> Iterator[str]:
    known = {f"${{{variable['name']}}}" for variable in _variables(board, "datasource")}
    for asks in (panel, *panel.get("targets", ())):
        uid = (asks.get("datasource") or {}).get("uid")
        if uid not in known:
            yield f"the data source {uid} is none of the dashboard's variables"


def _described(_board: Any, panel: Any) -> Iterator[str]:
    for key in ("title", "description"):
        if not panel.get(key):
            yield f"no {key}"


def _measured(_board: Any, panel: Any) -> Iterator[str]:
    overrides = [one for override in panel["fieldConfig"].get("overrides", ()) for one in override["properties"]]
    units = {panel["fieldConfig"]["defaults"].get("unit"), *(o["value"] for o in overrides if o["id"] == "unit")}
    for unit in units - UNITS:
        yield f"the unit {unit} is none of Grafana's"


def _asking(_board: Any, panel: Any) -> Iterator[str]:
    if not panel.get("targets"):
        yield "it asks nothing"


OF_PANELS: Mapping[str, Callable[[Any, Any], Iterator[str]]] = {
    "panel-datasource-rule": _templated,
    "panel-title-description-rule": _described,
    "panel-units-rule": _measured,
    "panel-no-targets-rule": _asking,
}


# ---- rules of a query --------------------------------------------------------------------------


def _of_query(expression: str, parse: Parse) -> list[tuple[str, str]]:
    written_out = expression
    for variable, length in _LENGTHS.items():
        written_out = written_out.replace(variable, length)
    tree = parse(written_out)
    if tree is None:
        return [("target-promql-rule", f"no PromQL: {expression}")]
    return [
        (rule, f"{message}: {expression}")
        for selected in _selections(tree)
        for rule, check in OF_SELECTIONS.items()
        for message in check(selected)
    ]


def _selections(tree: Any, function: str = "") -> Iterator[Selected]:
    """Every selector of a tree."""
    if isinstance(tree, list):
        for item in tree:
            yield from _selections(item, function)
    elif isinstance(tree, dict):
        if "matchers" in tree:
            labels = {one["name"]: f"{one['type']}{one['value']}" for one in tree["matchers"]}
            yield Selected(tree["name"], labels, function, tree.get("range", 0))
            return
        name = tree["func"]["name"] if tree.get("type") == "call" else function
        for item in tree.values():
            yield from _selections(item, name)


def _interval(selected: Selected) -> Iterator[str]:
    if selected.function in {"rate", "irate"} and selected.span != _RATE_INTERVAL:
        yield f"the rate of {selected.metric} should be over $__rate_interval"


def _aggregated(selected: Selected) -> Iterator[str]:
    counted = selected.function in {"rate", "irate", "increase"} and selected.span
    if selected.metric in _COUNTERS and not counted:
        yield f"the counter {selected.metric} is read as it stands"


def _matches(label: str) -> Callable[[Selected], Iterator[str]]:
    def check(selected: Selected) -> Iterator[str]:
        if selected.labels.get(label) != f"=~${label}":
            yield f'{selected.metric} is not asked for with {label}=~"${label}"'

    return check


OF_SELECTIONS: Mapping[str, Callable[[Selected], Iterator[str]]] = {
    "target-rate-interval-rule": _interval,
    "target-counter-agg-rule": _aggregated,
    "target-job-rule": _matches("job"),
    "target-instance-rule": _matches("instance"),
}
