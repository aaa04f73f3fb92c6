"""The state machine: spans and log records in, runs to judge and spans to forward out, when their time has come."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import nsmallest

from luckrate_otel.assemble.check import Candidate, candidates, last_candidates
from luckrate_otel.assemble.clocks import Clocks, Limits
from luckrate_otel.assemble.closing import AllLinks, Closing, Due
from luckrate_otel.assemble.compact import compact
from luckrate_otel.assemble.counts import Counts
from luckrate_otel.assemble.deadlines import Deadlines
from luckrate_otel.assemble.effects import Compact, Effect, Held, Release, ReleaseReason, Restore
from luckrate_otel.assemble.sharing import Shared, has_shareable
from luckrate_otel.assemble.sizes import LINK_BYTES, TRACE_BYTES, size_of_facts
from luckrate_otel.assemble.trace import NEVER_NS, Entry, Novelty, Trace, key_of
from luckrate_otel.facts import CloseReason, Facts
from luckrate_otel.record import replace

# A look at a trace costs about 3 µs per fact. Large traces are looked at less often, so that no trace costs more than
# 3 % of a core; their runs may be judged up to 0.1 ms per fact later than they are due.
LARGE_TRACE = 256
LARGE_TRACE_WAIT_NS = 100_000

# When memory is full it is freed down to this share at once, so that one search for the heaviest serves many spans.
MEMORY_TARGET = 0.9


class Assembler:
    """Collects facts by trace, and hands runs out when they are complete or their time has passed.

    now_ns everywhere: nanoseconds of one clock that never decreases (ValueError if it does: clamping would hide a clock
    that jumps, and with it runs that never close). No timers: call take() at next_deadline(), or more often. Between a
    deadline and the next take() a run still accepts what comes.
    """

    def __init__(
        self,
        clocks: Clocks | None = None,
        limits: Limits | None = None,
        *,
        restore: Restore | None = None,
        compact: Compact = compact,
    ) -> None:
        """restore: full facts of a held span, read again from its payload; given one, the facts of spans with payloads
        over `limits.compact_over_bytes` are kept without contents. It must answer the same facts every time."""
        self.counts = Counts()
        self._clocks = clocks or Clocks()
        self._limits = limits or Limits()
        self._compact = compact if restore is not None else None
        self._closing = Closing(self.counts, self._clocks.late_window_ns, self._limits.late_bytes, restore)
        self._settle_ns = self._clocks.shortest_settle_ns
        self._traces: dict[str, Trace] = {}
        self._open_ids: set[bytes] = set()
        self._linked: dict[str, Trace] = {}  # traces with links, in the order they got their first
        self._deadlines = Deadlines()
        self._passing: list[Due] = []
        self._now_ns = -NEVER_NS

    # ---- in --------------------------------------------------------------------------------------

    @property
    def open_traces(self) -> Collection[bytes]:
        """Raw 16-byte ids of the traces that links are remembered of. A live view; not to be changed."""
        return self._open_ids

    def add(self, facts: Facts, now_ns: int, *, payload: object | None = None, size: int = 0) -> None:
        """Take the facts of one span or log record.

        payload: what to hold until the run is judged, handed out again exactly once by take() or drain(); None for a
        span that was passed on already, and for log records. size: bytes of the payload.
        """
        self._tick(now_ns)
        trace_id = facts.head.trace_id
        if not trace_id:  # a log record outside every trace: it can be joined with nothing
            self._pass_on(facts, ReleaseReason.NO_RUN, payload, size)
            return
        trace = self._traces.get(trace_id) or self._open(trace_id)
        light = None  # the facts without contents, if those can be read again and are worth it
        if self._compact is not None and payload is not None and size > self._limits.compact_over_bytes:
            light = replace(self._compact(facts), head=replace(facts.head, trace_id=trace.trace_id))  # one text for all
        key = key_of(facts)
        novelty = trace.novelty(key, facts, light) if key in trace.entries else Novelty.NEW
        if novelty is Novelty.NEW:
            self._keep(trace, key, facts, light, payload, size)
            return
        self.counts.duplicates += novelty is Novelty.SAME
        self.counts.conflicting += novelty is Novelty.CONFLICTING
        self._pass_on(facts, ReleaseReason.DUPLICATE, payload, size)

    def link(self, trace_id: str, span_id: str, parent_id: str, now_ns: int) -> None:
        """Remember the parent of a span that no adapter claimed. Ignored unless the trace is open; first one wins."""
        self._tick(now_ns)
        trace = self._traces.get(trace_id)
        if trace is None or span_id in trace.links or span_id in trace.entries:
            return
        trace.links[span_id] = parent_id
        trace.settled = False
        trace.link_ns[span_id] = now_ns
        self._linked.setdefault(trace_id, trace)
        self.counts.link_bytes += LINK_BYTES
        while self.counts.link_bytes > self._limits.link_bytes:
            oldest = next(iter(self._linked.values()))
            self.counts.links_dropped += len(oldest.links)
            self._drop_links(oldest)
        self._look_by(trace, now_ns + self._settle_ns)

    def reconfigure(self, clocks: Clocks, limits: Limits) -> None:
        """Wait and hold by these from the next look at each trace on."""
        self._clocks = clocks
        self._limits = limits
        self._settle_ns = clocks.shortest_settle_ns
        self._closing.reconfigure(clocks.late_window_ns, limits.late_bytes)
        for trace in self._traces.values():
            self._look_by(trace, self._now_ns)

    def overview(self, at_most: int) -> list[tuple[str, int, int, int]]:
        """(trace id, spans and records, bytes, next deadline) of the traces that are due first."""
        waiting = (trace for trace in self._traces.values() if trace.size)
        first = nsmallest(at_most, waiting, key=lambda trace: trace.queued_ns)
        return [(trace.trace_id, trace.count, trace.size, trace.queued_ns) for trace in first]

    @property
    def is_full(self) -> bool:
        """Whether what is held takes more than it may; the next take() judges early until it does not."""
        return self.counts.held_bytes > self._limits.held_bytes

    def waiting(self, trace_id: str) -> bool:
        """Whether anything of the trace still waits for a verdict."""
        trace = self._traces.get(trace_id)
        return trace is not None and trace.size > 0

    def restore_judged(self, run_id: str, revision: int, expires_ns: int) -> None:
        """Remember a run that was judged before a restart, so that what comes late does not make it a second run.

        Its facts are gone: as after a shortage of memory, what comes is forwarded as late. expires_ns: on the clock of
        add(); the run's Final comes then.
        """
        trace_id, _, root_id = run_id.partition(":")
        trace = self._traces.get(trace_id) or self._open(trace_id)
        self._closing.restore(trace, run_id, root_id, revision, expires_ns)
        self._look_by(trace, expires_ns)

    # ---- out -------------------------------------------------------------------------------------

    def next_deadline(self) -> int | None:
        """When take() has something to do, None if nothing is open. It may find then that the time has moved."""
        if self._passing or self.is_full:
            return self._now_ns
        return self._deadlines.next_ns()

    def take(self, now_ns: int) -> tuple[Effect, ...]:
        """What is due, oldest deadline first, each exactly once.

        Cost: O(log traces) and one look at the trace for each trace whose deadline has passed.
        """
        self._tick(now_ns)
        out = self._passing
        self._passing = []
        self.counts.held_spans -= len(out)
        while (trace := self._deadlines.pop_due(now_ns)) is not None:
            self._visit(trace, out)
        if self.is_full:
            self._make_room(out)
        for trace in self._closing.bound(now_ns, out):
            self._schedule(trace)
        out.sort(key=lambda due: due[0])
        return tuple(effect for _, effect in out)

    def drain(self, reason: CloseReason, now_ns: int) -> tuple[Effect, ...]:
        """Judge everything open and hand out everything held, by the traces' first spans. Nothing is left."""
        self._tick(now_ns)
        out = self._passing
        self._passing = []
        self.counts.held_spans -= len(out)
        for trace in list(self._traces.values()):
            self._judge_all(trace, reason, out)
            for judged in list(trace.judged.values()):
                self._closing.finish(trace, judged, now_ns, out)
            self._schedule(trace)
        return tuple(effect for _, effect in out)

    # ---- traces ----------------------------------------------------------------------------------

    def _tick(self, now_ns: int) -> None:
        if now_ns < self._now_ns:
            raise ValueError(f"now_ns went back by {self._now_ns - now_ns} ns")
        self._now_ns = now_ns

    def _open(self, trace_id: str) -> Trace:
        trace = self._traces[trace_id] = Trace(trace_id, self._now_ns)
        self._open_ids.add(_raw(trace_id))
        return trace

    def _close(self, trace: Trace) -> None:
        self._drop_links(trace)
        self._set_open_runs(trace, 0)
        self._deadlines.put(trace, NEVER_NS)
        del self._traces[trace.trace_id]
        self._open_ids.discard(_raw(trace.trace_id))

    def _keep(
        self, trace: Trace, key: str, facts: Facts, light: Facts | None, payload: object | None, size: int
    ) -> None:
        kept, facts_size = _share(trace, facts) if light is None else (light, size_of_facts(light))
        facts_size += 0 if trace.count else TRACE_BYTES
        entry = Entry(kept, self._now_ns, facts_size, payload, size)
        entry.compacted = light is not None
        trace.keep(key, entry)
        self._closing.charge(trace, facts_size if payload is None else facts_size + size)
        self.counts.held_spans += payload is not None
        if (
            trace.links and trace.links.pop(facts.head.span_id, None) is not None
        ):  # claimed after all: told by a log record, then seen
            del trace.link_ns[facts.head.span_id]
            self.counts.link_bytes -= LINK_BYTES
        if not trace.open_runs:
            self._set_open_runs(trace, 1)
        self._look_by(trace, self._now_ns + self._settle_ns)

    def _pass_on(self, facts: Facts, reason: ReleaseReason, payload: object | None, size: int) -> None:
        if payload is not None:
            held = (Held(facts, payload, size),)
            self.counts.held_spans += 1  # until the next take() hands it out
            self._passing.append((self._now_ns, Release(facts.head.trace_id, reason, held)))

    def _drop_links(self, trace: Trace) -> None:
        self.counts.link_bytes -= LINK_BYTES * len(trace.links)
        if trace.links:
            trace.links, trace.link_ns = {}, {}
            trace.settled = False
        self._linked.pop(trace.trace_id, None)

    def _set_open_runs(self, trace: Trace, open_runs: int) -> None:
        self.counts.open_runs += open_runs - trace.open_runs
        trace.open_runs = open_runs

    # ---- deadlines -------------------------------------------------------------------------------

    def _look_by(self, trace: Trace, due_ns: int) -> None:
        """Look at the trace by then; the look finds out what is due, and when the next one is needed."""
        if trace.count > LARGE_TRACE:
            due_ns = max(due_ns, trace.checked_ns + trace.count * LARGE_TRACE_WAIT_NS)
        if due_ns < trace.check_ns or not self._is_queued_in_time(trace):
            trace.check_ns = min(trace.check_ns, due_ns)
            self._schedule(trace)

    def _is_queued_in_time(self, trace: Trace) -> bool:
        """Nothing that comes now can be due before the trace's place among the deadlines: true of all but the first
        spans of a trace, and a fifth of the price of finding the deadline anew."""
        queued_ns, clocks = trace.queued_ns, self._clocks
        if clocks.agents or queued_ns > trace.check_ns:
            return False
        return queued_ns <= self._now_ns + clocks.default.release_after_ns

    def _schedule(self, trace: Trace) -> None:
        if trace.count or trace.judged:
            self._deadlines.put(trace, min(trace.check_ns, self._release_ns(trace)))
        else:
            self._close(trace)

    def _release_ns(self, trace: Trace) -> int:
        first = trace.first_held()
        return NEVER_NS if first is None else first.seen_ns + self._clocks.of(trace.agents).release_after_ns

    def _visit(self, trace: Trace, out: list[Due]) -> None:
        """Judge what is due in one trace, then release what has been held long enough and could not be judged."""
        try:
            if trace.check_ns <= self._now_ns:
                self._look(trace, out)
            self._release_due(trace, out)
        except Exception as error:  # noqa: BLE001 - one trace is isolated from the others here, and its telemetry from grading
            self._closing.give_up(trace, error, self._now_ns, out)
        self._schedule(trace)

    def _look(self, trace: Trace, out: list[Due]) -> None:
        trace.check_ns = NEVER_NS
        trace.checked_ns = self._now_ns
        links = AllLinks(trace)
        waiting = []
        # The look when the late window of a trace's only run ends costs half without finding the run again.
        for run in () if trace.settled else candidates(trace, self._clocks, self._now_ns):
            if run.due_ns <= self._now_ns:
                effect = self._closing.settle(trace, run, run.reason, links, self._now_ns)
                if effect is not None:
                    out.append((run.due_ns, effect))
            elif run.due_ns != NEVER_NS:
                waiting.append(run)
                run.mark_late()
        self._set_open_runs(trace, sum([run.group.is_run for run in waiting]))
        trace.settled = not waiting and _is_settled(trace)
        self._finish_due(trace, waiting, out)

    def _finish_due(self, trace: Trace, waiting: Iterable[Candidate], out: list[Due]) -> None:
        """Let go of verdicts whose late window has passed, unless something late waits to be judged with them."""
        next_ns = min((run.due_ns for run in waiting), default=NEVER_NS)
        needed = {judged.run_id for run in waiting for judged in run.before}
        for judged in list(trace.judged.values()):
            if judged.expires_ns > self._now_ns:
                next_ns = min(next_ns, judged.expires_ns)
            elif judged.run_id not in needed:
                self._closing.finish(trace, judged, judged.expires_ns, out)
        if next_ns != NEVER_NS:
            self._look_by(trace, next_ns)

    def _release_due(self, trace: Trace, out: list[Due]) -> None:
        due_ns = self._release_ns(trace)
        if due_ns > self._now_ns:
            return
        leaving = trace.held_until(self._now_ns - self._clocks.of(trace.agents).release_after_ns)
        out.append((due_ns, self._closing.release(trace, leaving, ReleaseReason.RELEASE_AFTER)))

    # ---- early -----------------------------------------------------------------------------------

    def _make_room(self, out: list[Due]) -> None:
        """Judge early, heaviest times oldest first, until there is room again."""
        heavy = [trace for trace in self._traces.values() if trace.size]
        heavy.sort(key=lambda trace: trace.size * (self._now_ns - trace.opened_ns + 1), reverse=True)
        for trace in heavy:
            if self.counts.held_bytes <= self._limits.held_bytes * MEMORY_TARGET:
                break
            self._judge_all(trace, CloseReason.MEMORY, out)
            trace.check_ns = NEVER_NS
            self._finish_due(trace, (), out)
            self._schedule(trace)

    def _judge_all(self, trace: Trace, reason: CloseReason, out: list[Due]) -> None:
        links = AllLinks(trace)
        try:
            for run in last_candidates(trace, self._clocks):
                if run.due_ns != NEVER_NS:
                    effect = self._closing.settle(trace, run, reason, links, self._now_ns)
                    if effect is not None:
                        out.append((self._now_ns, effect))
        except Exception as error:  # noqa: BLE001 - as in _visit
            self._closing.give_up(trace, error, self._now_ns, out)
        self._set_open_runs(trace, 0)


def _is_settled(trace: Trace) -> bool:
    """Whether one verdict is on all entries: then its run is found as it was, until an entry or a link comes or goes.

    More verdicts could be taken together, once their spans wait for no agent any more: see candidates().
    """
    if len(trace.judged) != 1:
        return False
    (judged,) = trace.judged.values()
    return not judged.spent and len(judged.members) == trace.count


def _share(trace: Trace, facts: Facts) -> tuple[Facts, int]:
    if trace.shared is None:
        if not has_shareable(facts):
            return facts, size_of_facts(facts)
        trace.shared = Shared()
    return trace.shared.share(facts)


def _raw(trace_id: str) -> bytes:
    try:
        return bytes.fromhex(trace_id)
    except ValueError:  # a payload reader's own kind of id; no span on the wire has it
        return trace_id.encode()
