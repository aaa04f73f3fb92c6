"""Telemetry that nobody can read is described, never guessed at."""

from __future__ import annotations

from luckrate_otel.adapters.unrecognised import describe
from luckrate_otel.batch import read_files
from luckrate_otel.telemetry import Head, LogRecord, Span
from tests.captured import TRACES


def _span(scope: str, name: str, **attributes: object) -> Span:
    return Span(Head("1" * 32, name, name=name, scope=scope), attributes)


def test_nothing_at_all() -> None:
    assert describe([]) == "no spans and no log records"


def test_spans_of_other_trades() -> None:
    spans = [
        _span("http.client", "GET", **{"http.request.method": "GET"}),
        _span("db", "SELECT", **{"db.operation.name": "SELECT"}),
    ]
    assert describe(spans, [LogRecord("", "", "app.started", scope="app")]) == (
        "2 spans and 1 log record, none of an agent's run\n"
        "scopes: http.client (1), db (1), app (1)\n"
        "operations: GET (1), SELECT (1), app.started (1)\n"
        "closest adapter: none; no attribute of any GenAI convention is on these spans"
    )


def test_the_closest_adapter_is_named() -> None:
    spans = [
        _span("acme", "embed", **{"openinference.span.kind": "EMBEDDING"}),
        _span("acme", "find", **{"gen_ai.x": 1}),
    ]
    assert describe([spans[0], spans[0], spans[1]]).splitlines()[-1] == (
        "closest adapter: openinference, whose attributes or scope 2 spans have; "
        "but no agent span and no tool call is among them"
    )


def test_a_file_of_runs_has_nothing_to_say() -> None:
    found = read_files([str(TRACES / "langgraph-genai" / "s6.traces.jsonl")])
    assert (len(found.trajectories), found.problems, found.unrecognised) == (1, (), "")
