"""What a verdict writes, and on which span; that nothing of the run's contents is in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.annotate import Annotations, annotate, annotate_early
from luckrate_otel.facts import ClosedRun, CloseReason, Facts, Gap, Role
from luckrate_otel.model import (
    Evidence,
    NotEvaluated,
    OutputSource,
    OutputState,
    PathState,
    Severity,
    Step,
    Trajectory,
    Verdict,
    VerdictLabel,
    Violation,
)
from luckrate_otel.record import replace as copy_with
from luckrate_otel.telemetry import Head, SpanEvent
from luckrate_otel.vocabulary import ATTRIBUTES, METRICS, Kind

TRACE = "0a" * 16
ROOT, SUB, TOOL, LATER_SUB = "01" * 8, "02" * 8, "03" * 8, "04" * 8


def fact(role: Role, span_id: str, start_ns: int = 0, **fields: object) -> Facts:
    head = Head(TRACE, span_id, name=span_id, start_ns=start_ns, end_ns=start_ns + 5, service="shop")
    return Facts(role=role, adapter="genai", head=head, **fields)  # type: ignore[arg-type]  # keywords of Facts


FACTS = (
    fact(Role.AGENT, ROOT, 0, agent="front"),
    fact(Role.AGENT, SUB, 10, agent="desk"),
    fact(Role.TOOL, TOOL, 20, tool="refund", args={"card": "secret-card"}, result="secret-result"),
    fact(Role.AGENT, LATER_SUB, 1_000_000_000, agent="desk"),
    fact(Role.MODEL, "05" * 8, 15),
)
RUN = ClosedRun("run", (TRACE,), FACTS, CloseReason.ROOT, root=FACTS[0].head)
STEPS = (
    Step("refund", {"card": "secret-card"}, result="secret-result", t=0.25, agent="desk", span=TOOL),
    Step("told", {}, t=0.5, agent="desk", span=None),  # rebuilt from messages, while the first desk was at work
    Step("told", {}, t=2000.0, agent="desk", span=None),  # and the second
)
TRAJECTORY = Trajectory(
    STEPS, run_id="run", trace_ids=(TRACE,), agent="front", close_reason=CloseReason.ROOT, root=ROOT, duration=1500.0,
    call_ids=("call_1", None, None),
)  # fmt: skip


def violation(rule: str = "forbidden", severity: Severity = Severity.HARD, step: int | None = 0) -> Violation:
    tool = None if step is None else STEPS[step].tool
    return Violation(rule, f"{rule}[0]", severity, f"{rule} was broken", step=step, tool=tool)


def verdict(*violations: Violation, label: VerdictLabel = VerdictLabel.LUCKY) -> Verdict:
    return Verdict(
        label,
        PathState.BAD if violations else PathState.OK,
        OutputState.OK,
        OutputSource.STATUS,
        violations,
        (NotEvaluated("ground", Gap.NO_TASK),),
        spec="refunds",
        spec_version="v1",
    )


def written(*violations: Violation) -> Annotations:
    return annotate(RUN, TRAJECTORY, verdict(*violations))


def rules_by_span(found: Annotations) -> dict[str, list[object]]:
    return {note.span_id: [e.attributes["luckrate.rule"] for e in note.events] for note in found.spans}


@pytest.mark.parametrize(
    ("step", "place"),
    [(None, ROOT), (0, TOOL), (1, SUB), (2, LATER_SUB)],
    ids=["the run", "a step with a span", "a step of the agent's first call", "and of its second"],
)
def test_where_a_violation_goes(step: int | None, place: str) -> None:
    assert rules_by_span(written(violation(step=step))) == {ROOT: [], place: ["forbidden"]}


def test_a_span_that_cannot_be_written_on_sends_its_violation_to_the_agent() -> None:
    passed_on = replace(violation(), span="05" * 8)  # a model call, which left at once
    assert rules_by_span(written(passed_on)) == {ROOT: [], SUB: ["forbidden"]}


def test_without_a_root_only_the_log_event_tells() -> None:
    run = replace(RUN, root=None, facts=())
    found = annotate(run, TRAJECTORY, verdict(violation(step=None)))
    assert found.spans == ()
    assert found.event is not None
    assert found.event.attributes["gen_ai.evaluation.explanation"] == "forbidden"


def test_an_offending_span_says_which_rules_and_the_worst_severity() -> None:
    found = written(violation("no_repeat", Severity.SOFT), violation("forbidden"), violation("ground", Severity.WARN))
    note = next(n for n in found.spans if n.span_id == TOOL)
    assert note.attributes == {
        "luckrate.rules": ("forbidden", "no_repeat", "ground"),
        "luckrate.max_severity": "hard",
    }
    assert [event.time_ns for event in note.events] == [25, 25, 25]


def test_the_root_says_the_verdict() -> None:
    [note] = written().spans
    assert (note.span_id, note.events) == (ROOT, ())
    assert note.attributes == {
        "luckrate.verdict": "lucky",
        "luckrate.output": "ok",
        "luckrate.output.source": "status",
        "luckrate.path": "ok",
        "luckrate.lucky": True,
        "luckrate.spec.name": "refunds",
        "luckrate.spec.version": "v1",
        "luckrate.steps": 3,
        "luckrate.violation_count.hard": 0,
        "luckrate.violation_count.soft": 0,
        "luckrate.violation_count.warn": 0,
        "luckrate.not_evaluated": ("ground",),
        "luckrate.close_reason": "root",
    }


@pytest.mark.parametrize(
    ("violations", "severity", "score"),
    [
        ((), 9, 1.0),
        ((violation("ground", Severity.WARN),), 13, 0.0),
        ((violation("no_repeat", Severity.SOFT),), 13, 0.0),
        ((violation("ground", Severity.WARN), violation()), 17, 0.0),
    ],
)
def test_the_log_event(violations: tuple[Violation, ...], severity: int, score: float) -> None:
    event = written(*violations).event
    assert event is not None
    assert (event.trace_id, event.span_id, event.service) == (TRACE, ROOT, "shop")
    assert event.severity == severity
    assert event.attributes["gen_ai.evaluation.name"] == "luckrate.path"
    assert event.attributes["gen_ai.evaluation.score.value"] == score


def test_the_same_verdict_has_the_same_event_id_and_another_verdict_another() -> None:
    ids = [
        event.attributes["log.record.uid"]
        for event in (written().event, written().event, written(violation()).event)
        if event is not None
    ]
    assert ids[0] == ids[1] != ids[2]


def test_a_run_that_was_not_graded_is_in_no_count_of_runs() -> None:
    ungraded = replace(verdict(label=VerdictLabel.NOT_GRADED), reason="no_agent")
    found = annotate(RUN, TRAJECTORY, ungraded)
    assert [point.metric for point in found.points] == ["luckrate.not_graded"]
    assert found.event is not None
    assert "gen_ai.evaluation.score.value" not in found.event.attributes


def test_points() -> None:
    points = [(p.metric, p.value) for p in written(violation(), violation("no_repeat", Severity.SOFT)).points]
    assert points == [
        ("luckrate.runs", 1),
        ("luckrate.agent.runs", 1),
        ("luckrate.run.steps", 3),
        ("luckrate.run.duration", 1.5),
        ("luckrate.violations", 1),
        ("luckrate.violations", 1),
        ("luckrate.not_evaluated", 1),
    ]


def test_a_violation_counts_for_the_agent_that_made_the_call() -> None:
    first, *rest = TRAJECTORY.steps
    crew = replace(TRAJECTORY, agent="crew", steps=(replace(first, agent="clerk"), *rest))
    points = annotate(RUN, crew, verdict(violation(step=0), violation(step=None))).points
    agents = [p.attributes["gen_ai.agent.name"] for p in points if p.metric == "luckrate.violations"]
    assert agents == ["clerk", "crew"]


def test_points_have_exactly_the_labels_of_their_metric() -> None:
    table = {metric.name: metric for metric in METRICS}
    for point in written(violation(), violation(step=None)).points:
        assert set(point.attributes) == set(table[point.metric].attributes)


def test_the_vocabulary_follows_the_naming_rules() -> None:
    for table in ([a.name for a in ATTRIBUTES], [m.name for m in METRICS]):
        assert len(table) == len(set(table))
    for name in (item.name for item in (*ATTRIBUTES, *METRICS)):
        assert name.startswith("luckrate.")
        assert name == name.lower()
        assert not name.endswith(("_total", ".total"))
    assert all(m.buckets for m in METRICS if m.kind is Kind.HISTOGRAM)


def test_every_attribute_written_is_in_the_vocabulary() -> None:
    known = {attribute.name for attribute in ATTRIBUTES}
    evidence = replace(violation(), sources=("fetch #0",), evidence=(Evidence(0, TOOL),), argument="card")
    found = written(evidence)
    assert found.event is not None
    keys = {key for note in found.spans for key in note.attributes} | set(found.event.attributes)
    keys |= {key for note in found.spans for event in note.events for key in event.attributes}
    assert {key for key in keys if key.startswith("luckrate.")} <= known


@given(st.lists(st.sampled_from([None, 0, 1, 2]), max_size=300))
def test_events_per_span_are_bounded_and_nothing_of_the_contents_is_written(steps: list[int | None]) -> None:
    found = written(*(violation(step=step) for step in steps))
    assert all(len(note.events) <= 128 for note in found.spans)
    assert "secret" not in repr(found)


# ---- spans that left before the verdict --------------------------------------------------------


def test_a_part_of_a_run_gets_its_violations_and_no_verdict() -> None:
    """There is no verdict yet, and a step's number may be another once the earlier ones are known."""
    early = replace(violation(), message="forbidden[0]: refund (step 0) must not be called")
    part = replace(RUN, facts=FACTS[1:3], root=None)
    [note] = annotate_early(part, TRAJECTORY, verdict(early))
    assert note.span_id == TOOL
    assert note.attributes == {"luckrate.rules": ("forbidden",), "luckrate.max_severity": "hard"}
    [event] = note.events
    assert event.attributes["luckrate.message"] == "forbidden[0]: refund must not be called"
    assert "luckrate.step.index" not in event.attributes


@pytest.mark.parametrize(
    ("left", "rule", "place"),
    [
        ({TOOL}, "before", SUB),  # the agent's, as on the tool's span it would be lost
        ({TOOL, SUB}, "before", ROOT),
        ({TOOL}, "forbidden", None),  # was written on the tool's span when it left
        ({TOOL}, "unknown_tool", None),
        ({SUB}, "before", TOOL),
    ],
)
def test_a_violation_on_a_span_that_has_left_is_not_lost(left: set[str], rule: str, place: str | None) -> None:
    run = replace(RUN, left=frozenset(left))
    notes = annotate(run, TRAJECTORY, verdict(violation(rule))).spans
    assert [note.span_id for note in notes if note.events] == ([place] if place else [])


def test_records_and_frozen_dataclasses_are_copied_by_the_same_replace() -> None:
    """The type checker takes one for the other."""
    assert copy_with(SpanEvent("a", 1), name="b") == SpanEvent("b", 1)
    assert copy_with(FACTS[0].head, name="b").name == "b"
    assert FACTS[0].head.name == ROOT


PAGE = (Path(__file__).parents[1] / "docs/metrics.md").read_text("utf-8")


def test_the_page_names_all_that_is_written() -> None:
    """Not those of ours alone: whoever searches or masks by name needs the borrowed ones as well."""
    run = copy_with(TRAJECTORY, conversation_id="c1")
    written = annotate(RUN, run, verdict(violation(), violation("taint", step=1), violation("max_steps", step=None)))
    assert written.event
    maps = [written.event.attributes, *(note.attributes for note in written.spans)]
    maps += [event.attributes for note in written.spans for event in note.events]
    names = {name for attributes in maps for name in attributes}
    short = {
        name.removeprefix("gen_ai.evaluation") for name in names
    }  # the page says `gen_ai.evaluation.name`, `.score.label`, …
    assert {"gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.conversation.id", "log.record.uid"} <= names
    assert [name for name in sorted(short) if f"{name}`" not in PAGE] == []
