"""Verdict → what to write, and where: span events and attributes, one log event, metric points. Plain values.

No argument or result value is ever among them: an argument is named by its path, a source by its step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from hashlib import sha256
from typing import Final

from luckrate_otel.facts import ClosedRun, Facts, Role
from luckrate_otel.model import PathState, Severity, Step, Trajectory, Verdict, VerdictLabel, Violation
from luckrate_otel.record import record, replace
from luckrate_otel.telemetry import SpanEvent, Value, nothing
from luckrate_otel.vocabulary import (
    AGENT_NAME,
    CONVERSATION_ID,
    EVALUATION_NAME,
    TOOL_CALL_ID,
    TOOL_NAME,
    VIOLATION_EVENT,
)

# Rules that need nothing but the call itself, so that they hold whatever the rest of the run brings: their findings go
# with a span that leaves before its run is judged.
AT_ONCE: Final = frozenset({"forbidden", "unknown_tool"})

# The OpenTelemetry default limit of events per span; a processor is not bound by it, backends are built for it.
MAX_EVENTS_PER_SPAN = 128
MAX_EXPLANATION_BYTES = 512

_COUNT_NAMES = {severity: f"luckrate.violation_count.{severity}" for severity in Severity}
_RANK = {Severity.HARD: 0, Severity.SOFT: 1, Severity.WARN: 2}


@record(frozen=True, slots=True)
class SpanNote:
    """What to append to one held span."""

    span_id: str
    events: tuple[SpanEvent, ...] = ()
    attributes: Mapping[str, Value] = field(default_factory=nothing)


@record(frozen=True, slots=True)
class Evaluated:
    """The `gen_ai.evaluation.result` log event of a run. severity: INFO, WARN or ERROR, as OTLP numbers 9, 13, 17.

    service: whose agent it is about, "" if not told. ended_ns: when the run's last span ended, 0 if not told.
    violations: all of the run, as the span events that say so.
    """

    trace_id: str
    span_id: str
    service: str
    severity: int
    attributes: Mapping[str, Value]
    ended_ns: int = 0
    violations: tuple[SpanEvent, ...] = ()


@record(frozen=True, slots=True)
class Point:
    """One measurement of a metric of the vocabulary."""

    metric: str
    value: float
    attributes: Mapping[str, str]


@record(frozen=True, slots=True)
class Annotations:
    """Everything one verdict writes. event is None when the run has no trace to attach it to."""

    spans: tuple[SpanNote, ...] = ()
    event: Evaluated | None = None
    points: tuple[Point, ...] = ()


def annotate(run: ClosedRun, trajectory: Trajectory, verdict: Verdict) -> Annotations:
    """Say what a verdict writes on the run's spans, as log event and as metrics.

    A violation goes on the span of its step; where that span cannot be written on (it has left, or the step was rebuilt
    from messages) on the span of the step's agent, else on the root. What was written on a span when it left is not
    repeated.
    """
    places = _Places(run, trajectory)
    notes = _span_notes(places, trajectory, verdict)
    told = _run_attributes(trajectory, verdict)
    root = places.root
    if root:
        mine = notes.get(root, SpanNote(root))
        notes[root] = SpanNote(root, mine.events, {**mine.attributes, **told})
    events = tuple([event for note in notes.values() for event in note.events])
    event = _event(run, trajectory, verdict, told, events)
    return Annotations(tuple(notes.values()), event, _points(run, trajectory, verdict))


def annotate_early(run: ClosedRun, trajectory: Trajectory, verdict: Verdict) -> tuple[SpanNote, ...]:
    """What a verdict on a part of a run writes: its violations, on their spans.

    Neither the run's own attributes, as there is no verdict yet and these spans need not hold the root, nor the steps'
    numbers, as earlier ones may be missing.
    """
    unnumbered = replace(
        verdict,
        violations=tuple(replace(v, message=v.message.replace(f" (step {v.step})", "")) for v in verdict.violations),
    )
    notes = _span_notes(_Places(run, trajectory), trajectory, unnumbered)
    return tuple(replace(note, events=tuple(map(_unnumbered, note.events))) for note in notes.values())


def _unnumbered(event: SpanEvent) -> SpanEvent:
    kept = {key: value for key, value in event.attributes.items() if key != "luckrate.step.index"}
    return SpanEvent(event.name, event.time_ns, kept)


def _span_notes(places: _Places, trajectory: Trajectory, verdict: Verdict) -> dict[str, SpanNote]:
    found: dict[str, list[Violation]] = {}
    for violation in verdict.violations:
        place = places.of(violation)
        if place:
            found.setdefault(place, []).append(violation)
    return {span: _span_note(places, span, violations, trajectory, verdict) for span, violations in found.items()}


class _Places:
    """Which spans can be written on: the held ones, those of tools, agents and wrappers."""

    def __init__(self, run: ClosedRun, trajectory: Trajectory) -> None:
        self._facts = run.facts
        self._left = run.left
        self._steps = trajectory.steps
        self._start_ns = trajectory.start_ns
        self.root = self._root(run)

    def _root(self, run: ClosedRun) -> str | None:
        """The run's root; where that has left already (a model call, in a run without agent) its first held span."""
        if run.root:
            root = run.root.span_id
            if any(f.head.span_id == root and not f.log and f.role is not Role.MODEL for f in run.facts):
                return root
        first = min(
            (f.head for f in self._held.values()), key=lambda h: (h.start_ns, -h.end_ns, h.span_id), default=None
        )
        return first.span_id if first else None

    @cached_property
    def _held(self) -> Mapping[str, Facts]:
        """Made when there is a finding to place, which most runs have none of: 2 µs a run."""
        return {f.head.span_id: f for f in self._facts if not f.log and f.role is not Role.MODEL}

    def of(self, violation: Violation) -> str | None:
        if violation.step is None:
            return self.root
        span = violation.span or self._steps[violation.step].span
        if span in self._left and violation.rule in AT_ONCE:
            return None
        if span in self._held and span not in self._left:
            return span
        return self._agent_at(self._steps[violation.step]) or self.root

    def _agent_at(self, step: Step) -> str | None:
        """The agent's span that was going on when the step was issued: an agent may be invoked several times."""
        issued_ns = self._start_ns + int(step.t * 1e6)
        begun = [
            fact.head
            for fact in self._held.values()
            if fact.role is Role.AGENT
            and fact.agent == step.agent
            and fact.head.start_ns <= issued_ns
            and fact.head.span_id not in self._left
        ]
        return max(begun, key=lambda head: (head.start_ns, head.span_id)).span_id if begun else None

    def facts(self, span: str) -> Facts:
        return self._held[span]


def _span_note(
    places: _Places, span: str, violations: list[Violation], trajectory: Trajectory, verdict: Verdict
) -> SpanNote:
    ordered = sorted(violations, key=lambda v: _RANK[v.severity])
    at_ns = places.facts(span).head.end_ns
    events = tuple(
        SpanEvent(VIOLATION_EVENT, at_ns, _violation_attributes(v, trajectory, verdict))
        for v in ordered[:MAX_EVENTS_PER_SPAN]
    )
    rules = tuple(dict.fromkeys(v.rule for v in ordered))
    return SpanNote(span, events, {"luckrate.rules": rules, "luckrate.max_severity": str(ordered[0].severity)})


def _violation_attributes(violation: Violation, trajectory: Trajectory, verdict: Verdict) -> dict[str, Value]:
    call_ids = trajectory.call_ids
    step = violation.step
    told: dict[str, Value] = {
        "luckrate.rule": violation.rule,
        "luckrate.clause": violation.clause,
        "luckrate.severity": str(violation.severity),
        "luckrate.message": violation.message,
        "luckrate.spec.name": verdict.spec,
        "luckrate.step.index": step,
        TOOL_NAME: violation.tool,
        TOOL_CALL_ID: call_ids[step] if step is not None and step < len(call_ids) else None,
        "luckrate.argument": violation.argument,
        "luckrate.sources": violation.sources or None,
        "luckrate.evidence.span_ids": tuple(e.span for e in violation.evidence if e.span) or None,
    }
    return {key: value for key, value in told.items() if value is not None}


def _counts(verdict: Verdict) -> dict[str, int]:
    counts = dict.fromkeys(_COUNT_NAMES.values(), 0)
    for violation in verdict.violations:
        counts[_COUNT_NAMES[violation.severity]] += 1
    return counts


def _run_attributes(trajectory: Trajectory, verdict: Verdict) -> dict[str, Value]:
    told: dict[str, Value] = {
        "luckrate.verdict": verdict.verdict.value,
        "luckrate.output": verdict.output.value,
        "luckrate.output.source": verdict.output_source.value,
        "luckrate.path": verdict.path.value,
        "luckrate.lucky": verdict.verdict is VerdictLabel.LUCKY,
        "luckrate.spec.name": verdict.spec,
        "luckrate.spec.version": verdict.spec_version,
        "luckrate.steps": len(trajectory.steps),
        **_counts(verdict),
        "luckrate.not_evaluated": tuple(n.rule for n in verdict.not_evaluated) or None,
        "luckrate.close_reason": trajectory.close_reason.value,
        "luckrate.reason": verdict.reason,
    }
    return {key: value for key, value in told.items() if value is not None}


# Said of a run on its root span, not in its log event.
_OF_SPAN = frozenset({"luckrate.lucky", "luckrate.steps", "luckrate.not_evaluated"})
_SCORES = {PathState.OK: 1.0, PathState.BAD: 0.0}


def _event(
    run: ClosedRun,
    trajectory: Trajectory,
    verdict: Verdict,
    of_run: Mapping[str, Value],
    violations: tuple[SpanEvent, ...],
) -> Evaluated | None:
    if not run.trace_ids:
        return None
    hard = any(v.severity is Severity.HARD for v in verdict.violations)
    # OTLP severity numbers: ERROR 17, WARN 13, INFO 9.
    severity = 17 if hard else 13 if verdict.violations else 9
    score = _SCORES.get(verdict.path)
    told: dict[str, Value] = {
        "gen_ai.evaluation.name": EVALUATION_NAME,
        "gen_ai.evaluation.score.label": verdict.verdict.value,
        "gen_ai.evaluation.score.value": score if verdict.verdict is not VerdictLabel.NOT_GRADED else None,
        "gen_ai.evaluation.explanation": _explanation(verdict) or None,
        AGENT_NAME: trajectory.agent,
        CONVERSATION_ID: trajectory.conversation_id,
        "luckrate.run_id": trajectory.run_id,
        **{key: value for key, value in of_run.items() if key not in _OF_SPAN},
        "log.record.uid": _uid(run.run_id, verdict),
    }
    return Evaluated(
        run.trace_ids[0],
        run.root.span_id if run.root else "",
        run.root.service if run.root else "",
        severity,
        {key: value for key, value in told.items() if value is not None},
        max([facts.head.end_ns for facts in run.facts], default=0),
        violations,
    )


def _explanation(verdict: Verdict) -> str:
    """Rule ids and tools, worst first, at most 512 bytes; never a value."""
    words = dict.fromkeys(
        f"{v.rule}({v.tool})" if v.tool else v.rule for v in sorted(verdict.violations, key=lambda v: _RANK[v.severity])
    )
    text = ", ".join(words).encode(errors="replace")[:MAX_EXPLANATION_BYTES]
    return text.decode(errors="ignore")


def _uid(run_id: str, verdict: Verdict) -> str:
    """The same verdict on the same run has the same id, so that a backend can drop a second delivery."""
    key = "\x1f".join((run_id, verdict.spec or "", verdict.spec_version or "", verdict.verdict, verdict.path))
    return sha256(key.encode()).hexdigest()[:32]


def _agent_of(violation: Violation, trajectory: Trajectory) -> str:
    """Who made the offending call; for what belongs to the run as a whole, the run's own agent."""
    step = violation.step
    return (trajectory.agent or "") if step is None else trajectory.steps[step].agent


def _points(run: ClosedRun, trajectory: Trajectory, verdict: Verdict) -> tuple[Point, ...]:
    spec = verdict.spec or ""
    if verdict.verdict is VerdictLabel.NOT_GRADED:
        return (Point("luckrate.not_graded", 1, {"luckrate.spec.name": spec, "luckrate.reason": verdict.reason or ""}),)
    labels = {
        "luckrate.spec.name": spec,
        "luckrate.output": verdict.output.value,
        "luckrate.output.source": verdict.output_source.value,
        "luckrate.path": verdict.path.value,
    }
    service = run.root.service if run.root else ""
    by_agent = {**labels, "luckrate.service.name": service, AGENT_NAME: trajectory.agent or ""}
    of_spec = {"luckrate.spec.name": spec}
    points = [
        Point("luckrate.runs", 1, labels),
        Point("luckrate.agent.runs", 1, by_agent),
        Point("luckrate.run.steps", len(trajectory.steps), of_spec),
    ]
    if trajectory.duration is not None:
        points.append(Point("luckrate.run.duration", trajectory.duration / 1000, of_spec))
    points += [
        Point(
            "luckrate.violations",
            1,
            {
                **of_spec,
                "luckrate.rule": v.rule,
                "luckrate.severity": str(v.severity),
                TOOL_NAME: v.tool or "",
                AGENT_NAME: _agent_of(v, trajectory),
            },
        )
        for v in verdict.violations
    ]
    points += [
        Point("luckrate.not_evaluated", 1, {**of_spec, "luckrate.rule": n.rule, "luckrate.reason": str(n.reason)})
        for n in verdict.not_evaluated
    ]
    return tuple(points)
