"""What a user of Jaeger and of Prometheus sees of real agents' runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from tests.programs.backends import events, tags
from tests.programs.running import until
from tests.programs.scene import CREWAI, GREEN, LANGGRAPH, LUCKY, N8N, ROOT, UNVERIFIED, Seen

pytestmark = pytest.mark.programs


def roots(traces: list[Any]) -> list[Any]:
    return [span for trace in traces for span in trace["spans"] if "luckrate.verdict" in tags(span)]


# ---- Jaeger ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("service", "truth"),
    [("langgraph-shop", LANGGRAPH), ("crewai-shop", CREWAI), ("n8n", N8N)],
    ids=["langgraph", "crewai", "n8n"],
)
def test_jaeger_shows_every_verdict(seen: Seen, service: str, truth: Mapping[str, str]) -> None:
    expected = Counter(truth.values())
    for verdict, count in expected.items():
        # Found by tag, as a user does; the last spans may still be on their way from the Collector.
        found = until(lambda: _found(seen, service, verdict, count), what=lambda: seen.jaeger.find(service))  # noqa: B023
        assert Counter(tags(span)["luckrate.verdict"] for span in roots(found)) == {verdict: count}


def _found(seen: Seen, service: str, verdict: str, count: int) -> list[Any]:
    traces = seen.jaeger.find(service, luckrate__verdict=verdict)
    return traces if len(traces) == count else []


def test_jaeger_shows_the_root_whole(seen: Seen) -> None:
    (root,) = roots(until(lambda: _found(seen, "langgraph-shop", "pass", 1)))
    told = {name: value for name, value in tags(root).items() if name.startswith("luckrate.")}
    assert told.pop("luckrate.spec.version")
    assert told == {
        "luckrate.verdict": "pass",
        "luckrate.output": "ok",
        "luckrate.output.source": "status",
        "luckrate.path": "ok",
        "luckrate.lucky": False,
        "luckrate.spec.name": "refunds",
        "luckrate.steps": 3,
        "luckrate.violation_count.hard": 0,
        "luckrate.violation_count.soft": 0,
        "luckrate.violation_count.warn": 0,
        "luckrate.close_reason": "root",
    }


def test_jaeger_shows_the_violation_on_the_offending_span(seen: Seen) -> None:
    traces = until(lambda: _found(seen, "langgraph-shop", "lucky", 3))
    found = {
        (event["luckrate.rule"], span["operationName"], event["gen_ai.tool.name"])
        for trace in traces
        for span in trace["spans"]
        for event in events(span, "luckrate.violation")
    }
    assert found >= {
        ("before", "issue_refund", "issue_refund"),  # hasty
        ("ground", "issue_refund", "issue_refund"),  # inventive
        ("taint", "send_email", "send_email"),  # obedient
    }
    assert all(operation == tool for _, operation, tool in found)


def test_jaeger_search_by_what_was_broken(seen: Seen) -> None:
    hard = seen.jaeger.find("langgraph-shop", luckrate__max_severity="hard")
    assert len(hard) == 2  # hasty: before; obedient: taint. inventive is a warning


# ---- Prometheus --------------------------------------------------------------------------------


def test_prometheus_has_the_luck_rate(seen: Seen) -> None:
    lucky = 'sum(luckrate_runs_total{luckrate_output="ok", luckrate_path="bad"})'
    green = 'sum(luckrate_runs_total{luckrate_output="ok"})'
    assert seen.prometheus.number(lucky) == LUCKY
    assert seen.prometheus.number(f"{lucky} / {green}") == pytest.approx(LUCKY / GREEN)


def test_the_query_on_the_page_says_the_same(seen: Seen) -> None:
    (query,) = re.findall(r"```promql\n(.*?)```", (ROOT / "docs/backends.md").read_text("utf-8"), re.DOTALL)
    until(lambda: seen.prometheus.number(query) == pytest.approx(LUCKY / GREEN, abs=0.005))


@pytest.mark.parametrize(
    ("rule", "truth"),
    [
        ("spec:luckrate_luck_rate:ratio1d", LUCKY / GREEN),
        ("spec:luckrate_luck_rate_at_most:ratio1d", (LUCKY + UNVERIFIED) / GREEN),
    ],
)
def test_recording_rules_say_the_same(seen: Seen, rule: str, truth: float) -> None:
    until(
        lambda: seen.prometheus.number(rule) == pytest.approx(truth, abs=0.005),
        what=lambda: (seen.prometheus.number(rule), truth),
    )


def test_bounds_hold_the_rate(seen: Seen) -> None:
    low = until(lambda: seen.prometheus.number("spec:luckrate_luck_rate_wilson_low:ratio1d"))
    high = until(lambda: seen.prometheus.number("spec:luckrate_luck_rate_wilson_high:ratio1d"))
    assert low is not None
    assert high is not None
    assert 0 < low < LUCKY / GREEN < high < 1


def test_nothing_green_is_no_data(seen: Seen) -> None:
    of_another_spec = 'luckrate_runs_total{luckrate_spec_name="none", luckrate_output="ok"}'
    assert seen.prometheus.number(f"sum({of_another_spec}) / sum({of_another_spec})") is None
    # A spec that is loaded and has no green run: the counters are there, at 0, and their ratio is no number.
    zero = 'sum(luckrate_runs_total{luckrate_output="ok", luckrate_output_source="evaluation"})'
    assert seen.prometheus.number(zero) == 0
    assert seen.prometheus.number(f"{zero} / {zero}") is None


def test_replicas_can_be_told_apart(seen: Seen) -> None:
    (processor,) = seen.prometheus.query("luckrate_open_runs")
    assert processor["metric"]["job"] == "luckrate-otel"
    assert processor["metric"]["instance"]
