"""The dashboard "Luck Rate": how often it was luck, what was wrong, what could not be judged."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard, stat, table
from grafana_foundation_sdk.models.common import BigValueGraphMode, BigValueTextMode
from grafana_foundation_sdk.models.dashboard import DataSourceRef, DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.prometheus import PromQueryFormat
from panels import METRICS, NO_DATA, bars, choice, datasource, lines, number, query

TRACES = DataSourceRef(type_val="jaeger", uid="${jaeger_datasource}")
SPEC = 'luckrate_spec_name=~"$spec"'
# What a violation of the run as a whole has not.
OF_A_STEP = ("gen_ai_tool_name", "gen_ai_agent_name")


def counted(metric: str, chosen: str, by: str = "") -> str:
    """How often in the time range. A counter that appears with its first event has no earlier value, so `increase`
    would miss that event; one that is new in the range is therefore read as it stands. Ten minutes, not one moment: a
    scrape that failed then would make all that was ever counted look new."""
    series = f"{metric}{{{chosen}}}"
    before = f"last_over_time({series}[10m] offset $__range)"
    return f"sum{by}(({series} unless {before}) or increase({series}[$__range]))"


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
    """Counts by a label; where it is empty the bar would have no name, so it gets one."""
    found = f"{counted(metric, SPEC, f' by ({label}) ')} > 0"
    return f'label_replace({found}, "{label}", "the run", "{label}", "")' if label in OF_A_STEP else found


def agents() -> table.Panel:
    """Luck Rate by service and agent, with its counts."""
    where = " by (luckrate_service_name, gen_ai_agent_name) "
    green = counted("luckrate_agent_runs_total", f'{SPEC}, luckrate_output="ok"', where)
    lucky = counted("luckrate_agent_runs_total", f'{SPEC}, luckrate_output="ok", luckrate_path="bad"', where)
    panel = (
        table.Panel().title("By agent").description("Green runs, lucky runs and Luck Rate of each agent.")
        .datasource(METRICS).unit("short").no_value(NO_DATA).height(8).span(12)
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
        self.datasource(TRACES).unit("none").no_value(NO_DATA).height(8).span(12)
        self._internal.targets = [  # the SDK has no query builder for Jaeger
            {
                "refId": "A",
                "datasource": {"type": "jaeger", "uid": "${jaeger_datasource}"},
                "queryType": "search",
                "service": "$service",
                "tags": "luckrate.verdict=lucky",
                "limit": 20,
            }
        ]


# ---- the dashboard -----------------------------------------------------------------------------


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
        .with_variable(datasource("prometheus"))
        .with_variable(datasource("jaeger"))
        .with_variable(choice("spec", "Spec", "label_values(luckrate_runs_total, luckrate_spec_name)", ".*"))
        .with_variable(choice("service", "Service", "label_values(luckrate_agent_runs_total, luckrate_service_name)"))
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
                "Those of the run as a whole have no tool.",
                by("gen_ai_tool_name", metric="luckrate_violations_total"),
                "{{gen_ai_tool_name}}",
            )
        )
        .with_panel(
            bars(
                "Violations by agent",
                "Who made the call, of the agents in a run; or the run, if no agent has a name.",
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
