"""Verdicts read back off the spans that reached a backend: what anyone sees there, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from luckrate_otel.model import OutputSource, OutputState, PathState, Severity, Verdict, VerdictLabel, Violation
from luckrate_otel.telemetry import Span, SpanEvent
from luckrate_otel.vocabulary import TOOL_NAME, VIOLATION_EVENT


@dataclass(frozen=True, slots=True)
class Received:
    """One run's verdict. trace_id and root: where it was written; not_evaluated: rule ids."""

    trace_id: str
    root: str
    verdict: Verdict
    not_evaluated: tuple[str, ...]


def read_verdicts(spans: Sequence[Span]) -> list[Received]:
    """The runs among spans, in the order of their roots' start."""
    roots = sorted(
        (span for span in spans if "luckrate.verdict" in span.attributes), key=lambda span: span.head.start_ns
    )
    return [_received(root, spans) for root in roots]


def _received(root: Span, spans: Sequence[Span]) -> Received:
    told = root.attributes
    violations = [v for span in spans if span.head.trace_id == root.head.trace_id for v in _violations(span)]
    verdict = Verdict(
        verdict=VerdictLabel(told["luckrate.verdict"]),
        path=PathState(told["luckrate.path"]),
        output=OutputState(told["luckrate.output"]),
        output_source=OutputSource(told["luckrate.output.source"]),
        violations=tuple(sorted(violations, key=lambda v: (v.step is None, v.step or 0))),
        spec=told.get("luckrate.spec.name"),
        spec_version=told.get("luckrate.spec.version"),
        reason=told.get("luckrate.reason"),
    )
    return Received(root.head.trace_id, root.head.span_id, verdict, tuple(told.get("luckrate.not_evaluated", ())))


def _violations(span: Span) -> Iterator[Violation]:
    return (_violation(span, event) for event in span.events if event.name == VIOLATION_EVENT)


def _violation(span: Span, event: SpanEvent) -> Violation:
    told = event.attributes
    return Violation(
        rule=told["luckrate.rule"],
        clause=told["luckrate.clause"],
        severity=Severity(told["luckrate.severity"]),
        message=told["luckrate.message"],
        step=told.get("luckrate.step.index"),
        tool=told.get(TOOL_NAME),
        argument=told.get("luckrate.argument"),
        sources=tuple(told.get("luckrate.sources", ())),
        span=span.head.span_id,
    )
