"""The span processor: holds the tool and agent spans of a run, grades the run, hands them on annotated."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from opentelemetry import baggage
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from luckrate_otel.sdk.grader import SETTLE_NS, Grader, OnVerdict
from luckrate_otel.sdk.rebuild import CASE
from luckrate_otel.spec import Spec
from luckrate_otel.specfile import load_spec

_log = logging.getLogger(__name__)

AnySpec = Spec | Mapping[str, Any] | str | os.PathLike[str]

# Ended spans that wait for the thread. It empties the queue as fast as it can; the SDK's own queue holds a quarter.
MAX_WAITING: Final = 8192

# Contents of the spans of open runs. An application has a few open at a time, unlike a processor for a fleet.
HELD_BYTES: Final = 64 * 2**20

# Seconds. As the processor's: a live run is to be visible; a root that has not come by then will not.
RELEASE_AFTER: Final = 120.0
VERDICT_AFTER: Final = 900.0


class LuckrateSpanProcessor(SpanProcessor):
    """Stands before another span processor, which gets every span that ends, tool and agent spans with findings.

    Ending a span costs the application an append to a queue: reading, grading and handing on are done in a thread of
    this processor. Tool and agent spans wait for their run's verdict, all others are handed on at once. Grading never
    harms the export: whatever fails, the span is handed on as it came; `failed` counts stages that did.

    force_flush() hands on all that is held (open runs stay open), shutdown() judges all that is open first. After a
    fork the child begins anew: what was held stays the parent's.
    """

    def __init__(
        self,
        next_processor: SpanProcessor,
        specs: AnySpec | Sequence[AnySpec] = (),
        *,
        on_verdict: OnVerdict | None = None,
        held_bytes: int = HELD_BYTES,
        release_after: float = RELEASE_AFTER,
        verdict_after: float = VERDICT_AFTER,
    ) -> None:
        """specs: Spec, mapping or file; of several the first whose match fits grades a run; none: the rules that are on
        by default. on_verdict: called with the trajectory and verdict of each run, from the processor's thread.
        held_bytes, release_after, verdict_after (seconds): as in the configuration. SpecError for a bad spec.
        """
        self._next = next_processor
        self._specs = _read(specs)
        self._settings: dict[str, Any] = {
            "held_bytes": held_bytes,
            "release_after_ns": int(release_after * 10**9),
            "verdict_after_ns": int(verdict_after * 10**9),
            "on_verdict": on_verdict,
        }
        self._shut = False
        self._begin()
        if hasattr(os, "register_at_fork"):
            again = weakref.WeakMethod(self._begin)

            def in_child() -> None:
                begin = again()
                if begin is not None:
                    begin()

            os.register_at_fork(after_in_child=in_child)

    def _begin(self) -> None:
        """All state that belongs to one process. Locks are made anew: another thread may have held them at the fork."""
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._waiting: deque[ReadableSpan] = deque()
        self._skew_ns = 0
        self._grader = Grader(self._specs, **self._settings)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @property
    def failed(self) -> Counter[str]:
        """Stages that failed, by name: read, grade, annotate, release, take, on_verdict.

        full: spans that found no room in the queue. next: the next processor raised.
        """
        return self._grader.failed

    # ---- the SDK's side ----------------------------------------------------------------------------

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        try:
            case = baggage.get_baggage(CASE, parent_context)
            if isinstance(case, str) and case and CASE not in (span.attributes or {}):
                span.set_attribute(CASE, case)
        finally:
            self._next.on_start(span, parent_context)

    def _on_ending(self, span: Span) -> None:
        self._next._on_ending(span)  # noqa: SLF001 - the SDK's own name for this hook

    def on_end(self, span: ReadableSpan) -> None:
        if self._shut or len(self._waiting) >= MAX_WAITING:
            self._grader.failed["full"] += not self._shut
            self._next.on_end(span)
            return
        self._waiting.append(span)
        if self._thread is None:
            self._start()
        self._wake.set()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Hand on all that has ended, then flush the next processor."""
        until = time.monotonic() + timeout_millis / 1000
        if not self._lock.acquire(timeout=timeout_millis / 1000):
            return False
        try:
            self._work_to_the_end()
            self._emit(self._grader.leave())
        finally:
            self._lock.release()
        left = max(0, int((until - time.monotonic()) * 1000))
        return bool(self._next.force_flush(left))

    def shutdown(self) -> None:
        """Judge all that is open, hand everything on, shut the next processor down. Later spans pass as they are."""
        with self._lock:
            if self._shut:
                return
            self._shut = True
            self._work_to_the_end()
            self._emit(self._grader.finish(self._now_ns()))
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        self._next.shutdown()

    # ---- the thread --------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._shut:
                self._thread = threading.Thread(
                    target=_run, args=(weakref.ref(self), self._wake), name="luckrate", daemon=True
                )
                self._thread.start()

    def _round(self) -> float | None:
        """One round of the thread; seconds until there is something to do without a new span, None for never."""
        with self._lock:
            self._work()
            due_ns = self._grader.next_deadline()
            return None if due_ns is None else max(0.0, (due_ns - self._now_ns()) / 1e9)

    def _work(self) -> None:
        """Take what waits, judge what is due. Called with the lock held."""
        now_ns = self._now_ns()
        while self._waiting:
            span = self._waiting.popleft()
            passed = self._grader.add(span, now_ns)
            if passed is not None:
                self._emit((passed,))
        try:
            self._emit(self._grader.take(now_ns))
        except Exception:  # noqa: BLE001 - the thread must live; what is held leaves with the next flush
            self._grader.failed["take"] += 1

    def _work_to_the_end(self) -> None:
        """As _work; what has ended by now is all there is, so that nothing is waited for."""
        self._work()
        self._skew_ns += SETTLE_NS
        self._work()

    def _emit(self, spans: Iterable[ReadableSpan]) -> None:
        for span in spans:
            try:
                self._next.on_end(span)
            except Exception:  # noqa: BLE001 - one span is isolated from the next, and the thread from all of them
                self._grader.failed["next"] += 1

    def _now_ns(self) -> int:
        return time.monotonic_ns() + self._skew_ns


def _run(processor: weakref.ref[LuckrateSpanProcessor], wake: threading.Event) -> None:
    """Rounds until the processor is shut down or gone; it is not kept alive by its own thread."""
    seconds: float | None = 0.0
    while True:
        wake.wait(seconds)
        wake.clear()
        alive = processor()
        if alive is None or alive._shut:  # noqa: SLF001 - its own thread
            return
        seconds = alive._round()  # noqa: SLF001 - its own thread
        # With nothing due it still looks now and then whether the processor is there.
        seconds = 60.0 if seconds is None else min(seconds, 60.0)
        del alive


def _read(specs: AnySpec | Sequence[AnySpec]) -> tuple[Spec, ...]:
    several = [specs] if isinstance(specs, Spec | Mapping | str | os.PathLike) else list(specs)
    read = tuple(map(_read_one, several)) or (Spec.from_mapping({"name": "default"}),)
    for spec in read:
        for warning in spec.warnings:
            _log.warning("spec %s: %s", spec.name, warning)
    return read


def _read_one(spec: AnySpec) -> Spec:
    if isinstance(spec, Spec):
        return spec
    return Spec.from_mapping(spec) if isinstance(spec, Mapping) else load_spec(Path(spec))
