"""The captured traffic in tests/traces: cases, their telemetry, what is expected of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from luckrate_otel.batch import trajectories
from luckrate_otel.otlp import files
from luckrate_otel.reports.trajectory import to_json
from luckrate_otel.telemetry import LogRecord, Span

TRACES = Path(__file__).parent / "traces"


@dataclass(frozen=True)
class Case:
    """One scenario of one variant."""

    variant: str
    scenario: str

    def __str__(self) -> str:
        return f"{self.variant}/{self.scenario}"

    def path(self, kind: str) -> Path:
        return TRACES / self.variant / f"{self.scenario}.{kind}"

    def json(self, kind: str) -> Any:
        return json.loads(self.path(kind).read_text())


CASES = tuple(
    Case(path.parent.name, path.name.removesuffix(".traces.jsonl")) for path in sorted(TRACES.glob("*/*.traces.jsonl"))
)


@lru_cache(maxsize=8)
def telemetry(case: Case) -> tuple[tuple[Span, ...], tuple[LogRecord, ...]]:
    spans = files.read(case.path("traces.jsonl")).spans
    logs = files.read(case.path("logs.jsonl")).logs if case.path("logs.jsonl").exists() else ()
    return spans, logs


def rebuilt(spans: tuple[Span, ...], logs: tuple[LogRecord, ...]) -> list[dict[str, Any]]:
    return [to_json(run) for run in trajectories(spans, logs)]
