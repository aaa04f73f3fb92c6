"""Ended spans in, spans to hand on out: the processor without its threads. Not safe for use by several at once."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from luckrate_otel import adapters, pipeline
from luckrate_otel.annotate import SpanNote
from luckrate_otel.assemble import AgentClocks, Assembler, Clocks, Closed, Effect, Held, Limits, Release
from luckrate_otel.conversation import Conversations
from luckrate_otel.facts import CloseReason, Facts, Role
from luckrate_otel.model import Trajectory, Verdict
from luckrate_otel.sdk.convert import to_span
from luckrate_otel.sdk.rebuild import rebuild
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import NOTHING, Span

_log = logging.getLogger(__name__)

_SECOND_NS: Final = 10**9

# Spans reach a processor as they end, with no batches in between; this is for those that end after their parent.
SETTLE_NS: Final = _SECOND_NS // 5

OnVerdict = Callable[[Trajectory, Verdict], None]


@dataclass(slots=True, eq=False)
class _Holding:
    """A held span. left: it was handed on before its run was judged."""

    span: ReadableSpan
    facts: Facts
    left: bool = False


class Grader:
    """graded, failed: runs, and stages that failed, for whoever asks. Nothing here raises."""

    def __init__(
        self,
        specs: Sequence[Spec],
        *,
        held_bytes: int,
        release_after_ns: int,
        verdict_after_ns: int,
        on_verdict: OnVerdict | None = None,
    ) -> None:
        self.failed: Counter[str] = Counter()
        self.graded = 0
        self._specs = tuple(specs)
        self._on_verdict = on_verdict
        clocks = Clocks(AgentClocks(SETTLE_NS, release_after_ns, verdict_after_ns))
        self._assembler = Assembler(clocks, Limits(held_bytes=held_bytes))
        self._conversations = Conversations()
        self._holdings: dict[_Holding, None] = {}
        self._verdicts: dict[str, Verdict] = {}

    def add(self, span: ReadableSpan, now_ns: int) -> ReadableSpan | None:
        """Take an ended span; given back is what is to be handed on at once, None if it is held."""
        try:
            return self._add(span, now_ns)
        except Exception:  # noqa: BLE001 - grading never harms the export
            self._fail("read")
            return span

    def _add(self, span: ReadableSpan, now_ns: int) -> ReadableSpan | None:
        read = to_span(span)
        facts = adapters.read(read)
        held = facts is not None and facts.role is not Role.MODEL
        if facts is not None:
            holding = _Holding(span, facts) if held else None
            if holding is not None:
                self._holdings[holding] = None
            self._assembler.add(facts, now_ns, payload=holding, size=_size(read) if held else 0)
        else:
            self._assembler.link(read.head.trace_id, read.head.span_id, read.head.parent_id, now_ns)
        if span.parent is not None and span.parent.is_remote:
            # The caller's spans never come here: for this process the chain of ancestors ends with the call.
            self._assembler.link(read.head.trace_id, read.head.parent_id, "", now_ns)
        return None if held else span

    def take(self, now_ns: int) -> list[ReadableSpan]:
        """Judge what is due; the spans to hand on."""
        return self._settle(self._assembler.take(now_ns))

    def next_deadline(self) -> int | None:
        return self._assembler.next_deadline()

    def leave(self) -> list[ReadableSpan]:
        """All that is held, with what can be said of it now; the runs stay open."""
        waiting = [holding for holding in self._holdings if not holding.left]
        notes = self._early(waiting)
        return [self._hand_on(holding, notes) for holding in waiting]

    def finish(self, now_ns: int) -> list[ReadableSpan]:
        """Judge all that is open, as the end of the process has come."""
        return self._settle(self._assembler.drain(CloseReason.SHUTDOWN, now_ns))

    # ---- effects -----------------------------------------------------------------------------------

    def _settle(self, effects: Sequence[Effect]) -> list[ReadableSpan]:
        return [span for effect in effects for span in self._one(effect)]

    def _one(self, effect: Effect) -> Iterator[ReadableSpan]:
        if isinstance(effect, Closed):
            notes = self._close(effect)
            yield from self._out(effect.held, notes)
        elif isinstance(effect, Release):
            yield from self._out(effect.held, self._early([h for h in map(_holding, effect.held) if not h.left]))
        else:
            self._verdicts.pop(effect.run_id, None)

    def _out(self, held: Sequence[Held], notes: dict[str, SpanNote]) -> Iterator[ReadableSpan]:
        for item in held:
            holding = _holding(item)
            if holding.left:
                self._holdings.pop(holding, None)
            else:
                yield self._hand_on(holding, notes, late=item.late, forget=True)

    def _hand_on(
        self, holding: _Holding, notes: dict[str, SpanNote], *, late: bool = False, forget: bool = False
    ) -> ReadableSpan:
        holding.left = True
        if forget:
            self._holdings.pop(holding, None)
        try:
            return rebuild(holding.span, notes.get(holding.facts.head.span_id), late=late)
        except Exception:  # noqa: BLE001 - as above
            self._fail("annotate")
            return holding.span

    def _close(self, closed: Closed) -> dict[str, SpanNote]:
        try:
            graded = pipeline.grade(closed.run, self._specs, self._conversations.place)
            self._conversations.remember(graded.trajectory, graded.trajectory.start_ns)
        except Exception:  # noqa: BLE001 - as above
            self._fail("grade")
            return {}
        before = next((self._verdicts.pop(run) for run in closed.supersedes if run in self._verdicts), None)
        self._verdicts[closed.run.run_id] = graded.verdict
        self.graded += before is None
        if before != graded.verdict:
            self._tell(graded.trajectory, graded.verdict)
        return {note.span_id: note for note in graded.annotations.spans}

    def _tell(self, trajectory: Trajectory, verdict: Verdict) -> None:
        if self._on_verdict is None:
            return
        try:
            self._on_verdict(trajectory, verdict)
        except Exception:  # noqa: BLE001 - the application's own code must not cost its spans
            self._fail("on_verdict")

    def _early(self, holdings: Sequence[_Holding]) -> dict[str, SpanNote]:
        """What holds of each trace whatever else comes."""
        try:
            by_trace: dict[str, list[Facts]] = {}
            for holding in holdings:
                by_trace.setdefault(holding.facts.head.trace_id, []).append(holding.facts)
            return {
                span_id: note
                for facts in by_trace.values()
                for span_id, note in pipeline.grade_early(facts, self._specs).items()
            }
        except Exception:  # noqa: BLE001 - as above
            self._fail("release")
            return {}

    def _fail(self, stage: str) -> None:
        self.failed[stage] += 1
        if self.failed[stage] == 1:  # once per stage: what fails for one span mostly fails for all
            _log.exception("%s failed; spans are handed on as they came", stage)


def _holding(held: Held) -> _Holding:
    assert isinstance(held.payload, _Holding)
    return held.payload


def _size(span: Span) -> int:
    """Bytes of what is long in a span: its texts."""
    values = [
        *span.attributes.values(),
        *(value for event in span.events for value in (event.attributes or NOTHING).values()),
    ]
    return sum(len(value) for value in values if isinstance(value, str | bytes))
