"""Captured traffic of every framework, sent in any order: the runs are those of the whole file read at once."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from luckrate_otel.adapters import read
from luckrate_otel.assemble import Assembler, Closed
from luckrate_otel.batch import trajectories
from luckrate_otel.facts import ClosedRun, Facts, Role
from luckrate_otel.join import join
from luckrate_otel.model import Trajectory
from luckrate_otel.otlp import files
from luckrate_otel.telemetry import LogRecord, Span

TRACES = Path(__file__).parent.parent / "traces"
# CrewAI's own telemetry makes each span a trace of its own; the assembler groups by trace, files are joined by crew.
ONE_TRACE_A_SPAN = "crewai-native"
CAPTURES = sorted(
    str(path.relative_to(TRACES)).removesuffix(".traces.jsonl")
    for path in TRACES.glob("*/*.traces.jsonl")
    if path.parent.name != ONE_TRACE_A_SPAN
)

Item = Span | LogRecord
Seen = tuple[str, object, object, object]


@cache
def capture(name: str) -> tuple[tuple[Span, ...], tuple[LogRecord, ...]]:
    paths = [path for kind in ("traces", "logs") if (path := TRACES / f"{name}.{kind}.jsonl").exists()]
    contents = [files.read(path) for path in paths]
    return tuple(s for c in contents for s in c.spans), tuple(r for c in contents for r in c.logs)


def said(runs: Iterable[Trajectory]) -> list[Seen]:
    return sorted(((t.run_id, t.steps, t.turns, t.final_output) for t in runs), key=lambda seen: seen[0])


def held(fact: Facts) -> bool:
    return not fact.log and fact.role is not Role.MODEL


def assembled(items: Iterable[Item]) -> list[Seen]:
    """What the assembler makes of them, each run at its own time. Links are given once their trace is open."""
    assembler = Assembler()
    unclaimed: list[Span] = []
    for item in items:
        fact = read(item)
        if fact is not None:
            assembler.add(fact, 0, payload=item if held(fact) else None, size=300)
        elif isinstance(item, Span):
            unclaimed.append(item)
    for span in unclaimed:
        assembler.link(span.head.trace_id, span.head.span_id, span.head.parent_id, 0)
    runs: dict[str, ClosedRun] = {}
    while (due := assembler.next_deadline()) is not None:
        for effect in assembler.take(due):
            if isinstance(effect, Closed):
                for run_id in effect.supersedes:
                    del runs[run_id]
                runs[effect.run.run_id] = effect.run
    assert assembler.counts.errors == assembler.counts.held_spans == 0
    return said(map(join, runs.values()))


@pytest.mark.parametrize("name", CAPTURES)
def test_a_capture_gives_the_same_runs_in_any_order(name: str) -> None:
    spans, logs = capture(name)
    expected = said(trajectories(spans, logs))
    shuffled: list[Item] = [*spans, *logs]
    random.Random(name).shuffle(shuffled)
    assert assembled((*spans, *logs)) == expected
    assert assembled(reversed((*spans, *logs))) == expected
    assert assembled(shuffled) == expected


def test_captures_sent_at_once_do_not_mix() -> None:
    names = CAPTURES[::7]
    items: list[Item] = [item for name in names for part in capture(name) for item in part]
    expected = [seen for name in names for seen in said(trajectories(*capture(name)))]
    random.Random(1).shuffle(items)
    assert assembled(items) == sorted(expected, key=lambda seen: seen[0])
