"""Handing out: payloads leave once, runs become ClosedRuns, and judged runs are kept for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from luckrate_otel.assemble.check import Candidate
from luckrate_otel.assemble.counts import Counts
from luckrate_otel.assemble.effects import Closed, Effect, Final, Held, Release, ReleaseReason, Restore
from luckrate_otel.assemble.sizes import RUN_BYTES, SPENT_BYTES, size_of_facts
from luckrate_otel.assemble.trace import Entry, Judged, Trace
from luckrate_otel.facts import ClosedRun, CloseReason
from luckrate_otel.telemetry import NOTHING

Due = tuple[int, Effect]  # an effect with the deadline it is due by


class Closing:
    """Closes runs and remembers their verdicts. Every byte it charges or frees goes through counts."""

    def __init__(self, counts: Counts, late_window_ns: int, late_bytes: int, restore: Restore | None) -> None:
        self._counts = counts
        self._late_window_ns = late_window_ns
        self._late_bytes = late_bytes
        self._restore = restore
        self._kept: dict[tuple[str, str], Trace] = {}  # judged runs with their facts, by last verdict, oldest first
        self._spent: dict[tuple[str, str], Trace] = {}  # those whose facts were given up

    def __len__(self) -> int:
        return len(self._kept) + len(self._spent)

    def reconfigure(self, late_window_ns: int, late_bytes: int) -> None:
        self._late_window_ns = late_window_ns
        self._late_bytes = late_bytes

    # ---- payloads --------------------------------------------------------------------------------

    def charge(self, trace: Trace, size: int) -> None:
        trace.size += size
        self._counts.held_bytes += size

    def release(self, trace: Trace, entries: Iterable[Entry], reason: ReleaseReason) -> Release:
        """Hand payloads out unjudged. Their facts stay, whole, and are charged as such."""
        leaving = [entry for entry in entries if entry.payload is not None]
        before = sum(entry.total_size for entry in leaving)
        self._make_whole(leaving)
        held = tuple(self._hand_out(entry) for entry in leaving)
        for entry in leaving:
            entry.released = True
        self.charge(trace, sum(entry.total_size for entry in leaving) - before)
        return Release(trace.trace_id, reason, held)

    def give_up(self, trace: Trace, error: Exception, now_ns: int, out: list[Due]) -> None:
        """Forget a trace that failed; its telemetry goes on as it came."""
        held = tuple(self._hand_out(entry) for entry in trace.all() if entry.payload is not None)
        out.append((now_ns, Release(trace.trace_id, ReleaseReason.ERROR, held, type(error).__name__)))
        self.charge(trace, -trace.size)
        for judged in list(trace.judged.values()):
            self.finish(trace, judged, now_ns, out)
        trace.forget(list(trace.all()))
        self._counts.errors += 1

    def _make_whole(self, entries: Iterable[Entry]) -> None:
        """Restore all contents before any payload leaves: should that fail, all payloads are still here to forward."""
        for entry in entries:
            if entry.compacted and self._restore is not None:
                light = Held(entry.facts, entry.payload, entry.payload_size, compacted=True)
                entry.facts = self._restore(light)
                entry.size = size_of_facts(entry.facts)
                entry.compacted = False

    def _hand_out(self, entry: Entry) -> Held:
        held = Held(entry.facts, entry.payload, entry.payload_size, entry.compacted, entry.late)
        entry.payload = None
        self._counts.held_spans -= 1
        return held

    # ---- runs ------------------------------------------------------------------------------------

    def settle(self, trace: Trace, run: Candidate, reason: CloseReason, links: AllLinks, now_ns: int) -> Effect | None:
        """One run's time has come: judge it, or let its spans go if there is nothing to judge."""
        if not run.group.is_run:
            return self._let_go(trace, run, ReleaseReason.NO_RUN)
        if _is_rest_of_spent(trace, run):
            return self._let_go(trace, run, ReleaseReason.LATE)
        return self._close(trace, run, reason, links, now_ns)

    def _let_go(self, trace: Trace, run: Candidate, reason: ReleaseReason) -> Release | None:
        held = [entry for entry in run.entries if entry.payload is not None]
        if reason is ReleaseReason.LATE:
            self._counts.unjudged_late += len(held)
            for entry in held:
                entry.late = True
        released = self.release(trace, held, reason) if held else None
        self.charge(trace, -sum(entry.size for entry in run.entries if not entry.verdicts))
        trace.forget(entry for entry in run.entries if not entry.verdicts)
        return released

    def _close(self, trace: Trace, run: Candidate, reason: CloseReason, links: AllLinks, now_ns: int) -> Closed:
        new = [entry for entry in run.entries if not entry.verdicts]
        held_size = sum([entry.total_size for entry in new])
        self._make_whole(new)
        self.charge(trace, -held_size)
        if run.before:
            run.mark_late()
            self._counts.late += sum(not entry.facts.log for entry in new)
        closed = _closed_run(trace, run, reason, links)
        held = tuple([self._hand_out(entry) for entry in new if entry.payload is not None])
        revision = max((judged.revision for judged in run.before), default=0) + 1
        self._remember(trace, run, revision, closed.run_id, now_ns)
        return Closed(closed, held, revision, tuple(judged.run_id for judged in run.before))

    # ---- after the verdict -----------------------------------------------------------------------

    def _remember(self, trace: Trace, run: Candidate, revision: int, run_id: str, now_ns: int) -> None:
        for entry in run.entries:
            entry.verdicts += 1
        for judged in run.before:
            self._replace(trace, judged)
        size = RUN_BYTES + sum([entry.size for entry in run.entries])
        trace.judged[run_id] = Judged(
            run_id=run_id,
            root_id=run.root_id,
            revision=revision,
            complete=run.group.complete,
            members=frozenset(run.entries),
            expires_ns=now_ns + self._late_window_ns,
            size=size,
        )
        self._counts.late_bytes += size
        self._kept[trace.trace_id, run_id] = trace
        trace.shared = None  # what its runs share they keep themselves

    def restore(self, trace: Trace, run_id: str, root_id: str, revision: int, expires_ns: int) -> None:
        trace.judged[run_id] = Judged(
            run_id=run_id,
            root_id=root_id,
            revision=revision,
            complete=True,
            members=frozenset(),
            expires_ns=expires_ns,
            size=SPENT_BYTES,
            spent=True,
        )
        self._counts.late_bytes += SPENT_BYTES
        self._spent[trace.trace_id, run_id] = trace

    def finish(self, trace: Trace, judged: Judged, due_ns: int, out: list[Due]) -> None:
        """The last verdict on this run stands; nothing of it is kept."""
        trace.forget(self._without_verdict(judged))
        self._forget(trace, judged)
        out.append((due_ns, Final(judged.run_id, judged.revision)))

    def _replace(self, trace: Trace, judged: Judged) -> None:
        """Drop a verdict that a later one stands for. Members that are not in the new run wait for a verdict again."""
        self.charge(trace, sum(entry.size for entry in self._without_verdict(judged)))
        self._forget(trace, judged)

    def _forget(self, trace: Trace, judged: Judged) -> None:
        del trace.judged[judged.run_id]
        self._kept.pop((trace.trace_id, judged.run_id), None)
        self._spent.pop((trace.trace_id, judged.run_id), None)
        self._counts.late_bytes -= judged.size

    @staticmethod
    def _without_verdict(judged: Judged) -> list[Entry]:
        """Take a verdict's hold off its members; those that no other verdict holds."""
        for entry in judged.members:
            entry.verdicts -= 1
        return [entry for entry in judged.members if not entry.verdicts]

    def bound(self, now_ns: int, out: list[Due]) -> list[Trace]:
        """Give up the facts of the oldest judged runs, then the runs themselves, until the rest is within its bound.

        The traces that were changed are returned; they may be empty now.
        """
        changed: dict[str, Trace] = {}
        while self._counts.late_bytes > self._late_bytes and self._kept:
            (trace_id, run_id), trace = next(iter(self._kept.items()))
            judged = trace.judged[run_id]
            trace.forget(self._without_verdict(judged))
            self._counts.late_bytes += SPENT_BYTES - judged.size
            judged.members, judged.size, judged.spent = frozenset(), SPENT_BYTES, True
            changed[trace_id] = trace
            self._spent[trace_id, run_id] = self._kept.pop((trace_id, run_id))
        while self._counts.late_bytes > self._late_bytes and self._spent:
            (trace_id, run_id), trace = next(iter(self._spent.items()))
            self.finish(trace, trace.judged[run_id], now_ns, out)
            changed[trace_id] = trace
        return list(changed.values())


class AllLinks:
    """The parents of all spans of a trace, made once for all the runs that close in one look at it."""

    __slots__ = ("_all", "_trace")

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._all: Mapping[str, str] | None = None

    def all(self) -> Mapping[str, str]:
        if self._all is None:
            links = dict(self._trace.links)
            for entry in self._trace.all():
                if not entry.facts.log:
                    links[entry.facts.head.span_id] = entry.facts.head.parent_id
            self._all = links  # read-only by its type: copying a mapping proxy takes ten times as long as a dict
        return self._all


def _is_rest_of_spent(trace: Trace, run: Candidate) -> bool:
    """Whether this is more of a run whose facts were given up: judging what is left of it would only mislead."""
    if run.before:
        return all(judged.spent for judged in run.before)
    nameless = not run.group.has_agent or run.group.root is None
    return nameless and any(judged.spent for judged in trace.judged.values())


def _closed_run(trace: Trace, run: Candidate, reason: CloseReason, links: AllLinks) -> ClosedRun:
    root = run.group.root
    at = next((i for i, fact in enumerate(run.group.facts) if fact is root), None)
    return ClosedRun(
        run_id=f"{trace.trace_id}:{run.root_id}",
        trace_ids=(trace.trace_id,),
        facts=tuple([entry.facts for entry in run.entries]),
        close_reason=reason,
        root=root.head if root is not None else None,
        links=links.all(),
        attributes=run.entries[at].facts.attributes if at is not None else NOTHING,
        complete=run.group.complete,
        left=frozenset([entry.facts.head.span_id for entry in run.entries if entry.released and not entry.verdicts]),
    )
