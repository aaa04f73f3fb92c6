"""The assembler's behaviour, one situation a test. Times are seconds here, with a nanosecond to either side."""

from __future__ import annotations

import pytest

from luckrate_otel.assemble import (
    AgentClocks,
    Assembler,
    Clocks,
    Closed,
    Counts,
    Effect,
    Final,
    Held,
    Limits,
    Release,
    ReleaseReason,
    compact,
)
from luckrate_otel.facts import ClosedRun, CloseReason, Facts, Role
from tests.making import OTHER_TRACE, TRACE, agent, head, log, model, sid, tool, wrapper

S = 1_000_000_000
SETTLE, RELEASE, VERDICT, WINDOW = 10 * S, 120 * S, 900 * S, 1800 * S
EMPTY = Counts()


def bytes_of(fact: Facts) -> bytes:
    return f"wire {fact.head.trace_id[:2]} {fact.head.span_id} {fact.head.service}".encode()


def put(assembler: Assembler, fact: Facts, at_ns: int) -> None:
    """As a shell does: only spans that a violation can be written on are held."""
    held = not fact.log and fact.role is not Role.MODEL
    payload = bytes_of(fact) if held else None
    assembler.add(fact, at_ns, payload=payload, size=len(payload or b""))


def held(fact: Facts, *, late: bool = False) -> Held:
    return Held(fact, bytes_of(fact), len(bytes_of(fact)), late=late)


def left(*facts: Facts) -> frozenset[str]:
    return frozenset(fact.head.span_id for fact in facts)


def run_of(*facts: Facts, reason: CloseReason = CloseReason.ROOT, root: int | None = 0, **kw: object) -> ClosedRun:
    """The run of these facts, in this order; root: which of them."""
    at = facts[root if root is not None else 0].head
    links = {f.head.span_id: f.head.parent_id for f in facts if not f.log}
    fields: dict[str, object] = {
        "run_id": f"{at.trace_id}:{at.span_id}",
        "trace_ids": (at.trace_id,),
        "facts": facts,
        "close_reason": reason,
        "root": at if root is not None else None,
        "links": links,
    }
    return ClosedRun(**{**fields, **kw})  # type: ignore[arg-type]  # the fields are checked by comparison


A = agent("a", "", 0, 9)
B = tool("b", "a", 1)
C = model("c", "a", 0.5)


# ---- clocks --------------------------------------------------------------------------------------


def test_a_run_is_judged_when_its_root_was_seen_and_nothing_came_for_the_settle_time() -> None:
    assembler = Assembler()
    put(assembler, B, 1 * S)
    put(assembler, C, 2 * S)
    put(assembler, A, 3 * S)
    assert assembler.take(3 * S + SETTLE - 1) == ()
    assert assembler.take(3 * S + SETTLE) == (Closed(run_of(A, C, B), (held(A), held(B))),)
    assert assembler.take(3 * S + SETTLE + 1) == ()


def test_what_comes_within_the_settle_time_puts_it_off() -> None:
    assembler = Assembler()
    put(assembler, A, 0)
    put(assembler, B, SETTLE - 1)
    assert assembler.take(SETTLE) == ()
    assert assembler.take(2 * SETTLE - 2) == ()
    assert assembler.take(2 * SETTLE - 1) == (Closed(run_of(A, B), (held(A), held(B))),)


@pytest.mark.parametrize("late_by", [-1, 0, 1])
def test_a_run_without_root_is_judged_after_the_verdict_time_and_its_spans_leave_before(late_by: int) -> None:
    assembler = Assembler()
    inner = agent("a", "f", 0, 9)
    put(assembler, inner, 0)
    assert assembler.take(RELEASE - 1) == ()
    assert assembler.take(RELEASE) == (Release(TRACE, ReleaseReason.RELEASE_AFTER, (held(inner),)),)
    expected = Closed(run_of(inner, reason=CloseReason.NO_ROOT, complete=False, left=left(inner)), ())
    assert assembler.take(VERDICT + late_by) == ((expected,) if late_by >= 0 else ())


@pytest.mark.parametrize("order", [0, 1])
def test_an_agent_below_a_lost_span_does_not_wait_for_it(order: int) -> None:
    """And should the span come after all, the run has it too."""
    assembler = Assembler()
    inner, lost = agent("d", "f", 2, 5), tool("f", "a", 1, 6)
    for fact in (A, inner) if order else (inner, A):
        put(assembler, fact, 0)
    assert assembler.take(SETTLE) == (Closed(run_of(A, inner), (held(A), held(inner))),)
    put(assembler, lost, SETTLE)
    (revised,) = assembler.take(2 * SETTLE)
    assert isinstance(revised, Closed)
    assert (revised.run.facts, revised.revision) == ((A, lost, inner), 2)


def test_only_spans_that_have_waited_long_enough_are_released() -> None:
    assembler = Assembler()
    one, two, three = (tool(name, "f", i) for i, name in enumerate("123"))
    for i, fact in enumerate((one, two, three)):
        put(assembler, fact, i)
    assert assembler.take(RELEASE + 1) == (Release(TRACE, ReleaseReason.RELEASE_AFTER, (held(one), held(two))),)
    assert assembler.next_deadline() == RELEASE + 2


def test_a_passed_span_above_the_root_starts_the_settle_time() -> None:
    assembler = Assembler()
    put(assembler, agent("a", "1", 0, 9), 0)
    assembler.link(TRACE, sid("1"), "", 50 * S)
    assert assembler.take(50 * S + SETTLE - 1) == ()
    (closed,) = assembler.take(50 * S + SETTLE)
    assert isinstance(closed, Closed)
    assert closed.run.close_reason is CloseReason.ROOT
    assert closed.run.links == {sid("1"): "", sid("a"): sid("1")}


def test_links_of_traces_that_are_not_open_are_not_kept() -> None:
    assembler = Assembler()
    assembler.link(TRACE, sid("1"), "", 0)
    assert (assembler.counts, assembler.next_deadline(), len(assembler.open_traces)) == (EMPTY, None, 0)


def test_open_traces_holds_raw_ids() -> None:
    assembler = Assembler()
    put(assembler, A, 0)
    assert bytes.fromhex(TRACE) in assembler.open_traces
    assert bytes.fromhex(OTHER_TRACE) not in assembler.open_traces


def test_an_agent_has_clocks_of_its_own() -> None:
    slow = AgentClocks(settle_ns=20 * S, release_after_ns=200 * S, verdict_after_ns=9000 * S)
    assembler = Assembler(Clocks(agents={"a": slow}))
    put(assembler, A, 0)
    inner = tool("b", "f", 0, 1, agent="a", trace=OTHER_TRACE)
    put(assembler, inner, 0)
    assert assembler.take(20 * S - 1) == ()
    assert assembler.take(20 * S) == (Closed(run_of(A), (held(A),)),)
    assert assembler.take(200 * S - 1) == ()
    assert assembler.take(200 * S) == (Release(OTHER_TRACE, ReleaseReason.RELEASE_AFTER, (held(inner),)),)
    assert [type(e) for e in assembler.take(9000 * S - 1)] == [Final]
    (closed,) = assembler.take(9000 * S)
    assert closed == Closed(run_of(inner, reason=CloseReason.NO_ROOT, complete=False, left=left(inner)), ())


def test_several_agents_of_a_run_wait_for_the_slowest() -> None:
    quick = AgentClocks(settle_ns=1 * S)
    slow = AgentClocks(settle_ns=3 * S)
    assembler = Assembler(Clocks(agents={"a": quick, "b": slow}))
    put(assembler, A, 0)
    put(assembler, agent("b", "a", 1), 0)
    assert assembler.take(3 * S - 1) == ()
    assert [type(e) for e in assembler.take(3 * S)] == [Closed]


def test_the_clock_must_not_go_back() -> None:
    assembler = Assembler()
    assembler.take(5)
    put(assembler, A, 5)
    for back in (
        lambda: assembler.take(4),
        lambda: put(assembler, B, 4),
        lambda: assembler.link(TRACE, sid("1"), "", 4),
        lambda: assembler.drain(CloseReason.SHUTDOWN, 4),
    ):
        with pytest.raises(ValueError, match="went back by 1 ns"):
            back()


def test_effects_of_several_traces_come_oldest_deadline_first() -> None:
    assembler = Assembler()
    other = agent("a", "", 0, 9, trace=OTHER_TRACE)
    put(assembler, other, 0)
    put(assembler, A, 1)
    put(assembler, tool("b", "a", 2, trace=OTHER_TRACE), 2)
    assert [e.run.run_id[:4] for e in assembler.take(S + SETTLE) if isinstance(e, Closed)] == [
        TRACE[:4],
        OTHER_TRACE[:4],
    ]


# ---- several runs in one trace -------------------------------------------------------------------


def test_two_runs_in_one_trace_are_judged_each_at_its_own_time() -> None:
    assembler = Assembler()
    first, second = agent("a", "1", 0, 5), agent("d", "1", 6, 9)
    put(assembler, first, 0)
    assembler.link(TRACE, sid("1"), "", 0)
    put(assembler, second, 5 * S)
    links = {sid("1"): "", sid("a"): sid("1"), sid("d"): sid("1")}
    assert assembler.take(SETTLE) == (Closed(run_of(first, links=links), (held(first),)),)
    assert assembler.take(5 * S + SETTLE) == (Closed(run_of(second, links=links), (held(second),)),)


def test_a_tool_of_a_run_still_going_on_is_not_given_to_the_one_that_ended() -> None:
    """Two agents at once under one request: the tool's own agent has not come yet when the other one is judged."""
    assembler = Assembler()
    first, waiting = agent("a", "1", 0, 5), tool("b", "d", 2)
    put(assembler, waiting, 0)
    assembler.link(TRACE, sid("1"), "", 0)
    put(assembler, first, 0)
    links = {sid("1"): "", sid("a"): sid("1"), sid("b"): sid("d")}
    assert assembler.take(SETTLE) == (Closed(run_of(first, links=links), (held(first),)),)
    second = agent("d", "1", 1, 9)
    put(assembler, second, 30 * S)
    assert assembler.take(30 * S + SETTLE) == (
        Closed(run_of(second, waiting, links=links | {sid("d"): sid("1")}), (held(second), held(waiting))),
    )


def test_a_tool_whose_agent_never_came_joins_the_only_run_of_its_trace_late() -> None:
    assembler = Assembler()
    stray = tool("b", "f", 2)
    put(assembler, stray, 0)
    put(assembler, A, 0)
    links = {sid("a"): "", sid("b"): sid("f")}
    assert assembler.take(SETTLE) == (Closed(run_of(A, links=links), (held(A),)),)
    assert assembler.take(RELEASE) == (Release(TRACE, ReleaseReason.RELEASE_AFTER, (held(stray),)),)
    run = run_of(A, stray, links=links, left=left(stray))
    assert assembler.take(VERDICT) == (Closed(run, (), 2, (run.run_id,)),)
    assert assembler.take(VERDICT + WINDOW - 1) == ()
    assert assembler.take(VERDICT + WINDOW) == (Final(run.run_id, 2),)


def test_the_parts_of_a_killed_run_are_judged_together() -> None:
    assembler = Assembler()
    inner, stray = agent("a", "f", 0, 3), tool("b", "e", 4)
    put(assembler, inner, 0)
    put(assembler, stray, 5 * S)
    assembler.take(RELEASE + 5 * S)
    assert assembler.take(VERDICT + 5 * S - 1) == ()
    run = run_of(inner, stray, reason=CloseReason.NO_ROOT, complete=False, left=left(inner, stray))
    assert assembler.take(VERDICT + 5 * S) == (Closed(run, ()),)


def test_log_records_join_their_span_whichever_comes_first() -> None:
    event = log(Role.MODEL, "c", 0.7)
    early, late = Assembler(), Assembler()
    for assembler, order in ((early, (event, C, A)), (late, (A, C, event))):
        for fact in order:
            put(assembler, fact, 0)
    expected = (Closed(run_of(A, C, event), (held(A),)),)
    assert early.take(SETTLE) == expected
    assert late.take(SETTLE) == expected


def test_a_log_record_outside_every_trace_is_left_alone() -> None:
    assembler = Assembler()
    put(assembler, log(Role.MODEL, "", 0, trace=""), 0)
    assert (assembler.counts, assembler.next_deadline()) == (EMPTY, None)


def test_spans_that_are_no_run_are_let_go() -> None:
    assembler = Assembler()
    chain = wrapper("a", "", 0, 9)
    put(assembler, chain, 0)
    put(assembler, model("b", "a", 1), 0)
    assert assembler.take(SETTLE) == (Release(TRACE, ReleaseReason.NO_RUN, (held(chain),)),)
    assert (assembler.counts, assembler.next_deadline(), len(assembler.open_traces)) == (EMPTY, None, 0)


# ---- after the verdict ---------------------------------------------------------------------------


def judged() -> Assembler:
    assembler = Assembler()
    put(assembler, A, 0)
    assert assembler.take(SETTLE) == (Closed(run_of(A), (held(A),)),)
    return assembler


def test_a_late_span_leaves_marked_late_with_a_second_verdict() -> None:
    assembler = judged()
    put(assembler, B, 60 * S)
    run = run_of(A, B)
    assert assembler.take(60 * S + SETTLE - 1) == ()
    assert assembler.take(60 * S + SETTLE) == (Closed(run, (held(B, late=True),), 2, (run.run_id,)),)
    assert assembler.counts.late == 1
    assert assembler.take(60 * S + SETTLE + WINDOW) == (Final(run.run_id, 2),)
    assert assembler.counts == Counts(late=1)


@pytest.mark.parametrize(("at_ns", "revision"), [(SETTLE + WINDOW - 1, 2), (SETTLE + WINDOW, 1)])
def test_the_late_window_ends(at_ns: int, revision: int) -> None:
    assembler = judged()
    final = assembler.take(at_ns)
    assert final == (() if revision == 2 else (Final(run_of(A).run_id, 1),))
    put(assembler, tool("b", "a", 1), at_ns)
    put(assembler, agent("a", "", 0, 9, service="again") if revision == 1 else C, at_ns)
    (closed,) = (e for e in assembler.take(at_ns + SETTLE) if isinstance(e, Closed))
    assert closed.revision == revision


def test_an_outer_agent_that_comes_late_takes_the_verdict_over() -> None:
    assembler = Assembler()
    inner, outer = agent("a", "f", 1, 8), agent("f", "", 0, 9)
    put(assembler, inner, 0)
    assembler.take(RELEASE)
    run = run_of(inner, reason=CloseReason.NO_ROOT, complete=False, left=left(inner))
    assert assembler.take(VERDICT) == (Closed(run, ()),)
    put(assembler, outer, VERDICT)
    assert assembler.take(VERDICT + SETTLE) == (
        Closed(run_of(outer, inner), (held(outer, late=True),), 2, (f"{TRACE}:{sid('a')}",)),
    )


def test_a_parent_that_comes_late_makes_a_verdict_whole() -> None:
    assembler = Assembler()
    inner = agent("a", "1", 1, 8)
    put(assembler, inner, 0)
    assembler.take(RELEASE)
    assembler.take(VERDICT)
    assembler.link(TRACE, sid("1"), "", VERDICT)
    links = {sid("1"): "", sid("a"): sid("1")}
    run = run_of(inner, links=links)
    assert assembler.take(VERDICT + SETTLE) == (Closed(run, (), 2, (run.run_id,)),)


# ---- duplicates ----------------------------------------------------------------------------------


def test_a_retry_is_forwarded_and_not_judged_twice() -> None:
    assembler = Assembler()
    put(assembler, A, 0)
    put(assembler, A, 1)
    assert assembler.next_deadline() == 1
    assert assembler.take(1) == (Release(TRACE, ReleaseReason.DUPLICATE, (held(A),)),)
    assert assembler.take(SETTLE) == (Closed(run_of(A), (held(A),)),)
    put(assembler, A, SETTLE)
    assert assembler.take(SETTLE) == (Release(TRACE, ReleaseReason.DUPLICATE, (held(A),)),)
    assert (assembler.counts.duplicates, assembler.counts.conflicting, assembler.counts.late) == (2, 0, 0)


def test_same_identity_other_content_the_first_wins_and_both_are_forwarded() -> None:
    assembler = Assembler()
    other = tool("b", "a", 1, result="other")
    for fact in (A, B, other):
        put(assembler, fact, 0)
    assert assembler.take(SETTLE) == (
        Release(TRACE, ReleaseReason.DUPLICATE, (held(other),)),
        Closed(run_of(A, B), (held(A), held(B))),
    )
    assert (assembler.counts.duplicates, assembler.counts.conflicting) == (0, 1)


def test_one_span_id_seen_by_client_and_server_is_two_spans() -> None:
    assembler = Assembler()
    client, server = tool("b", "a", 1, kind=3, service="agent"), tool("b", "a", 1, kind=2, service="shop")
    for fact in (A, client, server):
        put(assembler, fact, 0)
    (closed,) = assembler.take(SETTLE)
    assert isinstance(closed, Closed)
    assert closed.run.facts == (A, server, client)
    assert assembler.counts.conflicting == assembler.counts.duplicates == 0


def test_log_records_of_one_span_are_told_apart_by_what_they_say() -> None:
    assembler = Assembler()
    one, two = log(Role.MODEL, "a", 1, tokens=1), log(Role.MODEL, "a", 1, tokens=2)
    for fact in (A, one, two, one):
        put(assembler, fact, 0)
    (closed,) = assembler.take(SETTLE)
    assert isinstance(closed, Closed)
    assert closed.run.facts == (A, one, two)
    assert assembler.counts.duplicates == 1


# ---- large contents ------------------------------------------------------------------------------

LARGE = tool("b", "a", 1, args={"q": "x" * 5000}, result="y" * 5000)


def test_large_contents_are_dropped_while_the_payload_is_held_and_read_again_for_the_verdict() -> None:
    asked: list[Held] = []

    def restore(span: Held) -> Facts:
        asked.append(span)
        return LARGE

    assembler = Assembler(restore=restore)
    put(assembler, A, 0)
    assembler.add(LARGE, 0, payload=b"large", size=3073)
    assert assembler.counts.held_bytes < 6000
    assembler.add(LARGE, 0, payload=b"again", size=3073)
    assert assembler.counts.duplicates == 1
    duplicate, closed = assembler.take(SETTLE)
    assert duplicate == Release(TRACE, ReleaseReason.DUPLICATE, (Held(LARGE, b"again", 3073),))
    assert closed == Closed(run_of(A, LARGE), (held(A), Held(LARGE, b"large", 3073)))
    assert asked == [Held(compact(LARGE), b"large", 3073, compacted=True)]


def test_contents_are_read_again_when_the_payload_leaves_before_the_verdict() -> None:
    assembler = Assembler(restore=lambda _: LARGE)
    assembler.add(LARGE, 0, payload=b"large", size=5000)
    assert assembler.take(RELEASE) == (Release(TRACE, ReleaseReason.RELEASE_AFTER, (Held(LARGE, b"large", 5000),)),)
    run = run_of(LARGE, reason=CloseReason.NO_ROOT, complete=False, left=left(LARGE))
    assert assembler.take(VERDICT) == (Closed(run, ()),)


def test_small_payloads_keep_their_contents() -> None:
    assembler = Assembler(restore=lambda _: pytest.fail("nothing to restore"))
    assembler.add(LARGE, 0, payload=b"small", size=3072)
    (closed,) = assembler.drain(CloseReason.SHUTDOWN, 0)[:1]
    assert isinstance(closed, Closed)
    assert closed.run.facts == (LARGE,)


def test_a_trace_that_fails_is_forwarded_as_it_came_and_harms_no_other() -> None:
    def restore(span: Held) -> Facts:
        raise RuntimeError(span.payload)

    assembler = Assembler(restore=restore)
    put(assembler, A, 0)
    assembler.add(LARGE, 0, payload=b"large", size=5000)
    other = agent("a", "", 0, 9, trace=OTHER_TRACE)
    put(assembler, other, 0)
    broken = Held(compact(LARGE), b"large", 5000, compacted=True)
    assert assembler.take(SETTLE) == (
        Release(TRACE, ReleaseReason.ERROR, (held(A), broken), "RuntimeError"),
        Closed(run_of(other), (held(other),)),
    )
    assert assembler.counts.errors == 1
    assembler.take(SETTLE + WINDOW)
    assert assembler.counts == Counts(errors=1)


# ---- bounds --------------------------------------------------------------------------------------


def test_when_memory_is_full_the_heaviest_times_oldest_run_is_judged_early_and_nothing_is_lost() -> None:
    assembler = Assembler(limits=Limits(held_bytes=12_000))
    old = tool("b", "a", 1, trace=OTHER_TRACE)
    heavy, light = tool("c", "f", 1), tool("e", "f", 2)
    put(assembler, old, 0)
    assembler.add(heavy, 1 * S, payload=b"heavy", size=7000)
    assert assembler.take(1 * S) == ()
    assert assembler.counts.held_bytes <= 12_000
    put(assembler, light, 2 * S)
    assembler.add(tool("d", "f", 3), 2 * S, payload=b"more", size=3000)
    assert assembler.next_deadline() == 2 * S
    (closed,) = assembler.take(2 * S)
    assert isinstance(closed, Closed)
    assert closed.run.close_reason is CloseReason.MEMORY
    assert [h.payload for h in closed.held] == [b"heavy", bytes_of(light), b"more"]
    assert assembler.counts.held_spans == 1
    assert assembler.counts.held_bytes < 12_000


@pytest.mark.parametrize("spare", [-1, 0])
def test_the_memory_bound_is_exact(spare: int) -> None:
    probe = Assembler()
    put(probe, A, 0)
    assembler = Assembler(limits=Limits(held_bytes=probe.counts.held_bytes + spare))
    put(assembler, A, 0)
    assert [type(e) for e in assembler.take(0)] == ([Closed] if spare < 0 else [])


def test_late_spans_of_a_run_given_up_for_memory_are_forwarded_late_and_not_judged_as_runs_of_their_own() -> None:
    assembler = Assembler(limits=Limits(late_bytes=1500))
    put(assembler, tool("b", "f", 0, 9), 0)
    assert [type(e) for e in assembler.take(VERDICT)] == [Closed]
    assert assembler.counts.late_bytes <= 1500
    more = tool("c", "f", 1)
    put(assembler, more, VERDICT + 1)
    assert assembler.take(VERDICT + 1 + VERDICT) == (Release(TRACE, ReleaseReason.LATE, (held(more, late=True),)),)
    assert assembler.counts.unjudged_late == 1
    assembler.take(VERDICT + WINDOW)
    assert (assembler.counts, assembler.next_deadline()) == (Counts(unjudged_late=1), None)


def test_judged_runs_are_bounded_oldest_first() -> None:
    assembler = Assembler(limits=Limits(late_bytes=1500))
    for i in range(3):
        put(assembler, agent("a", "", 0, 9, trace=f"{i:032x}"), i)
    effects = assembler.take(SETTLE + 2)
    assert [e.run_id[:32] for e in effects if isinstance(e, Final)] == [f"{i:032x}" for i in range(2)]
    assert assembler.counts.late_bytes <= 1500
    assert len(assembler.open_traces) == 1


def test_links_are_bounded_and_the_loss_is_counted() -> None:
    assembler = Assembler(limits=Limits(link_bytes=900))
    for trace in (TRACE, OTHER_TRACE):
        put(assembler, agent("a", "1", trace=trace), 0)
    for i in range(1, 4):
        assembler.link(TRACE, sid(str(i)), "", 0)
    assert (assembler.counts.link_bytes, assembler.counts.links_dropped) == (900, 0)
    assembler.link(OTHER_TRACE, sid("1"), "", 0)
    assert (assembler.counts.link_bytes, assembler.counts.links_dropped) == (300, 3)


def test_drain_judges_everything_and_leaves_nothing() -> None:
    assembler = judged()
    put(assembler, B, SETTLE)
    put(assembler, A, SETTLE)
    stray = tool("b", "f", 0, trace=OTHER_TRACE)
    put(assembler, stray, SETTLE)
    run = run_of(A, B, reason=CloseReason.SHUTDOWN)
    other = run_of(stray, reason=CloseReason.SHUTDOWN, complete=False)
    assert assembler.drain(CloseReason.SHUTDOWN, SETTLE) == (
        Release(TRACE, ReleaseReason.DUPLICATE, (held(A),)),
        Closed(run, (held(B, late=True),), 2, (run.run_id,)),
        Final(run.run_id, 2),
        Closed(other, (held(stray),)),
        Final(other.run_id, 1),
    )
    assert assembler.counts == Counts(late=1, duplicates=1)
    assert (assembler.next_deadline(), len(assembler.open_traces)) == (None, 0)
    assert assembler.drain(CloseReason.SHUTDOWN, SETTLE) == ()


def test_large_traces_are_looked_at_less_often_and_no_run_is_forgotten() -> None:
    assembler = Assembler()
    put(assembler, A, 0)
    for i in range(1000):
        put(assembler, tool(f"{i + 100:x}", "a", i), 0)
    assert [type(e) for e in assembler.take(SETTLE)] == [Closed]
    put(assembler, B, SETTLE)
    assert assembler.take(2 * SETTLE) != ()


def effects_of(assembler: Assembler, until_ns: int) -> list[Effect]:
    """All effects up to then, taken at the deadlines the assembler names."""
    out: list[Effect] = []
    while (due := assembler.next_deadline()) is not None and due <= until_ns:
        out.extend(assembler.take(due))
    return out


def test_the_deadlines_it_names_lead_through_everything() -> None:
    assembler = Assembler()
    put(assembler, tool("b", "a", 1), 0)
    put(assembler, agent("a", "1", 0, 9), 0)
    kinds = [type(e) for e in effects_of(assembler, 10 * WINDOW)]
    assert kinds == [Release, Closed, Final]
    assert assembler.counts == EMPTY


def test_the_head_of_the_root_and_its_attributes_are_those_of_the_run() -> None:
    assembler = Assembler()
    put(assembler, agent("a", attributes={"tenant": "x"}), 0)
    (closed,) = assembler.take(SETTLE)
    assert isinstance(closed, Closed)
    assert closed.run.root == head("a")
    assert closed.run.attributes == {"tenant": "x"}


def test_a_link_to_a_span_that_is_claimed_after_all_is_replaced_by_it() -> None:
    assembler = Assembler()
    put(assembler, B, 0)
    assembler.link(TRACE, sid("a"), "", 0)
    put(assembler, A, 0)
    assembler.link(TRACE, sid("a"), sid("f"), 0)
    assert assembler.counts.link_bytes == 0
    assert assembler.take(SETTLE) == (Closed(run_of(A, B), (held(A), held(B))),)


def test_a_trace_that_fails_while_draining_is_forwarded_too() -> None:
    def restore(span: Held) -> Facts:
        raise RuntimeError(span.payload)

    assembler = Assembler(restore=restore)
    assembler.add(LARGE, 0, payload=b"large", size=5000)
    broken = Held(compact(LARGE), b"large", 5000, compacted=True)
    assert assembler.drain(CloseReason.SHUTDOWN, 0) == (Release(TRACE, ReleaseReason.ERROR, (broken,), "RuntimeError"),)
    assert (assembler.counts, assembler.next_deadline()) == (Counts(errors=1), None)


def test_ids_that_are_not_hex_are_ids_all_the_same() -> None:
    assembler = Assembler()
    odd = agent("a", trace="execution 12")
    put(assembler, odd, 0)
    assert list(assembler.open_traces) == [b"execution 12"]
    assert assembler.take(SETTLE) == (Closed(run_of(odd), (held(odd),)),)


def test_a_late_span_of_a_run_that_is_not_whole_leaves_marked_late_before_its_verdict() -> None:
    assembler = Assembler()
    inner, more = agent("a", "f", 0, 9), tool("b", "a", 1)
    put(assembler, inner, 0)
    assembler.take(RELEASE)
    assembler.take(VERDICT)
    put(assembler, more, VERDICT)
    assert assembler.take(VERDICT + SETTLE) == ()
    assert assembler.take(VERDICT + RELEASE) == (Release(TRACE, ReleaseReason.RELEASE_AFTER, (held(more, late=True),)),)
    run = run_of(inner, more, reason=CloseReason.NO_ROOT, complete=False, left=left(more))
    assert assembler.take(2 * VERDICT) == (Closed(run, (), 2, (run.run_id,)),)


def test_what_waits_for_a_second_verdict_keeps_the_first_one_from_becoming_final() -> None:
    assembler = judged()
    put(assembler, B, WINDOW + SETTLE - 1)
    assert assembler.take(WINDOW + SETTLE) == ()
    (closed,) = assembler.take(WINDOW + 2 * SETTLE - 1)
    assert isinstance(closed, Closed)
    assert closed.revision == 2


def test_a_judged_run_whose_trace_fails_later_keeps_its_verdict() -> None:
    def restore(span: Held) -> Facts:
        raise RuntimeError(span.payload)

    assembler = Assembler(restore=restore)
    put(assembler, A, 0)
    assembler.take(SETTLE)
    assembler.add(LARGE, SETTLE, payload=b"large", size=5000)
    broken = Held(compact(LARGE), b"large", 5000, compacted=True, late=True)
    release, final = assembler.take(2 * SETTLE)
    assert final == Final(run_of(A).run_id, 1)
    assert isinstance(release, Release)
    assert [h.payload for h in release.held] == [broken.payload]
    assert assembler.counts == Counts(errors=1)


def test_one_of_two_spans_with_one_id_can_be_forgotten_alone() -> None:
    """A caller and the tool's server report one span id; only one of the two belongs to a run that is over."""
    assembler = Assembler()
    chain, server = wrapper("b", "", 1, kind=3), tool("b", "", 1, kind=2)
    put(assembler, chain, 0)
    assert assembler.take(SETTLE) == (Release(TRACE, ReleaseReason.NO_RUN, (held(chain),)),)
    put(assembler, server, SETTLE)
    put(assembler, tool("b", "", 1, kind=3), SETTLE)
    (closed,) = assembler.take(2 * SETTLE)
    assert isinstance(closed, Closed)
    assert [f.head.kind for f in closed.run.facts] == [2, 3]
