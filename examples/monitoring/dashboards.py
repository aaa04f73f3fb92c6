"""Grafana dashboards as code: run it to write the JSON files in grafana/, or with --check to compare them.

Needs grafana-foundation-sdk (examples/requirements-tools.txt). Queries read the metrics that docs/metrics.md lists.
Every panel says "—" where there is no data: nothing green is no rate, and no rate is not 0.

usage: python examples/monitoring/dashboards.py [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import bargauge, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import BigValueGraphMode, BigValueTextMode, VizOrientation
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

FOLDER = Path(__file__).parent / "grafana"
METRICS = DataSourceRef(type_val="prometheus", uid="${metrics}")
TRACES = DataSourceRef(type_val="jaeger", uid="${traces}")
NO_DATA = "—"
SPEC = 'luckrate_spec_name=~"$spec"'


def counted(metric: str, chosen: str, by: str = "") -> str:
    """How often in the time range. A counter that appears with its first event has no earlier value, so `increase`
    would miss that event; one that is new in the range is therefore read as it stands."""
    series = f"{metric}{{{chosen}}}"
    return f"sum{by}(({series} unless {series} offset $__range) or increase({series}[$__range]))"


def runs(output: str, path: str = "") -> str:
    """Runs in the dashboard's time range, of the chosen specs."""
    chosen = f'{SPEC}, luckrate_output="{output}"' + (f', luckrate_path="{path}"' if path else "")
    return f"sum(increase(luckrate_runs_total{{{chosen}}}[$__range]))"


GREEN = f"({runs('ok')} > 0)"
LUCKY = runs("ok", "bad")
RATE = f"{LUCKY} / {GREEN}"


def wilson(sign: str) -> str:
    """One end of the 95 % score interval; z = 1.96."""
    inside = f"({RATE}) * (1 - {RATE}) / {GREEN} + 0.9604 / {GREEN} ^ 2"
    end = f"({RATE} + 1.9208 / {GREEN} {sign} 1.96 * sqrt({inside})) / (1 + 3.8416 / {GREEN})"
    return f"clamp_min({end}, 0)" if sign == "-" else f"clamp_max({end}, 1)"


# ---- panels ------------------------------------------------------------------------------------


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
        .decimals(0)
        .min(0)
        .no_value(NO_DATA)
        .height(8)
        .span(8)
        .with_target(query(expression, legend, instant=True))
    )


def square() -> stat.Panel:
    """Verdict 2×2: output by path, with the counts that have no place in it."""
    cells = (
        ("right, good path", runs("ok", "ok")),
        ("right, bad path: lucky", LUCKY),
        ("right, path unknown", runs("ok", "unknown")),
        ("wrong, good path", runs("not_ok", "ok")),
        ("wrong, bad path", runs("not_ok", "bad")),
        ("output unknown", runs("unknown")),
    )
    panel = (
        stat.Panel().title("Output by path")
        .description("Runs in the time range. Only the first three are in the rate.").datasource(METRICS)
        .unit("short").decimals(0).no_value(NO_DATA).graph_mode(BigValueGraphMode.NONE)
        .text_mode(BigValueTextMode.VALUE_AND_NAME).height(8).span(12)
    )  # fmt: skip
    for ref, (legend, expression) in zip("ABCDEF", cells, strict=True):
        panel = panel.with_target(query(expression, legend, ref, instant=True))
    return panel


def by(label: str, metric: str) -> str:
    return f"{counted(metric, SPEC, f' by ({label}) ')} > 0"


def agents() -> table.Panel:
    """Luck Rate by service and agent, with its counts."""
    where = " by (luckrate_service_name, gen_ai_agent_name) "
    green = counted("luckrate_agent_runs_total", f'{SPEC}, luckrate_output="ok"', where)
    lucky = counted("luckrate_agent_runs_total", f'{SPEC}, luckrate_output="ok", luckrate_path="bad"', where)
    panel = (
        table.Panel().title("By agent").description("Green runs, lucky runs and Luck Rate of each agent.")
        .datasource(METRICS).no_value(NO_DATA).height(8).span(12)
    )  # fmt: skip
    lucky = f"({lucky} or 0 * {green})"
    for ref, expression in (("A", f"{green} > 0"), ("B", lucky), ("C", f"{lucky} / ({green} > 0)")):
        panel = panel.with_target(query(expression, ref=ref, instant=True).format(PromQueryFormat.TABLE))
    names = {
        "Value #A": "green",
        "Value #B": "lucky",
        "Value #C": "Luck Rate",
        "luckrate_service_name": "service",
        "gen_ai_agent_name": "agent",
    }
    merge = DataTransformerConfig(id_val="merge", options={})
    organize = DataTransformerConfig(
        id_val="organize", options={"excludeByName": {"Time": True}, "renameByName": names, "indexByName": {}}
    )
    share = [DynamicConfigValue("unit", "percentunit"), DynamicConfigValue("decimals", 1)]
    whole = [DynamicConfigValue("decimals", 0)]
    return (
        panel.with_transformation(merge).with_transformation(organize).override_by_name("Luck Rate", share)
        .override_by_name("green", whole).override_by_name("lucky", whole)
    )  # fmt: skip


class LuckyTraces(table.Panel):
    """The newest lucky cases, each a link to its trace, asked of Jaeger by tag."""

    def __init__(self) -> None:
        super().__init__()
        self.title("Lucky cases").description("Newest first; a trace id opens the trace.")
        self.datasource(TRACES).no_value(NO_DATA).height(8).span(12)
        self._internal.targets = [  # the SDK has no query builder for Jaeger
            {
                "refId": "A",
                "datasource": {"type": "jaeger", "uid": "${traces}"},
                "queryType": "search",
                "service": "$service",
                "tags": "luckrate.verdict=lucky",
                "limit": 20,
            }
        ]


# ---- dashboards --------------------------------------------------------------------------------


def datasource(name: str, kind: str, label: str) -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable(name).label(label).type(kind)


def choice(name: str, label: str, source: str, *, many: bool) -> dashboard.QueryVariable:
    variable = (
        dashboard.QueryVariable(name).label(label).datasource(METRICS).query(source)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED).sort(VariableSort.ALPHABETICAL_ASC).multi(many)
    )  # fmt: skip
    return variable.include_all(include_all=True).all_value(".*") if many else variable


def luck() -> dashboard.Dashboard:
    unverified = runs("ok", "unknown")
    return (
        dashboard.Dashboard("Luck Rate")
        .uid("luckrate")
        .description("Of the runs that looked right, the share that got there on a bad path.")
        .tags(["luckrate", "agents"])
        .time("now-24h", "now")
        .refresh("1m")
        .readonly()
        .with_variable(datasource("metrics", "prometheus", "Metrics"))
        .with_variable(datasource("traces", "jaeger", "Traces"))
        .with_variable(choice("spec", "Spec", "label_values(luckrate_runs_total, luckrate_spec_name)", many=True))
        .with_variable(
            choice("service", "Service", "label_values(luckrate_agent_runs_total, luckrate_service_name)", many=False)
        )
        .with_row(dashboard.Row("How often it was luck"))
        .with_panel(
            number("Luck Rate", RATE, "Lucky of green runs; with unverified runs, at least this.", "percentunit")
        )
        .with_panel(number("at least (95 %)", wilson("-"), "Lower end of Wilson's interval.", "percentunit", 3))
        .with_panel(number("at most (95 %)", wilson("+"), "Upper end of Wilson's interval.", "percentunit", 3))
        .with_panel(
            number(
                "if all unverified were lucky",
                f"({LUCKY} + {unverified}) / {GREEN}",
                "What the rate could be at most, since some paths could not be verified.",
                "percentunit",
            )
        )
        .with_panel(number("green runs", GREEN, "Output ok: the denominator.", width=3))
        .with_panel(number("lucky runs", f"{LUCKY} and on() {GREEN}", "Output ok, path bad.", width=3))
        .with_panel(number("unverified runs", f"{unverified} and on() {GREEN}", "Output ok, path unknown.", width=4))
        .with_panel(
            lines(
                "Luck Rate over time",
                "One day back from each point, as the recording rules say it, with its bounds.",
                query(f"spec:luckrate_luck_rate:ratio1d{{{SPEC}}}", "{{luckrate_spec_name}}", "A"),
                query(f"spec:luckrate_luck_rate_wilson_low:ratio1d{{{SPEC}}}", "{{luckrate_spec_name}} low", "B"),
                query(f"spec:luckrate_luck_rate_wilson_high:ratio1d{{{SPEC}}}", "{{luckrate_spec_name}} high", "C"),
                unit="percentunit",
            )
        )
        .with_panel(square())
        .with_row(dashboard.Row("What was wrong"))
        .with_panel(
            bars(
                "Violations by rule",
                "In the time range, whatever the verdict.",
                by("luckrate_rule", metric="luckrate_violations_total"),
                "{{luckrate_rule}}",
            )
        )
        .with_panel(
            bars(
                "Violations by tool",
                "A run-level violation has no tool.",
                by("gen_ai_tool_name", metric="luckrate_violations_total"),
                "{{gen_ai_tool_name}}",
            )
        )
        .with_panel(
            bars(
                "Violations by agent",
                "Who made the call, of the agents in a run.",
                by("gen_ai_agent_name", metric="luckrate_violations_total"),
                "{{gen_ai_agent_name}}",
            )
        )
        .with_panel(
            bars(
                "Violations by severity",
                "hard fails a build at once, soft by majority, warn never.",
                by("luckrate_severity", metric="luckrate_violations_total"),
                "{{luckrate_severity}}",
            ).span(12)
        )
        .with_panel(
            bars(
                "Soft majority",
                "Runs after which most of their case's last runs had a soft violation: a build would fail.",
                by("luckrate_spec_name", metric="luckrate_case_soft_majority_total"),
                "{{luckrate_spec_name}}",
            ).span(12)
        )
        .with_panel(agents())
        .with_panel(LuckyTraces())
        .with_row(dashboard.Row("What could not be judged"))
        .with_panel(
            bars(
                "Not evaluated by reason",
                "not_captured: the telemetry leaves the content out.",
                by("luckrate_reason", metric="luckrate_not_evaluated_total"),
                "{{luckrate_reason}}",
            )
        )
        .with_panel(
            bars(
                "Not evaluated by rule",
                "Neither passed nor violated.",
                by("luckrate_rule", metric="luckrate_not_evaluated_total"),
                "{{luckrate_rule}}",
            )
        )
        .with_panel(
            bars(
                "Runs not graded",
                "In no denominator: why no verdict was possible.",
                by("luckrate_reason", metric="luckrate_not_graded_total"),
                "{{luckrate_reason}}",
            )
        )
        .with_panel(
            bars(
                "Who said the answer was right",
                "status is the weakest source; none means that nobody did.",
                by("luckrate_output_source", metric="luckrate_runs_total"),
                "{{luckrate_output_source}}",
            )
        )
        .with_panel(
            lines(
                "Coverage",
                "Share of runs whose path could be verified or was found bad.",
                query(
                    f'1 - sum by (luckrate_spec_name) (rate(luckrate_runs_total{{{SPEC}, luckrate_path="unknown"}}'
                    f"[$__rate_interval])) / (sum by (luckrate_spec_name) (rate(luckrate_runs_total{{{SPEC}}}"
                    "[$__rate_interval])) > 0)",
                    "{{luckrate_spec_name}}",
                ),
                unit="percentunit",
            )
        )
        .with_panel(
            lines(
                "Revised verdicts",
                "A late span or evaluation changed them; the counters above keep the first.",
                query(
                    f"sum by (luckrate_from, luckrate_to) (rate(luckrate_revisions_total{{{SPEC}}}[$__rate_interval]))",
                    "{{luckrate_from}} → {{luckrate_to}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Steps per run",
                "Tool calls, half and 95 % of the runs.",
                *(
                    query(
                        f"histogram_quantile({q}, sum by (le) (rate(luckrate_run_steps_bucket{{{SPEC}}}"
                        "[$__rate_interval])))",
                        f"{q}",
                        ref,
                    )
                    for q, ref in ((0.5, "A"), (0.95, "B"))
                ),
            )
        )
        .with_panel(
            lines(
                "Duration of runs",
                "From first span to last, half and 95 % of the runs.",
                *(
                    query(
                        f"histogram_quantile({q}, sum by (le) (rate(luckrate_run_duration_seconds_bucket{{{SPEC}}}"
                        "[$__rate_interval])))",
                        f"{q}",
                        ref,
                    )
                    for q, ref in ((0.5, "A"), (0.95, "B"))
                ),
                unit="s",
            )
        )
    )


def processor() -> dashboard.Dashboard:
    return (
        dashboard.Dashboard("luckrate-otel processor")
        .uid("luckrate-processor")
        .description("Is everything that was received accounted for, and does it leave in time?")
        .tags(["luckrate"])
        .time("now-3h", "now")
        .refresh("30s")
        .readonly()
        .with_variable(datasource("metrics", "prometheus", "Metrics"))
        .with_panel(
            number(
                "unaccounted",
                "sum(abs(luckrate_unaccounted))",
                "Received, and neither forwarded, held nor dropped.",
                width=6,
            )
        )
        .with_panel(number("open runs", "sum(luckrate_open_runs)", "Runs that wait for their verdict.", width=6))
        .with_panel(number("held spans", "sum(luckrate_held_spans)", "Tool and agent spans of open runs.", width=6))
        .with_panel(
            number(
                "fullest queue",
                "max(luckrate_queue_size_bytes / luckrate_queue_limit_bytes)",
                "Share of its limit; at 100 % senders are told to retry.",
                "percentunit",
                6,
            )
        )
        .with_panel(
            lines(
                "Spans in",
                "In acknowledged requests.",
                query("sum by (instance) (rate(luckrate_spans_received_total[$__rate_interval]))", "{{instance}}"),
            )
        )
        .with_panel(
            lines(
                "Spans out",
                "What became of them, by destination.",
                query(
                    "sum by (luckrate_destination, luckrate_outcome, luckrate_reason) "
                    "(rate(luckrate_spans_total[$__rate_interval]))",
                    "{{luckrate_destination}} {{luckrate_outcome}} {{luckrate_reason}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Queues",
                "Bytes that wait for each destination.",
                query("luckrate_queue_size_bytes", "{{instance}} {{luckrate_destination}}"),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Memory of open runs",
                "As accounted, against limits.held_bytes.",
                query("luckrate_held_size_bytes", "{{instance}}"),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Journal",
                "Bytes on disk; it empties when runs close and destinations take.",
                query("luckrate_journal_size_bytes", "{{instance}}"),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Late spans",
                "They came after the verdict of their run; raise clocks.settle if there are many.",
                query("sum by (instance) (rate(luckrate_late_spans_total[$__rate_interval]))", "{{instance}}"),
            )
        )
        .with_panel(
            lines(
                "Reloads",
                "SIGHUPs of the last hour; after a refused one the old specs stay in force.",
                query(
                    "sum by (instance, luckrate_outcome) (increase(luckrate_reloads_total[1h]))",
                    "{{instance}} {{luckrate_outcome}}",
                ),
            )
        )
    )


def main() -> int:
    stale = []
    for name, made in (("luckrate.json", luck()), ("luckrate-processor.json", processor())):
        document: Any = json.loads(json.dumps(made.build(), cls=JSONEncoder))
        content = json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
        file = FOLDER / name
        if "--check" not in sys.argv:
            file.write_text(content, encoding="utf-8")
        elif file.read_text(encoding="utf-8") != content:
            stale.append(name)
    if stale:
        print(f"{', '.join(stale)}: not what dashboards.py makes; run it", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
