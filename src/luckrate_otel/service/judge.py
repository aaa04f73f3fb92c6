"""Check, annotate and encode: what the assembler hands out → bodies for the queues, and points for the metrics.

A failure in here costs annotations, never spans: the run's spans go on as they came, and the run is counted ungraded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from luckrate_otel import pipeline
from luckrate_otel.annotate import Annotations, Evaluated, Point, SpanNote
from luckrate_otel.assemble import Closed, Effect, Final, Held, Release
from luckrate_otel.conversation import Conversations
from luckrate_otel.model import Verdict, VerdictLabel
from luckrate_otel.otlp import encode
from luckrate_otel.otlp.shallow import Envelope
from luckrate_otel.service.reading import Payload
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import NOTHING

# Which spec would have graded it may not be known any more.
_FAILED = {"luckrate.spec.name": "", "luckrate.reason": "error"}

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Sendings:
    """What a round of verdicts sends: spans with their envelopes, our own log events, and metric points.

    points: (point, trace id, span id of its exemplar).
    """

    spans: list[tuple[Envelope, bytes]] = field(default_factory=list)
    events: list[Evaluated] = field(default_factory=list)
    points: list[tuple[Point, str, str]] = field(default_factory=list)
    graded: int = 0
    ungraded: list[str] = field(default_factory=list)


class Judge:
    """Grades closed runs with the specs in force. Holds what must outlive one run: conversations, standing verdicts."""

    def __init__(self, specs: Sequence[Spec], conversations: Conversations, repeats: Repeats) -> None:
        self.specs = tuple(specs)
        self._conversations = conversations
        self._repeats = repeats
        self._standing: dict[str, Verdict] = {}

    @property
    def standing(self) -> int:
        """Verdicts kept until nothing late can change them."""
        return len(self._standing)

    def settle(self, effects: Iterable[Effect], now_ns: int) -> Sendings:
        """Turn effects into what is to be sent, in their order. now_ns: wall clock, the time of conversations."""
        out = Sendings()
        for effect in effects:
            if isinstance(effect, Closed):
                self._close(effect, now_ns, out)
            elif isinstance(effect, Release):
                self._release(effect, out)
            elif isinstance(effect, Final):
                self._standing.pop(effect.run_id, None)
        return out

    def _close(self, closed: Closed, now_ns: int, out: Sendings) -> None:
        run = closed.run
        notes: Mapping[str, SpanNote] = NOTHING
        try:
            graded = pipeline.grade(run, self.specs, self._conversations.place)
            self._conversations.remember(graded.trajectory, now_ns)
            self._report(closed, graded.verdict, graded.annotations, out)
            notes = {note.span_id: note for note in graded.annotations.spans}
        except Exception:  # noqa: BLE001 - grading never harms forwarding
            self._failed("grade", run.run_id, out)
            if not closed.supersedes:
                out.points.append((Point("luckrate.not_graded", 1, _FAILED), "", ""))
        out.spans.extend(_annotated(held, notes) for held in closed.held)

    def _report(self, closed: Closed, verdict: Verdict, annotations: Annotations, out: Sendings) -> None:
        run = closed.run
        ids = (run.root.trace_id, run.root.span_id) if run.root else ("", "")
        before = next((self._standing.pop(i) for i in closed.supersedes if i in self._standing), None)
        self._standing[run.run_id] = verdict
        if before is None:
            out.points.extend((point, *ids) for point in annotations.points)
            out.graded += verdict.verdict is not VerdictLabel.NOT_GRADED
        elif before == verdict:
            return
        else:
            out.points.append((_revision(before, verdict), *ids))
        if annotations.event is not None:
            out.events.append(_revised(annotations.event, closed.revision))

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
        suppressed = self._repeats.due(stage)
        if suppressed is not None:
            _log.exception("%s failed for run %s; its spans are forwarded as they came", stage, run_id)


def _annotated(held: Held, notes: Mapping[str, SpanNote]) -> tuple[Envelope, bytes]:
    payload = held.payload
    assert isinstance(payload, Payload)
    note = notes.get(held.facts.head.span_id)
    attributes = dict(note.attributes) if note else {}
    if held.late:
        attributes["luckrate.late"] = True
    if not attributes:
        return payload.envelope, payload.wire
    return payload.envelope, encode.append(payload.wire, note.events if note else (), attributes)


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


def _revised(event: Evaluated, revision: int) -> Evaluated:
    if revision < 2:
        return event
    return replace(event, attributes={**event.attributes, "luckrate.revision": revision})
