"""What is a run, and which span is its root: the facts of one trace, split into runs.

The rules, in order of strength:

- Everything under an outermost agent span is one run; agents inside it are its sub-agents.
- Outermost agents under one workflow or crew span (role wrapper) are one run, rooted at the topmost such span. It is
  the root with a single agent too, so that a second agent that comes later does not move it.
- Outermost agents under any other span (an HTTP server span) are runs of their own, unless a handoff joins them.
- Outermost agents right under one parent that was never seen are one run: it may be the crew span of a killed process.
- Agents with a lost span above them belong to the run whose root is the only span of the trace that has no parent, if
  they start while it goes on: a trace is one tree, so nothing else can be above them. A workflow or crew span is such a
  root too when no agent right below it came.
- A span or log record without agent above it belongs to the only run below its nearest ancestor that has any below it;
  failing that to the only run of the trace, or the only one going on when it started. This last rule waits for `final`
  while the span's ancestors are not all known, as an agent of its own may still come.
- What is left, or a trace without any agent, is one run without agent, rooted at its topmost model or tool span.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from heapq import heappop, heappush
from operator import attrgetter

from luckrate_otel.facts import Call, Facts, Response, Role
from luckrate_otel.record import record
from luckrate_otel.runs.handoffs import join_siblings
from luckrate_otel.runs.lineage import Lineage


@record(frozen=True, slots=True)
class RunGroup:
    """The facts of one run.

    facts: ordered by (start, end, span id), log facts after spans of the same start.
    root: the span that run-level findings go on; None when only log records speak of the run.
    complete: all ancestors are known, up to a span without parent, so that no outer agent can appear any more.
    has_agent: an agent is among the facts. is_run: there is an agent or a tool call; a lone model call or a chain of
    wrappers is no run, its spans only pass through.
    """

    root: Facts | None
    facts: tuple[Facts, ...]
    complete: bool
    has_agent: bool
    is_run: bool


def partition(
    facts: Iterable[Facts], links: Mapping[str, str], *, final: bool | AbstractSet[str] = False
) -> tuple[RunGroup, ...]:
    """Split the facts of one trace into its runs, by start of their first fact; the one without agent comes last.

    links: span id → parent id ("" = no parent) of spans that no adapter claimed; the facts' own are added here.
    final: no more ancestors are waited for (end of input, or the deadline passed); or only not for these span ids.
    Does not depend on the order of either. Cyclic parents end a chain as if the next ancestor had not been seen.
    Cost: sorting the facts, and a bounded number of visits per fact and per link above it.
    """
    ordered = _in_order(facts)
    lineage = Lineage(ordered, links)
    owners, roots = _structural_owners(ordered, lineage)
    _place_strays(ordered, lineage, owners, roots, final=final)
    members = _members(ordered, owners)
    leftover = members.pop("", ())
    groups = [_agent_run(run, roots[key], lineage) for key, run in members.items()]
    if leftover:
        groups.append(_run_without_agent(leftover, lineage))
    return tuple(groups)


def _in_order(facts: Iterable[Facts]) -> tuple[Facts, ...]:
    """By fact_order; where all start at different times, the start tells it all, for a third of the price."""
    ordered = sorted(facts, key=_START)
    before_ns = None
    for fact in ordered:
        if fact.head.start_ns == before_ns:
            return tuple(sorted(ordered, key=fact_order))
        before_ns = fact.head.start_ns
    return tuple(ordered)


_START = attrgetter("head.start_ns")


def _members(ordered: tuple[Facts, ...], owners: list[str]) -> dict[str, tuple[Facts, ...]]:
    """The facts of each run, "" for none, by start of their first one."""
    names = dict.fromkeys(owners)
    if len(names) == 1:
        return {owners[0]: ordered}
    members: dict[str, list[Facts]] = {name: [] for name in names}
    for fact, owner in zip(ordered, owners, strict=True):
        members[owner].append(fact)
    return {name: tuple(run) for name, run in members.items()}


def fact_order(fact: Facts) -> tuple[int, bool, int, str, str, int, str, str]:
    """Start, spans before logs, end, span id; the rest only makes the order of facts of one span certain."""
    head = fact.head
    return head.start_ns, fact.log, head.end_ns, head.span_id, fact.role, head.kind, head.service, head.parent_id


# ---- the runs with an agent --------------------------------------------------------------------


def _structural_owners(ordered: tuple[Facts, ...], lineage: Lineage) -> tuple[list[str], dict[str, Facts]]:
    """Per fact the run it belongs to by ancestry ("" = none), and the root of each run."""
    tops = [f for f in ordered if f.role is Role.AGENT and not f.log and _outermost(f, lineage)]
    run_of = {top.head.span_id: _run_key(top, lineage) for top in tops}
    by_wrapper = {w: run for top, run in run_of.items() if (w := lineage.place(top).wrapper)}
    owners = [run_of.get(place.agent) or by_wrapper.get(place.wrapper, "") for place in lineage.places(ordered)]
    joined = _handed_over(ordered, owners, tops, run_of) if len(tops) > 1 else {}
    roots: dict[str, Facts] = {}
    for top in tops:
        run = run_of[top.head.span_id]
        root = lineage.fact(lineage.place(top.head.span_id).wrapper) or top
        key = joined.get(run, run)
        roots[key] = min(roots.get(key, root), root, key=fact_order)
    if len(roots) > 1 and (whole := _whole_trace(ordered, roots, lineage)) is not None:
        lost = {key for key, root in roots.items() if root is not whole and _below_a_lost_span(root, whole, lineage)}
        if lost:
            run = whole.head.span_id
            joined = {key: run if lead in lost else lead for key, lead in joined.items()} | dict.fromkeys(lost, run)
            roots = {key: root for key, root in roots.items() if key not in lost} | {run: whole}
            places = zip(owners, lineage.places(ordered), strict=True)
            owners = [owner or (run if place.wrapper == run else "") for owner, place in places]
    return [joined.get(owner, owner) for owner in owners] if joined else owners, roots


def _outermost(agent: Facts, lineage: Lineage) -> bool:
    return lineage.place(agent.head.span_id).agent == agent.head.span_id


def _run_key(top: Facts, lineage: Lineage) -> str:
    """What the outermost agents of one run have in common: a wrapper, an unseen parent, or being the same span."""
    piece = lineage.place(top.head.span_id).wrapper or top.head.span_id
    parent = lineage.parent(piece)
    return parent if parent and not lineage.seen(parent) else piece


def _whole_trace(ordered: tuple[Facts, ...], roots: Mapping[str, Facts], lineage: Lineage) -> Facts | None:
    """The root of a run, or a workflow or crew, that is the only span of the trace without parent."""
    tops = {run: root for run, root in roots.items() if not root.head.parent_id}
    if not tops:
        tops = {f.head.span_id: f for f in ordered if f.role is Role.WRAPPER and not (f.log or f.head.parent_id)}
    top = next(iter(tops.values()), None)
    return top if top is not None and len(tops) == 1 and lineage.is_only_root(top.head.span_id) else None


def _below_a_lost_span(root: Facts, whole: Facts, lineage: Lineage) -> bool:
    """Time is asked too: some libraries let a user name the trace of a span, and make up a parent for it."""
    started_within = whole.head.start_ns <= root.head.start_ns <= whole.head.end_ns
    return started_within and not lineage.place(root.head.span_id).known


def _handed_over(
    ordered: tuple[Facts, ...], owners: list[str], tops: list[Facts], run_of: Mapping[str, str]
) -> dict[str, str]:
    siblings: dict[str, list[Facts]] = {}
    beside: dict[str, str] = {}
    for top in tops:
        run = run_of[top.head.span_id]
        if run == top.head.span_id and top.head.parent_id:
            siblings.setdefault(top.head.parent_id, []).append(top)
            beside[run] = top.head.parent_id
    owner = {f.head.span_id: run for f, run in zip(ordered, owners, strict=True)}
    return join_siblings(ordered, owner, {parent: tuple(agents) for parent, agents in siblings.items()}, beside)


def _agent_run(facts: tuple[Facts, ...], root: Facts, lineage: Lineage) -> RunGroup:
    return RunGroup(root, facts, lineage.place(root.head.span_id).known, has_agent=True, is_run=True)


# ---- spans without an agent above them ---------------------------------------------------------


def _place_strays(
    ordered: tuple[Facts, ...],
    lineage: Lineage,
    owners: list[str],
    roots: Mapping[str, Facts],
    *,
    final: bool | AbstractSet[str],
) -> None:
    """Give spans and log records outside every agent to the run they go with, where that can be told."""
    if "" not in owners or not roots:
        return
    strays = [i for i, owner in enumerate(owners) if not owner]
    marks = lineage.marks({f.head.span_id: run for f, run in zip(ordered, owners, strict=True) if run})
    near = lineage.nearest((ordered[i].head.span_id for i in strays), marks)
    around = _around(strays, ordered, owners)
    only = next(iter(roots)) if len(roots) == 1 else ""
    for i in strays:
        span_id = ordered[i].head.span_id
        owner = near.get(span_id, "")
        waited = final if isinstance(final, bool) else span_id in final
        if not owner and (waited or not span_id or lineage.place(span_id).known):
            owner = only or around[i]
        owners[i] = owner


def _around(strays: Iterable[int], ordered: tuple[Facts, ...], owners: list[str]) -> dict[int, str]:
    """For each stray the run that was going on when it started, "" for none or several. One sweep over time."""
    ends: dict[str, tuple[int, int]] = {}
    for fact, run in zip(ordered, owners, strict=True):
        if run and not fact.log:
            start, end = ends.get(run, (fact.head.start_ns, 0))
            ends[run] = min(start, fact.head.start_ns), max(end, fact.head.end_ns)
    starts = sorted((start, end, run) for run, (start, end) in ends.items())
    going: list[tuple[int, str]] = []
    found: dict[int, str] = {}
    upcoming = 0
    for i in strays:
        now_ns = ordered[i].head.start_ns
        while upcoming < len(starts) and starts[upcoming][0] <= now_ns:
            _, end, run = starts[upcoming]
            heappush(going, (end, run))
            upcoming += 1
        while going and going[0][0] < now_ns:
            heappop(going)
        found[i] = going[0][1] if len(going) == 1 else ""
    return found


def _run_without_agent(facts: tuple[Facts, ...], lineage: Lineage) -> RunGroup:
    """The trace itself as a run. A run needs a model call together with a tool call, or tools alone to show."""
    spans = [f for f in facts if not f.log]
    placed = [lineage.place(f.head.span_id).known for f in facts if f.head.span_id]
    candidates = [f for f in spans if f.role in (Role.MODEL, Role.TOOL)]
    root = min(candidates, key=lambda f: (lineage.place(f.head.span_id).depth, fact_order(f)), default=None)
    has_agent = any(f.role is Role.AGENT for f in facts)  # told by a log record alone
    is_run = has_agent or any(_shows_a_tool_call(f) for f in facts)
    return RunGroup(root, facts, bool(spans) and all(placed), has_agent, is_run)


def _shows_a_tool_call(fact: Facts) -> bool:
    if fact.role is Role.TOOL:
        return True
    messages = (*fact.inputs, *fact.outputs)
    return any(isinstance(part, Call | Response) for message in messages for part in message.parts)
