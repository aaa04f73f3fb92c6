"""The dashboard "luckrate-otel processor": is everything accounted for, and does it leave in time?"""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard
from panels import choice, datasource, lines, number, query

# The processors that are looked at: by name of the scrape job or of the service, and replica by replica.
CHOSEN = 'job=~"$job", instance=~"$instance"'


def processor() -> dashboard.Dashboard:
    return (
        dashboard.Dashboard("luckrate-otel processor")
        .uid("luckrate-processor")
        .description("Is everything that was received accounted for, and does it leave in time?")
        .tags(["luckrate"])
        .time("now-3h", "now")
        .refresh("30s")
        .readonly()
        .with_variable(datasource("prometheus"))
        .with_variable(choice("job", "job", "label_values(luckrate_open_runs, job)", ".+"))
        .with_variable(choice("instance", "instance", 'label_values(luckrate_open_runs{job=~"$job"}, instance)', ".+"))
        .with_panel(
            number(
                "unaccounted",
                f"sum(abs(luckrate_unaccounted{{{CHOSEN}}}))",
                "Received, and neither forwarded, held nor dropped.",
                width=6,
            )
        )
        .with_panel(
            number("open runs", f"sum(luckrate_open_runs{{{CHOSEN}}})", "Runs that wait for their verdict.", width=6)
        )
        .with_panel(
            number("held spans", f"sum(luckrate_held_spans{{{CHOSEN}}})", "Tool and agent spans of open runs.", width=6)
        )
        .with_panel(
            number(
                "fullest queue",
                f"max(luckrate_queue_size_bytes{{{CHOSEN}}} / luckrate_queue_limit_bytes{{{CHOSEN}}})",
                "Share of its limit; at 100 % senders are told to retry.",
                "percentunit",
                6,
            )
        )
        .with_panel(
            lines(
                "Spans in",
                "In acknowledged requests.",
                query(
                    f"sum by (instance) (rate(luckrate_spans_received_total{{{CHOSEN}}}[$__rate_interval]))",
                    "{{instance}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Spans out",
                "What became of them, by destination.",
                query(
                    "sum by (luckrate_destination, luckrate_outcome, luckrate_reason) "
                    f"(rate(luckrate_spans_total{{{CHOSEN}}}[$__rate_interval]))",
                    "{{luckrate_destination}} {{luckrate_outcome}} {{luckrate_reason}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Other signals out",
                "Log records, and requests with metrics or profiles: what became of them, by destination.",
                query(
                    "sum by (luckrate_signal, luckrate_destination, luckrate_entry, luckrate_reason) "
                    f'(rate(luckrate_ledger_total{{{CHOSEN}, luckrate_signal!="traces", '
                    'luckrate_entry=~"sent|rejected|dropped"}[$__rate_interval]))',
                    "{{luckrate_signal}} {{luckrate_destination}} {{luckrate_entry}} {{luckrate_reason}}",
                ),
            )
        )
        .with_panel(
            lines(
                "Queues",
                "Bytes that wait for each destination.",
                query(f"luckrate_queue_size_bytes{{{CHOSEN}}}", "{{instance}} {{luckrate_destination}}"),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Memory of open runs",
                "As accounted, against limits.held_bytes.",
                query(f"luckrate_held_size_bytes{{{CHOSEN}}}", "{{instance}}"),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Journal",
                "Bytes on disk; it empties when runs close and destinations take.",
                query(f"luckrate_journal_size_bytes{{{CHOSEN}}}", "{{instance}}"),
                unit="bytes",
            )
        )
        .with_panel(
            lines(
                "Late spans",
                "They came after the verdict of their run; raise clocks.settle if there are many.",
                query(
                    f"sum by (instance) (rate(luckrate_late_spans_total{{{CHOSEN}}}[$__rate_interval]))", "{{instance}}"
                ),
            )
        )
        .with_panel(
            lines(
                "Reloads",
                "SIGHUPs of the last hour; after a refused one the old specs stay in force.",
                query(
                    f"sum by (instance, luckrate_outcome) (increase(luckrate_reloads_total{{{CHOSEN}}}[1h]))",
                    "{{instance}} {{luckrate_outcome}}",
                ),
            )
        )
    )
