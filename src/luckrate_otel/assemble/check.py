"""Which runs of one trace are due. Reads the trace, changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from luckrate_otel.assemble.clocks import Clocks
from luckrate_otel.assemble.trace import NEVER_NS, Entry, Judged, Trace
from luckrate_otel.facts import CloseReason
from luckrate_otel.record import record
from luckrate_otel.runs import RunGroup, partition


@record(frozen=True, slots=True)
class Candidate:
    """One run as it looks now.

    entries: in the order of group.facts. due_ns: when to judge it; NEVER_NS if its verdict stands as it is.
    before: earlier verdicts on it, or on inner runs that it has taken in; the oldest first.
    """

    group: RunGroup
    entries: tuple[Entry, ...]
    due_ns: int
    reason: CloseReason
    before: tuple[Judged, ...]

    @property
    def root_id(self) -> str:
        return (self.group.root or self.group.facts[0]).head.span_id

    def mark_late(self) -> None:
        """Mark the entries that came after an earlier verdict, in case they leave before the next one."""
        for entry in self.entries:
            if self.before and not entry.verdicts:
                entry.late = True


def candidates(trace: Trace, clocks: Clocks, now_ns: int) -> tuple[Candidate, ...]:
    """All runs of the trace, judged or not, with their deadlines. Cost: that of runs.partition().

    When a deadline without root has passed, the spans without agent are looked at a second time: with no more ancestors
    to wait for, they may turn out to belong to another run of the trace. Once they do, they stay with it.
    """
    stay = {entry.facts.head.span_id for entry in trace.all() if entry.verdicts} if trace.judged else set()
    found = _candidates(trace, clocks, stay)
    waited = _waited_in_vain(found, now_ns)
    return _candidates(trace, clocks, stay | waited) if waited else found


def last_candidates(trace: Trace, clocks: Clocks) -> tuple[Candidate, ...]:
    """The same with nothing more to wait for: at the end of input, or when memory is short."""
    return _candidates(trace, clocks, final=True)


def _waited_in_vain(found: tuple[Candidate, ...], now_ns: int) -> set[str]:
    """Ids of the spans without agent that no longer wait for one.

    All of them if an agent's run without root is due: they are parts of one killed process, and are due together.
    Beside a whole run only when they are due themselves: until then an agent of their own may come.
    """
    open_ended = [run for run in found if not run.group.complete]
    due = [run for run in open_ended if run.due_ns <= now_ns]
    if any(run.group.has_agent and run.group.complete for run in found):
        open_ended = due
    leftover = (run for run in open_ended if not run.group.has_agent)
    return {fact.head.span_id for run in leftover for fact in run.group.facts} if due else set()


def _candidates(trace: Trace, clocks: Clocks, final: bool | AbstractSet[str]) -> tuple[Candidate, ...]:
    by_facts = {id(entry.facts): entry for entry in trace.all()}
    groups = partition([entry.facts for entry in by_facts.values()], trace.links, final=final)
    judged = {j.root_id: j for j in trace.judged.values()}
    return tuple(_candidate(trace, clocks, group, by_facts, judged) for group in groups)


def _candidate(
    trace: Trace, clocks: Clocks, group: RunGroup, by_facts: Mapping[int, Entry], judged: Mapping[str, Judged]
) -> Candidate:
    entries = tuple([by_facts[id(fact)] for fact in group.facts])
    before = _verdicts_before(entries, judged)
    reason = CloseReason.ROOT if group.complete else CloseReason.NO_ROOT
    if len(before) == 1 and before[0].complete == group.complete and before[0].members == frozenset(entries):
        return Candidate(group, entries, NEVER_NS, reason, before)
    waits = clocks.of({fact.agent for fact in group.facts if fact.agent})
    last_ns = max([entry.seen_ns for entry in entries])
    if group.complete:
        due_ns = max(last_ns, _links_seen_ns(trace, group)) + waits.settle_ns
    else:
        due_ns = last_ns + waits.verdict_after_ns
    return Candidate(group, entries, due_ns, reason, before)


def _verdicts_before(entries: tuple[Entry, ...], judged: Mapping[str, Judged]) -> tuple[Judged, ...]:
    if not judged:
        return ()
    found: dict[str, Judged] = {}
    for entry in entries:
        verdict = judged.get(entry.facts.head.span_id)
        if verdict is not None and (entry in verdict.members or (verdict.spent and not entry.facts.log)):
            found[verdict.run_id] = verdict
    return tuple(sorted(found.values(), key=lambda j: (j.expires_ns, j.run_id)))


def _links_seen_ns(trace: Trace, group: RunGroup) -> int:
    """When the last passed span above the root was seen: only since then is the root known to be one."""
    last_ns = -1
    here = group.root.head.parent_id if group.root else ""
    visited: set[str] = set()
    while here in trace.links and here not in visited:
        visited.add(here)
        last_ns = max(last_ns, trace.link_ns[here])
        here = trace.links[here]
    return last_ns
