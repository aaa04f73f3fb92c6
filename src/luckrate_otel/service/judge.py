"""Check, annotate and encode: what the assembler hands out → bodies for the queues, and points for the metrics.

A failure in here costs annotations, never spans: the run's spans go on as they came, and the run is counted ungraded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from luckrate_otel import pipeline
from luckrate_otel.annotate import Evaluated, Point, SpanNote
from luckrate_otel.assemble import Closed, Effect, Final, Held, Release
from luckrate_otel.conversation import Begun, Conversations
from luckrate_otel.model import Verdict, VerdictLabel
from luckrate_otel.otlp import encode
from luckrate_otel.otlp.shallow import Envelope
from luckrate_otel.pipeline import Graded
from luckrate_otel.record import record, replace
from luckrate_otel.service.reading import Payload
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.waiting import Waiting
from luckrate_otel.service.windows import Window, Windows
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import NOTHING, Value
from luckrate_otel.vocabulary import METRICS, Kind

# Which spec would have graded it may not be known any more.
_FAILED = {"luckrate.spec.name": "", "luckrate.reason": "error"}

Measured = tuple[Point, str, str]

_COUNTERS = frozenset(metric.name for metric in METRICS if metric.kind is Kind.COUNTER)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Sendings:
    """What a round of verdicts sends: spans with their envelopes, our own log events, and metric points.

    points: (point, trace id, span id of its exemplar). begun: conversations of its runs, for the journal.
    """

    spans: list[tuple[Envelope, bytes]] = field(default_factory=list)
    events: list[Evaluated] = field(default_factory=list)
    points: list[Measured] = field(default_factory=list)
    graded: int = 0
    ungraded: list[str] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)


@record(frozen=True, slots=True)
class Report:
    """What is said of one run beside its spans: a digest, free of their contents, that can be kept for a while.

    ids: trace and span id of the root, empty where there is none. k: runs in its case's window, 0 if it was not graded.
    """

    run_id: str
    ids: tuple[str, str]
    verdict: Verdict
    event: Evaluated | None
    points: tuple[Point, ...]
    k: int


@record(frozen=True, slots=True)
class Sent:
    """The verdict that was last sent about a run, and how many were."""

    verdict: Verdict
    revision: int = 1


# What an evaluation still to come decides; a span that cannot wait for it says nothing of these.
UNDECIDED = frozenset({"luckrate.verdict", "luckrate.output", "luckrate.output.source", "luckrate.lucky"})


class Judge:
    """Grades closed runs with the specs in force. Holds what must outlive one run: conversations, standing verdicts,
    verdicts that wait for an evaluation, and the last runs of each case."""

    def __init__(self, specs: Sequence[Spec], conversations: Conversations, repeats: Repeats) -> None:
        self.specs = tuple(specs)
        self._conversations = conversations
        self._repeats = repeats
        self._standing: dict[str, Sent] = {}
        self._waiting: Waiting[Report] = Waiting()
        self._windows = Windows()

    @property
    def standing(self) -> int:
        """Verdicts kept until nothing late can change them."""
        return len(self._standing)

    @property
    def waiting(self) -> int:
        """Verdicts that wait for an evaluation."""
        return len(self._waiting)

    def awaits(self, run_id: str) -> bool:
        """Whether the verdict on this run waits for an evaluation."""
        return run_id in self._waiting

    def resume(self, begun: Iterable[Begun]) -> None:
        """Know of conversations that an earlier process has seen."""
        self._conversations.resume(begun)

    def is_due(self, now_ns: int) -> bool:
        """Whether settle() has something to do even without effects."""
        return self._waiting.is_due(now_ns)

    def settle(self, effects: Iterable[Effect], now_ns: int) -> Sendings:
        """Turn effects into what is to be sent, in their order, then what has waited long enough.

        now_ns: wall clock, the time of conversations and of waiting.
        """
        out = Sendings()
        for effect in effects:
            if isinstance(effect, Closed):
                self._close(effect, now_ns, out)
            elif isinstance(effect, Release):
                self._release(effect, out)
            elif isinstance(effect, Final):
                self._finish(effect, out)
        for report in self._waiting.due(now_ns):
            self._send(report, out)
        out.points = _together(out.points)
        return out

    def _close(self, closed: Closed, now_ns: int, out: Sendings) -> None:
        run = closed.run
        notes: Mapping[str, SpanNote] = NOTHING
        try:
            graded = pipeline.grade(run, self.specs, self._conversations.place)
            self._conversations.remember(graded.trajectory, now_ns)
            if (begun := self._conversations.begun(graded.trajectory)) is not None:
                out.begun.append(begun)
            waits = self._report(closed, graded, now_ns, out)
            notes = {note.span_id: _decided(note) if waits else note for note in graded.annotations.spans}
        except Exception:  # noqa: BLE001 - grading never harms forwarding
            self._failed("grade", run.run_id, out)
            if not closed.supersedes:
                out.points.append((Point("luckrate.not_graded", 1, _FAILED), "", ""))
        out.spans += [_annotated(held, notes) for held in closed.held]

    def _report(self, closed: Closed, graded: Graded, now_ns: int, out: Sendings) -> bool:
        """Send a verdict, or a correction of one that was sent; True if it waits for an evaluation instead.

        The wait is counted from the first verdict on: what is judged again meanwhile does not wait longer.
        """
        report, spec = _digest(closed, graded), graded.spec
        waited: list[tuple[int, Report]] = []
        if closed.supersedes:
            waited = [held for i in closed.supersedes if (held := self._waiting.pop(i)) is not None]
            before = next((self._standing.pop(i) for i in closed.supersedes if i in self._standing), None)
            if before is not None:
                self._correct(report, before, out)
                return False
        if spec is not None and spec.output.awaits(graded.trajectory):
            deadline_ns = min((due for due, _ in waited), default=now_ns + int(spec.output.wait * 1e9))
            self._waiting.put(report.run_id, report, deadline_ns)
            return True
        self._send(report, out)
        return False

    def _send(self, report: Report, out: Sendings) -> None:
        """Say it, and count the run: once, whatever is learnt later."""
        self._standing[report.run_id] = Sent(report.verdict)
        window = self._window(report)
        out.points.extend((point, *report.ids) for point in report.points)
        if window is not None and window.failed:
            out.points.append((_case_point(report.verdict), *report.ids))
        out.graded += report.verdict.verdict is not VerdictLabel.NOT_GRADED
        if report.event is not None:
            out.events.append(_with(report.event, _told(window)))

    def _correct(self, report: Report, before: Sent, out: Sendings) -> None:
        changed = before.verdict != report.verdict
        sent = Sent(report.verdict, before.revision + changed)
        self._standing[report.run_id] = sent
        if not changed:
            return
        window = self._window(report)
        out.points.append((_revision(before.verdict, report.verdict), *report.ids))
        if report.event is not None:
            out.events.append(_with(report.event, {**_told(window), "luckrate.revision": sent.revision}))

    def _window(self, report: Report) -> Window | None:
        return self._windows.add(report.run_id, report.verdict, report.k) if report.k else None

    def _finish(self, final: Final, out: Sendings) -> None:
        """Nothing can change it any more, so there is nothing to wait for either."""
        waited = self._waiting.pop(final.run_id)
        if waited is not None:
            self._send(waited[1], out)
        self._standing.pop(final.run_id, None)

    def _release(self, release: Release, out: Sendings) -> None:
        """Spans that leave before their run's verdict carry what can be said at once: forbidden and unknown tools."""
        notes: Mapping[str, SpanNote] = NOTHING
        try:
            notes = pipeline.grade_early([held.facts for held in release.held], self.specs)
        except Exception:  # noqa: BLE001 - grading never harms forwarding
            self._failed("release", release.trace_id, out)
        out.spans.extend(_annotated(held, notes) for held in release.held)

    def _failed(self, stage: str, run_id: str, out: Sendings) -> None:
        out.ungraded.append(stage)
        quiet = self._repeats.due(stage)
        if quiet is not None:
            _log.exception("%s failed for run %s; its spans are forwarded as they came%s", stage, run_id, quiet)


def _annotated(held: Held, notes: Mapping[str, SpanNote]) -> tuple[Envelope, bytes]:
    payload = held.payload
    assert isinstance(payload, Payload)
    note = notes.get(held.facts.head.span_id)
    if note is None and not held.late:  # most spans: 0.3 µs less for each
        return payload.envelope, payload.wire
    attributes = dict(note.attributes) if note else {}
    if held.late:
        attributes["luckrate.late"] = True
    if not attributes:
        return payload.envelope, payload.wire
    return payload.envelope, encode.append(payload.wire, note.events if note else (), attributes)


def _together(points: list[Measured]) -> list[Measured]:
    """The counts of a round by labels: the last with its exemplar, the others as one in front of it, without.

    The SDK takes 8 µs for each point, 1 µs of what a span costs.
    """
    found: list[Measured] = []
    last: dict[tuple[object, ...], Measured] = {}
    before: dict[tuple[object, ...], float] = {}
    for measured in points:
        point = measured[0]
        if point.metric not in _COUNTERS:
            found.append(measured)
            continue
        key: tuple[object, ...] = (point.metric, *point.attributes.items())
        if key in last:
            before[key] = before.get(key, 0) + last[key][0].value
        last[key] = measured
    for labels, measured in last.items():
        if labels in before:
            found.append((replace(measured[0], value=before[labels]), "", ""))
        found.append(measured)
    return found


def _revision(before: Verdict, after: Verdict) -> Point:
    return Point(
        "luckrate.revisions",
        1,
        {
            "luckrate.spec.name": after.spec or "",
            "luckrate.from": str(before.verdict),
            "luckrate.to": str(after.verdict),
        },
    )


def _digest(closed: Closed, graded: Graded) -> Report:
    root, verdict, spec = closed.run.root, graded.verdict, graded.spec
    judged = spec is not None and verdict.verdict is not VerdictLabel.NOT_GRADED
    return Report(
        closed.run.run_id,
        (root.trace_id, root.span_id) if root else ("", ""),
        verdict,
        graded.annotations.event,
        graded.annotations.points,
        spec.k if judged and spec else 0,
    )


def _decided(note: SpanNote) -> SpanNote:
    return replace(note, attributes={key: value for key, value in note.attributes.items() if key not in UNDECIDED})


def _case_point(verdict: Verdict) -> Point:
    return Point("luckrate.case.soft_majority", 1, {"luckrate.spec.name": verdict.spec or ""})


def _told(window: Window | None) -> dict[str, Value]:
    if window is None:
        return {}
    return {
        "luckrate.case.id": window.case,
        "luckrate.case.runs": window.runs,
        "luckrate.case.soft": window.soft,
        "luckrate.case.soft_majority": window.failed,
    }


def _with(event: Evaluated, attributes: Mapping[str, Value]) -> Evaluated:
    return replace(event, attributes={**event.attributes, **attributes})
