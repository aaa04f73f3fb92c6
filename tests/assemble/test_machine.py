"""The assembler under any traffic: any order, splitting, repetition and interleaving of the spans of some traces.

Two machines: one throws everything at it and checks that nothing is lost or doubled and nothing is left behind; one
sends the same spans within their deadlines in any way and gets the same runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from luckrate_otel.assemble import AgentClocks, Assembler, Clocks, Closed, Effect, Final, Held, Limits, Release
from luckrate_otel.facts import ClosedRun, CloseReason, Facts, Role
from tests.making import OTHER_TRACE, TRACE, agent, asks, links, log, model, says, sid, tool, wrapper

CLOCKS = Clocks(AgentClocks(settle_ns=10, release_after_ns=50, verdict_after_ns=200), late_window_ns=500)

# Traces of every kind: nested agents, a crew, a request with two agents, a handoff, no agent, orphans, log records.
FACTS: tuple[Facts, ...] = (
    agent("a", "", 0, 99),
    model("b", "a", 1, inputs=(says("task"),), outputs=(asks("lookup"),)),
    tool("c", "a", 2),
    tool("d", "1", 3, 30),
    agent("e", "d", 4, 29),
    tool("f", "e", 5, args={"q": "x" * 50}),
    log(Role.MODEL, "b", 1.5, tokens=3),
    wrapper("a", "", 0, 99, trace=OTHER_TRACE),
    agent("b", "a", 1, 9, trace=OTHER_TRACE),
    agent("c", "a", 10, 19, trace=OTHER_TRACE),
    tool("d", "c", 11, trace=OTHER_TRACE),
    *(
        fact
        for trace in ("3" * 32,)
        for fact in (
            agent("a", "1", 1, 9, trace=trace),
            tool("b", "a", 2, trace=trace),
            agent("c", "1", 3, 19, trace=trace),
            tool("d", "c", 11, tool="transfer_to_e", trace=trace),
            agent("e", "1", 20, 29, trace=trace),
            model("f", "1", 25, trace=trace),
        )
    ),
    model("a", "9", 1, trace="4" * 32),
    tool("b", "9", 2, trace="4" * 32),
    agent("c", "8", 3, trace="4" * 32),
    tool("a", "", 1, trace="5" * 32),
    wrapper("a", "", 1, trace="6" * 32),
    log(Role.AGENT, "7", 1, trace="7" * 32),
)
LINKS = {TRACE: links(**{"1": "2", "2": "a"}), "3" * 32: links(**{"1": ""})}
NEVER_CLOSED = {"4" * 32, "7" * 32}


def payload_of(fact: Facts, serial: int) -> str | None:
    return None if fact.log or fact.role is Role.MODEL else f"{FACTS.index(fact)}/{serial}"


class AnyTraffic(RuleBasedStateMachine):
    """Whatever comes: what goes in comes out once, and in the end nothing is left."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0
        self.put: Counter[object] = Counter()
        self.out: Counter[object] = Counter()
        self.revisions: dict[str, int] = {}
        self.due: int | None = None

    @initialize(
        held=st.sampled_from([1, 4_000, 20_000, 1 << 30]),
        late=st.sampled_from([0, 1_500, 4_000, 1 << 30]),
        link=st.sampled_from([300, 1 << 20]),
        restoring=st.booleans(),
    )
    def start(self, held: int, late: int, link: int, restoring: bool) -> None:
        restore: Callable[[Held], Facts] | None = self.restore if restoring else None
        self.assembler = Assembler(CLOCKS, Limits(held, late, link), restore=restore)

    @staticmethod
    def restore(span: Held) -> Facts:
        return FACTS[int(str(span.payload).partition("/")[0])]

    @rule(fact=st.sampled_from(FACTS), size=st.sampled_from([10, 2000]))
    def add(self, fact: Facts, size: int) -> None:
        payload = payload_of(fact, self.put.total())
        self.assembler.add(fact, self.now_ns, payload=payload, size=size)
        if payload is not None:
            self.put[payload] += 1

    @rule(trace=st.sampled_from(sorted(LINKS)), which=st.integers(0, 1))
    def link(self, trace: str, which: int) -> None:
        parents = list(LINKS[trace].items())
        self.assembler.link(trace, *parents[which % len(parents)], self.now_ns)

    @rule(by=st.sampled_from([0, 1, 9, 10, 49, 200, 501]))
    def wait(self, by: int) -> None:
        self.now_ns += by
        self.took(self.assembler.take(self.now_ns))

    @rule()
    def wait_for_the_next_deadline(self) -> None:
        due = self.assembler.next_deadline()
        if due is not None:
            self.now_ns = max(self.now_ns, due)
            self.took(self.assembler.take(self.now_ns))

    @rule(reason=st.sampled_from([CloseReason.SHUTDOWN, CloseReason.END_OF_INPUT]))
    def drain(self, reason: CloseReason) -> None:
        self.took(self.assembler.drain(reason, self.now_ns))
        self.nothing_is_left()

    def took(self, effects: tuple[Effect, ...]) -> None:
        assert not self.assembler.is_full, "a request that waits for room has it after one round"
        for effect in effects:
            if isinstance(effect, Final):
                assert self.revisions.pop(effect.run_id) == effect.revision
                continue
            for span in effect.held:
                assert not span.compacted
                self.out[span.payload] += 1
            if isinstance(effect, Closed):
                self.verdict(effect)
            else:
                assert effect.held

    def verdict(self, closed: Closed) -> None:
        before = [self.revisions.pop(run_id) for run_id in closed.supersedes]
        assert closed.revision == max(before, default=0) + 1
        assert closed.run.run_id not in self.revisions
        self.revisions[closed.run.run_id] = closed.revision
        assert all(fact in FACTS for fact in closed.run.facts)
        assert {span.facts.head for span in closed.held} <= {fact.head for fact in closed.run.facts}

    def nothing_is_left(self) -> None:
        assert self.out == self.put
        assert self.revisions == {}
        counts = self.assembler.counts
        gauges = (counts.held_spans, counts.held_bytes, counts.late_bytes, counts.link_bytes, counts.open_runs)
        assert gauges == (0, 0, 0, 0, 0)
        assert self.assembler.next_deadline() is None
        assert (len(self.assembler.open_traces), len(self.assembler._traces), len(self.assembler._linked)) == (0, 0, 0)
        assert (len(self.assembler._closing), len(self.assembler._deadlines)) == (0, 0)

    @invariant()
    def accounts_are_right(self) -> None:
        if not hasattr(self, "assembler"):
            return
        counts = self.assembler.counts
        entries = [e for t in self.assembler._traces.values() for e in t.all()]
        assert counts.held_spans == sum(e.payload is not None for e in entries) + len(self.assembler._passing)
        assert counts.held_bytes == sum(e.total_size for e in entries if not e.verdicts)
        assert counts.held_bytes == sum(t.size for t in self.assembler._traces.values())
        assert counts.late_bytes == sum(j.size for t in self.assembler._traces.values() for j in t.judged.values())
        assert counts.open_runs >= 0
        assert self.put.total() - self.out.total() == counts.held_spans

    def teardown(self) -> None:
        if not hasattr(self, "assembler"):
            return
        for _ in range(200):
            due = self.assembler.next_deadline()
            if due is None:
                break
            self.now_ns = max(self.now_ns, due)
            self.took(self.assembler.take(self.now_ns))
        self.nothing_is_left()


TestAnyTraffic = AnyTraffic.TestCase
TestAnyTraffic.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


# ---- the same spans, sent in any way --------------------------------------------------------------


Judged = tuple[str, ClosedRun, int]


def runs_of(assembler: Assembler) -> tuple[list[Judged], Counter[object]]:
    """The runs judged, and what came out, once everything is judged at its own time."""
    runs: list[Judged] = []
    out: Counter[object] = Counter()
    while (due := assembler.next_deadline()) is not None:
        for effect in assembler.take(due):
            if isinstance(effect, Closed):
                runs.append((effect.run.run_id, effect.run, effect.revision))
            if isinstance(effect, Closed | Release):
                out.update(span.payload for span in effect.held)
    return sorted(runs, key=lambda run: run[0]), out


def expected() -> list[Judged]:
    assembler = Assembler(CLOCKS)
    for fact in FACTS:
        assembler.add(fact, 0, payload=payload_of(fact, 0), size=10)
    for trace, parents in LINKS.items():
        for span_id, parent_id in parents.items():
            assembler.link(trace, span_id, parent_id, 0)
    return runs_of(assembler)[0]


EXPECTED = expected()


def test_the_runs_of_all_traces() -> None:
    """What the machine below compares with: one or two runs of each kind of trace."""
    named = [(run_id[:1], run_id[-1:], run.close_reason.value) for run_id, run, _ in EXPECTED]
    assert named == [
        ("0", "a", "root"),
        ("1", "a", "root"),
        ("3", "a", "root"),
        ("3", "c", "root"),
        ("4", "c", "no_root"),
        ("5", "a", "root"),
        ("7", "7", "no_root"),
    ]


Sent = Facts | tuple[str, str, str]  # facts, or a link: trace, span, parent


@st.composite
def deliveries(draw: st.DrawFn) -> list[tuple[int, Sent]]:
    """All facts and links, some of them twice, in any order, each with a wait shorter than the settle time after it.

    A trace is opened by a span before links are kept, as in a shell: the first fact of each trace goes first.
    """
    parents: list[Sent] = [(trace, *link) for trace, found in LINKS.items() for link in found.items()]
    again = draw(st.lists(st.sampled_from(FACTS), max_size=6))
    first = {fact.head.trace_id: fact for fact in draw(st.permutations(FACTS))}
    rest: list[Sent] = [fact for fact in FACTS if fact is not first[fact.head.trace_id]]
    order = draw(st.permutations([*rest, *parents, *again]))
    sent = [*first.values(), *order]
    waits = draw(st.lists(st.booleans(), min_size=len(sent), max_size=len(sent)))
    spare = 9  # below the settle time of 10 in all, so that no run closes before all of it came
    timed = []
    for item, wait in zip(sent, waits, strict=True):
        timed.append((int(wait and spare > 0), item))
        spare -= int(wait and spare > 0)
    return timed


@given(deliveries())
@settings(max_examples=60, deadline=None)
def test_within_the_deadline_neither_order_nor_batches_nor_retries_change_a_run(
    sent: list[tuple[int, Sent]],
) -> None:
    assembler = Assembler(CLOCKS)
    now_ns = 0
    put: Counter[object] = Counter()
    out: Counter[object] = Counter()
    for serial, (wait, item) in enumerate(sent):
        now_ns += wait
        if isinstance(item, Facts):
            payload = payload_of(item, serial)
            assembler.add(item, now_ns, payload=payload, size=10)
            put.update([payload] if payload is not None else [])
        else:
            assembler.link(*item, now_ns)
        for effect in assembler.take(now_ns):
            assert isinstance(effect, Release)  # retries only
            out.update(span.payload for span in effect.held)
    runs, rest = runs_of(assembler)
    assert runs == EXPECTED
    assert out + rest == put


def test_conflicting_retries_change_nothing_but_their_count() -> None:
    assembler = Assembler(CLOCKS)
    for fact in FACTS:
        assembler.add(fact, 0, payload=payload_of(fact, 0), size=10)
        if not fact.log:
            assembler.add(replace(fact, error="other"), 0, payload=None)
    for trace, parents in LINKS.items():
        for span_id, parent_id in parents.items():
            assembler.link(trace, span_id, parent_id, 0)
    assert runs_of(assembler)[0] == EXPECTED
    assert assembler.counts.conflicting == sum(not fact.log for fact in FACTS)


def test_no_span_is_named_twice_in_the_traces_above() -> None:
    spans = [(f.head.trace_id, f.head.span_id) for f in FACTS if not f.log]
    assert len(spans) == len(set(spans))
    assert sid("a") != sid("b")
