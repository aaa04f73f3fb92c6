"""What both dashboards are made of: the data sources, one function for each kind of panel, and the variables on top.

Every panel says "—" where there is no data: nothing green is no rate, and no rate is not 0.
"""

from __future__ import annotations

from grafana_foundation_sdk.builders import bargauge, dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.models.common import BigValueGraphMode, VizOrientation
from grafana_foundation_sdk.models.dashboard import DataSourceRef, VariableRefresh, VariableSort

METRICS = DataSourceRef(type_val="prometheus", uid="${prometheus_datasource}")
NO_DATA = "—"


def query(expression: str, legend: str = "", ref: str = "A", *, instant: bool = False) -> prometheus.Dataquery:
    made = prometheus.Dataquery().expr(expression).legend_format(legend or "__auto").ref_id(ref).datasource(METRICS)
    return made.instant() if instant else made.range()


def number(title: str, expression: str, description: str, unit: str = "short", width: int = 4) -> stat.Panel:
    return (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .unit(unit)
        .decimals(1 if unit == "percentunit" else 0)
        .no_value(NO_DATA)
        .graph_mode(BigValueGraphMode.NONE)
        .height(5)
        .span(width)
        .with_target(query(expression, instant=True))
    )


def lines(title: str, description: str, *targets: prometheus.Dataquery, unit: str = "short") -> timeseries.Panel:
    panel = (
        timeseries.Panel().title(title).description(description).datasource(METRICS).unit(unit).no_value(NO_DATA)
        .min(0).height(8).span(12)
    )  # fmt: skip
    for target in targets:
        panel = panel.with_target(target)
    return panel


def bars(title: str, description: str, expression: str, legend: str) -> bargauge.Panel:
    return (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(METRICS)
        .orientation(VizOrientation.HORIZONTAL)
        .unit("short")
        .decimals(0)
        .min(0)
        .no_value(NO_DATA)
        .height(8)
        .span(8)
        .with_target(query(expression, legend, instant=True))
    )


# ---- variables ---------------------------------------------------------------------------------


def datasource(kind: str) -> dashboard.DatasourceVariable:
    """Named and labelled as Grafana's dashboard linter asks for."""
    return dashboard.DatasourceVariable(f"{kind}_datasource").label(f"{kind.title()} data source").type(kind)


def choice(name: str, label: str, source: str, everything: str = "") -> dashboard.QueryVariable:
    """everything: the regular expression of all values, of which several can then be chosen; "" for one alone."""
    variable = (
        dashboard.QueryVariable(name).label(label).datasource(METRICS).query(source)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC).multi(bool(everything))
    )  # fmt: skip
    return variable.include_all(include_all=True).all_value(everything) if everything else variable
