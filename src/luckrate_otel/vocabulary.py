"""Every name luckrate-otel puts on the wire: one table that code, docs, dashboards and tests read.

Names follow the OpenTelemetry naming rules (lower case, dots as namespaces, no unit and no `_total` in the name, UCUM
units, singular annotations in braces). Renaming one is a breaking change. Standard names are used where one exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SCOPE: Final = "luckrate"

VIOLATION_EVENT: Final = "luckrate.violation"
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "luckrate.path"

# Reused from the semantic conventions.
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"


class Place(StrEnum):
    """Where an attribute is found."""

    RUN = "root agent span"
    TOOL = "offending span"
    EVENT = "luckrate.violation event"
    LATE = "span that came after the verdict"
    LOG = "gen_ai.evaluation.result log event"


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: str
    place: tuple[Place, ...]
    meaning: str


ATTRIBUTES: Final = (
    Attribute(
        "luckrate.verdict", "string", (Place.RUN, Place.LOG), "pass, lucky, unverified, fail, unknown, not_graded"
    ),
    Attribute(
        "luckrate.output", "string", (Place.RUN, Place.LOG), "ok, not_ok or unknown: what is known of the answer"
    ),
    Attribute(
        "luckrate.output.source",
        "string",
        (Place.RUN, Place.LOG),
        "who said so: evaluation, attribute, check, status, none",
    ),
    Attribute("luckrate.path", "string", (Place.RUN, Place.LOG), "ok, bad or unknown: how the run got there"),
    Attribute("luckrate.lucky", "boolean", (Place.RUN,), "the output is ok and the path is bad"),
    Attribute("luckrate.spec.name", "string", (Place.RUN, Place.EVENT, Place.LOG), "spec that graded the run"),
    Attribute("luckrate.spec.version", "string", (Place.RUN, Place.LOG), "hash of that spec's content"),
    Attribute("luckrate.steps", "int", (Place.RUN,), "tool calls in the run"),
    Attribute("luckrate.violation_count.hard", "int", (Place.RUN, Place.LOG), "hard violations in the run"),
    Attribute("luckrate.violation_count.soft", "int", (Place.RUN, Place.LOG), "soft violations in the run"),
    Attribute("luckrate.violation_count.warn", "int", (Place.RUN, Place.LOG), "warnings in the run"),
    Attribute("luckrate.not_evaluated", "string[]", (Place.RUN,), "rules that could not be judged"),
    Attribute(
        "luckrate.close_reason", "string", (Place.RUN, Place.LOG), "root, no_root, memory, shutdown, end_of_input"
    ),
    Attribute("luckrate.reason", "string", (Place.RUN, Place.LOG), "why a run was not graded"),
    Attribute("luckrate.rules", "string[]", (Place.TOOL,), "rules this span breaks"),
    Attribute("luckrate.max_severity", "string", (Place.TOOL,), "worst of their severities: hard, soft, warn"),
    Attribute("luckrate.late", "boolean", (Place.LATE,), "the span came after its run's verdict"),
    Attribute("luckrate.revision", "int", (Place.LOG,), "2 and up: a late span or evaluation changed the verdict"),
    Attribute("luckrate.run_id", "string", (Place.LOG,), "trace id and root span id of the run"),
    Attribute("luckrate.case.id", "string", (Place.LOG,), "hash of the case the run belongs to"),
    Attribute("luckrate.case.runs", "int", (Place.LOG,), "runs in the case's live window, at most the spec's k"),
    Attribute("luckrate.case.soft", "int", (Place.LOG,), "those of them with a soft violation"),
    Attribute("luckrate.case.soft_majority", "boolean", (Place.LOG,), "most of them have one: the gate would fail"),
    Attribute("luckrate.rule", "string", (Place.EVENT,), "rule that was broken"),
    Attribute("luckrate.clause", "string", (Place.EVENT,), "part of the spec, e.g. before[1]"),
    Attribute("luckrate.severity", "string", (Place.EVENT,), "hard, soft, warn"),
    Attribute("luckrate.message", "string", (Place.EVENT,), "the finding in words, without values"),
    Attribute("luckrate.step.index", "int", (Place.EVENT,), "step of the run, 0-based"),
    Attribute("luckrate.argument", "string", (Place.EVENT,), "path of the argument in the call"),
    Attribute("luckrate.sources", "string[]", (Place.EVENT,), "where the value came from, without the value"),
    Attribute("luckrate.evidence.span_ids", "string[]", (Place.EVENT,), "spans of the steps behind the finding"),
)


class Kind(StrEnum):
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Metric:
    """buckets: explicit boundaries of a histogram, in its unit."""

    name: str
    kind: Kind
    unit: str
    attributes: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()


_RUN: Final = ("luckrate.spec.name", "luckrate.output", "luckrate.output.source", "luckrate.path")

METRICS: Final = (
    Metric("luckrate.runs", Kind.COUNTER, "{run}", _RUN, "Runs, each counted once, at its first verdict."),
    Metric(
        "luckrate.not_graded",
        Kind.COUNTER,
        "{run}",
        ("luckrate.spec.name", "luckrate.reason"),
        "Runs in no denominator: no spec fits, no agent, no tool information, or grading failed.",
    ),
    Metric(
        "luckrate.agent.runs",
        Kind.COUNTER,
        "{run}",
        (*_RUN, "luckrate.service.name", AGENT_NAME),
        "The same runs by service and agent.",
    ),
    Metric(
        "luckrate.violations",
        Kind.COUNTER,
        "{violation}",
        ("luckrate.spec.name", "luckrate.rule", "luckrate.severity", TOOL_NAME, AGENT_NAME),
        "Violations found; the agent is the one that made the call.",
    ),
    Metric(
        "luckrate.not_evaluated",
        Kind.COUNTER,
        "{rule}",
        ("luckrate.spec.name", "luckrate.rule", "luckrate.reason"),
        "Rules that could not be judged, and why.",
    ),
    Metric(
        "luckrate.revisions",
        Kind.COUNTER,
        "{revision}",
        ("luckrate.spec.name", "luckrate.from", "luckrate.to"),
        "Verdicts that a late span or evaluation changed.",
    ),
    Metric(
        "luckrate.case.soft_majority",
        Kind.COUNTER,
        "{run}",
        ("luckrate.spec.name",),
        "Runs after which most of their case's last runs had a soft violation.",
    ),
    Metric(
        "luckrate.run.steps",
        Kind.HISTOGRAM,
        "{step}",
        ("luckrate.spec.name",),
        "Tool calls per run.",
        (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 100, 250, 1000),
    ),
    Metric(
        "luckrate.run.duration",
        Kind.HISTOGRAM,
        "s",
        ("luckrate.spec.name",),
        "Time from a run's first span to its last.",
        # The bucket advice of the GenAI conventions for agent invocations.
        (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6),
    ),
    Metric("luckrate.spans.received", Kind.COUNTER, "{span}", (), "Spans in acknowledged requests."),
    Metric(
        "luckrate.spans",
        Kind.COUNTER,
        "{span}",
        ("luckrate.destination", "luckrate.outcome", "luckrate.reason"),
        "What became of spans, per destination: forwarded, rejected by it, or dropped with a reason.",
    ),
    Metric(
        "luckrate.ledger",
        Kind.COUNTER,
        "{item}",
        ("luckrate.signal", "luckrate.entry", "luckrate.destination", "luckrate.reason"),
        "Spans and log records (requests, for metrics and profiles) by where they came in and went to.",
    ),
    Metric("luckrate.journal.size", Kind.GAUGE, "By", (), "Bytes that the journal takes on disk."),
    Metric("luckrate.held.spans", Kind.GAUGE, "{span}", (), "Spans held until their run is judged."),
    Metric("luckrate.held.size", Kind.GAUGE, "By", (), "Bytes of held spans and open runs, as accounted."),
    Metric("luckrate.open_runs", Kind.GAUGE, "{run}", (), "Runs that still wait for their verdict."),
    Metric("luckrate.queue.size", Kind.GAUGE, "By", ("luckrate.destination",), "Bytes waiting for a destination."),
    Metric(
        "luckrate.queue.limit",
        Kind.GAUGE,
        "By",
        ("luckrate.destination",),
        "Bytes that may wait for a destination before senders are told to retry.",
    ),
    Metric(
        "luckrate.unaccounted",
        Kind.GAUGE,
        "{item}",
        ("luckrate.signal",),
        "Received less what was forwarded, is held, or was dropped with a reason; 0 unless there is a defect.",
    ),
    Metric(
        "luckrate.reloads",
        Kind.COUNTER,
        "{reload}",
        ("luckrate.outcome",),
        "SIGHUPs, by outcome: applied, or refused because a file was unusable.",
    ),
    Metric("luckrate.late.spans", Kind.COUNTER, "{span}", (), "Spans that came after their run's verdict."),
)
