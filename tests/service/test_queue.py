"""The queue of one destination: order, bounds, and the account that must balance."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from luckrate_otel.errors import Busy, TooLarge
from luckrate_otel.service.send.batch import ITEM_BYTES, Batch, Item
from luckrate_otel.service.send.queue import Account, Queue
from luckrate_otel.service.signals import Signal

TRACES, LOGS = Signal.TRACES, Signal.LOGS


def queue(max_bytes: int = 10_000, join_bytes: int = 10, linger_ns: int = 100) -> Queue:
    return Queue(max_bytes, join_bytes=join_bytes, linger_ns=linger_ns)


def take(line: Queue, now_ns: int = 0, *, limit: int | None = None, flush: bool = False) -> Batch:
    batch = line.take(now_ns, limit=limit, flush=flush)
    assert batch is not None
    return batch


class Recorded:
    """A store that lists what it was told to let go."""

    def __init__(self) -> None:
        self.deleted: list[int] = []

    def delete(self, numbers: Sequence[int]) -> None:
        self.deleted.extend(numbers)


def test_a_body_waits_for_others_until_it_has_lingered_to_the_nanosecond() -> None:
    line = queue()
    line.put(TRACES, b"abc", 1, now_ns=1000)
    assert line.due_ns() == 1100
    assert line.take(1099) is None
    assert take(line, 1100).body == b"abc"
    assert line.due_ns() is None


def test_bodies_of_one_signal_are_joined_up_to_the_limit_and_not_past_it() -> None:
    line = queue(join_bytes=10)
    for body in (b"aaaa", b"bbbb", b"cc", b"d"):
        line.put(TRACES, body, 2, 0)
    batch = take(line)
    assert (batch.body, batch.count) == (b"aaaabbbbcc", 6)
    assert line.take(99) is None
    assert take(line, flush=True).body == b"d"


def test_a_body_larger_than_the_limit_goes_alone() -> None:
    line = queue(join_bytes=10)
    line.put(TRACES, b"x" * 11, 1, 0)
    line.put(TRACES, b"y", 1, 0)
    assert take(line).body == b"x" * 11


def test_a_smaller_limit_of_the_sender_holds_but_never_stops_a_single_body() -> None:
    line = queue(join_bytes=10)
    for body in (b"aa", b"bb", b"cc"):
        line.put(TRACES, body, 1, 0)
    assert take(line, limit=4).body == b"aabb"
    assert take(line, limit=1).body == b"cc"


def test_profiles_are_never_joined_because_their_tables_would_mix() -> None:
    line = queue(join_bytes=10)
    line.put(Signal.PROFILES, b"a", 1, 0)
    line.put(Signal.PROFILES, b"b", 1, 0)
    assert [take(line, 100).body, take(line, 100).body] == [b"a", b"b"]


def test_signals_are_never_joined_and_the_oldest_goes_first() -> None:
    line = queue(join_bytes=2)
    line.put(LOGS, b"l1", 1, 0)
    line.put(TRACES, b"t1", 1, 0)
    line.put(LOGS, b"l2", 1, 0)
    assert [take(line).body for _ in range(3)] == [b"l1", b"t1", b"l2"]


@pytest.mark.parametrize(("size", "error"), [(100, None), (101, Busy), (100 + ITEM_BYTES + 100, Busy), (457, TooLarge)])
def test_full_is_busy_and_larger_than_the_whole_queue_is_too_large(size: int, error: type[Exception] | None) -> None:
    line = queue(max_bytes=2 * ITEM_BYTES + 200)
    line.put(TRACES, b"x" * 100, 1, 0)
    if error is None:
        line.put(TRACES, b"y" * size, 1, 0)
        assert line.size_bytes == 2 * ITEM_BYTES + 200
    else:
        with pytest.raises(error) as raised:
            line.put(TRACES, b"y" * size, 1, 0)
        assert raised.type is error
        assert line.size_bytes == ITEM_BYTES + 100
        assert line.account(TRACES) == Account(put=1, queued=1)


def test_what_is_being_sent_still_takes_its_room() -> None:
    line = queue(max_bytes=ITEM_BYTES + 10)
    line.put(TRACES, b"x" * 10, 1, 0)
    batch = take(line)
    with pytest.raises(Busy, match="full"):
        line.put(TRACES, b"y", 1, 0)
    line.sent(batch)
    line.put(TRACES, b"y", 1, 0)


def test_a_batch_put_back_keeps_its_place_even_when_a_younger_one_came_back_first() -> None:
    line = queue(join_bytes=2)
    for body in (b"a1", b"b2", b"c3"):
        line.put(TRACES, body, 1, 0)
    first, second = take(line), take(line)
    line.put_back(second)
    line.put_back(first)
    assert take(line, limit=100, flush=True).body == b"a1b2c3"


def test_a_body_put_behind_comes_last_and_alone() -> None:
    line = queue(join_bytes=10)
    line.put(TRACES, b"a", 1, 0)
    line.put_back(take(line, flush=True), behind=True)
    line.put(TRACES, b"b", 1, 0)
    line.put(TRACES, b"c", 1, 0)
    assert [take(line, flush=True).body for _ in range(2)] == [b"bc", b"a"]
    assert [item.body for item in line.remaining()] == [b"a", b"b", b"c"]


def test_rejections_of_the_next_hop_are_counted_and_never_more_than_there_were() -> None:
    line = queue(join_bytes=1)
    line.put(TRACES, b"a", 5, 0)
    line.put(TRACES, b"b", 5, 0)
    line.sent(take(line), rejected=2)
    line.sent(take(line), rejected=99)
    assert line.account(TRACES) == Account(put=10, sent=3, rejected=7)


def test_a_refused_batch_is_halved_between_its_bodies_and_the_halves_stay_apart() -> None:
    line = queue(join_bytes=3)
    for body in (b"a", b"b", b"c"):
        line.put(TRACES, body, 1, 0)
    assert line.split(take(line), None)
    line.put(TRACES, b"ddd", 1, 0)
    left, right = take(line), take(line)
    assert (left.body, right.body) == (b"a", b"bc")
    assert not line.split(left, None)
    line.drop(left, "invalid")
    line.put_back(right)
    assert take(line) == right
    assert line.account(TRACES) == Account(put=4, dropped={"invalid": 1}, queued=3)


def test_a_single_body_is_divided_and_its_stored_row_goes_with_its_last_piece() -> None:
    store = Recorded()
    line = Queue(10_000, store=store, join_bytes=1)
    line.put(TRACES, b"abcd", 4, 0)
    assert line.split(take(line), halve)
    left = take(line)
    assert line.split(left, halve)
    pieces = [take(line) for _ in range(3)]
    assert [piece.body for piece in pieces] == [b"a", b"b", b"cd"]
    line.sent(pieces[2])
    line.sent(pieces[0])
    assert store.deleted == []
    line.drop(pieces[1], "too_large")
    assert store.deleted == [0]
    assert line.account(TRACES) == Account(put=4, sent=3, dropped={"too_large": 1})
    assert line.size_bytes == 0


def test_a_body_that_was_counted_as_one_request_counts_with_its_first_piece() -> None:
    line = queue(join_bytes=1)
    line.put(Signal.METRICS, b"ab", 1, 0)
    assert line.split(take(line), halve)
    assert [take(line).count for _ in range(2)] == [1, 0]


def test_what_was_acknowledged_before_is_taken_past_the_bound() -> None:
    line = queue(max_bytes=ITEM_BYTES)
    with pytest.raises(TooLarge):
        line.put(TRACES, b"a", 1, 0)
    line.put(TRACES, b"a", 1, 0, owed=True)
    assert line.account(TRACES) == Account(put=1, queued=1)


def test_restored_items_come_first_past_the_bound_and_numbers_go_on_after_them() -> None:
    line = queue(max_bytes=ITEM_BYTES + 1, join_bytes=100)
    line.restore([Item(7, TRACES, b"a", 1, 10**18), Item(9, TRACES, b"b", 1, 10**18)])
    with pytest.raises(Busy):
        line.put(TRACES, b"c", 1, 5)
    batch = take(line, now_ns=100)
    assert batch.body == b"ab"
    line.sent(batch)
    assert line.put(TRACES, b"c", 1, 5).number == 10
    assert line.account(TRACES) == Account(put=1, replayed=2, sent=2, queued=1)


def halve(_signal: Signal, body: bytes) -> tuple[tuple[bytes, int], tuple[bytes, int]] | None:
    """Each byte of a test body is one span."""
    middle = len(body) // 2
    return ((body[:middle], middle), (body[middle:], len(body) - middle)) if middle else None


class Machine(RuleBasedStateMachine):
    """Bodies are unique numbers of two bytes, so that losing, doubling and reordering all show."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Recorded()
        self.line = Queue(3000, store=self.store, join_bytes=8, linger_ns=10)
        self.now_ns = 0
        self.made = 0
        self.put_bodies: dict[Signal, list[bytes]] = {signal: [] for signal in Signal}
        self.out: list[Batch] = []
        self.done: list[bytes] = []
        self.numbers: list[int] = []

    @rule(signal=st.sampled_from([TRACES, LOGS]), words=st.integers(1, 6))
    def put(self, signal: Signal, words: int) -> None:
        body = b"".join((self.made + word).to_bytes(2, "big") for word in range(words))
        try:
            self.numbers.append(self.line.put(signal, body, words, self.now_ns).number)
        except Busy:
            assert self.line.size_bytes + len(body) + ITEM_BYTES > 3000
            return
        self.made += words
        self.put_bodies[signal].append(body)

    @rule(step=st.integers(0, 20))
    def wait(self, step: int) -> None:
        self.now_ns += step

    @rule(flush=st.booleans(), limit=st.sampled_from([None, 1, 4]))
    def take(self, flush: bool, limit: int | None) -> None:
        due_ns = self.line.due_ns()
        batch = self.line.take(self.now_ns, flush=flush, limit=limit)
        if batch is None:
            assert due_ns is None or (not flush and self.now_ns < due_ns)
        else:
            self.out.append(batch)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), rejected=st.integers(0, 3))
    def sent(self, data: st.DataObject, rejected: int) -> None:
        batch = self.pick(data)
        self.line.sent(batch, rejected)
        self.done.append(batch.body)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        batch = self.pick(data)
        self.line.drop(batch, "invalid")
        self.done.append(batch.body)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), behind=st.booleans())
    def put_back(self, data: st.DataObject, behind: bool) -> None:
        self.line.put_back(self.pick(data), behind=behind)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        batch = self.pick(data)
        if not self.line.split(batch, halve_words):
            assert len(batch.body) == 2
            self.out.append(batch)

    def pick(self, data: st.DataObject) -> Batch:
        return self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))

    @invariant()
    def nothing_lost_nothing_doubled(self) -> None:
        everything = b"".join([*self.done, *(item.body for item in self.line.remaining())])
        assert sorted(words(everything)) == list(range(self.made))

    @invariant()
    def order_of_age_is_kept(self) -> None:
        """In every line, but for what was put behind."""
        for signal in (TRACES, LOGS):
            waiting = words(b"".join(item.body for item in self.line._lines[signal].items))
            assert waiting == sorted(waiting)
        apart = words(b"".join(item.body for batch in self.line._apart for item in batch.items if not item.late))
        assert apart == sorted(apart)

    @invariant()
    def bytes_and_counts_add_up(self) -> None:
        items = self.line.remaining()
        assert self.line.size_bytes == sum(len(item.body) + ITEM_BYTES for item in items)
        for signal in (TRACES, LOGS):
            account = self.line.account(signal)
            assert account.put == sum(len(body) // 2 for body in self.put_bodies[signal])
            assert account.queued == sum(item.count for item in items if item.signal is signal)
            assert account.put == account.sent + account.rejected + sum(account.dropped.values()) + account.queued

    @invariant()
    def nothing_is_left_when_all_is_done(self) -> None:
        if not self.line.remaining():
            assert not self.line
            assert (self.line._away, self.line._pieces, list(self.line._apart)) == ({}, {}, [])
            assert all(line.size_bytes == 0 for line in self.line._lines.values())

    @invariant()
    def stored_is_what_remains(self) -> None:
        assert len(set(self.store.deleted)) == len(self.store.deleted)
        left = set(self.numbers).difference(self.store.deleted)
        assert left == {item.number for item in self.line.remaining()}


def words(body: bytes) -> list[int]:
    return [int.from_bytes(body[at : at + 2], "big") for at in range(0, len(body), 2)]


def halve_words(_signal: Signal, body: bytes) -> tuple[tuple[bytes, int], tuple[bytes, int]] | None:
    middle = len(body) // 4 * 2
    return ((body[:middle], middle // 2), (body[middle:], (len(body) - middle) // 2)) if middle else None


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
