"""The journal: what it keeps over a restart, what it refuses, what it does about a file it cannot read."""

from __future__ import annotations

import _sqlite3
import asyncio
import ctypes
import logging
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckrate_otel.conversation import Begun
from luckrate_otel.errors import Busy, ConfigError, TooLarge
from luckrate_otel.service.journal import file as journal_file
from luckrate_otel.service.journal import room as journal_room
from luckrate_otel.service.journal import statements
from luckrate_otel.service.journal.file import Full, JournalFile
from luckrate_otel.service.journal.journal import LARGE_BYTES, Journal
from luckrate_otel.service.journal.kept import Kept
from luckrate_otel.service.journal.packing import Packer
from luckrate_otel.service.journal.rows import ROW_BYTES, Body, Change, Judged, Left, Piece, Talk, merge
from luckrate_otel.service.signals import Signal
from tests.next_hop import within

# The library behind Python's module, which has no way of its own to ask.
SQLITE = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
TRACES = Signal.TRACES
A, B = "a" * 32, "b" * 32
BODIES = [Body(3, TRACES, 2, b"three", ("one", "two")), Body(4, Signal.METRICS, 1, b"four" * 5000, ("one",))]
PIECES = [Piece(A, TRACES, b"held", b"read", b"l" * 16), Piece(B, Signal.LOGS, b"", b"log", b"")]
LEFT = [Left(A, b"f" * 16, b"j" * 16, b"s" * 8)]
JUDGED = [Judged(f"{A}:root", 2, 123)]


@pytest.fixture(autouse=True)
def _small_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_room, "RESERVE_BYTES", 4096)


def written(folder: Path, *changes: Change) -> Kept:
    """What a new process finds after these steps."""
    file = JournalFile(folder)
    file.write(changes)
    file.close()
    return kept_in(folder)


def kept_in(folder: Path) -> Kept:
    file = JournalFile(folder)
    file.close()
    return file.kept


def test_all_kinds_of_rows_are_found_again_in_order(tmp_path: Path) -> None:
    change = Change(BODIES, PIECES, LEFT, JUDGED)
    assert written(tmp_path, change) == Kept(BODIES, PIECES, LEFT, JUDGED)


def test_rows_go_and_what_one_of_two_destinations_has_is_noted(tmp_path: Path) -> None:
    kept = written(
        tmp_path,
        Change(BODIES, PIECES, LEFT, JUDGED),
        Change(delivered=[(3, "one"), (4, "")], settled=[A], final=[f"{A}:root"]),
    )
    assert kept == Kept([Body(3, TRACES, 2, b"three", ("two",))], PIECES[1:])
    assert written(tmp_path, Change(delivered=[(3, "")])) == Kept([], PIECES[1:])


def test_a_conversation_is_kept_once_and_goes_when_its_time_is_over(tmp_path: Path) -> None:
    def talk(name: bytes, start_ns: int, until_ns: int) -> Talk:
        return Talk(Begun(name * 16, start_ns), until_ns)

    kept = written(tmp_path, Change(talks=[talk(b"a", 5, 100), talk(b"b", 6, 200)]), Change(talks=[talk(b"a", 5, 300)]))
    assert kept == Kept(talks=[talk(b"a", 5, 300), talk(b"b", 6, 200)])
    assert written(tmp_path, Change(now_ns=200)) == Kept(talks=[talk(b"a", 5, 300)])
    assert written(tmp_path, Change(now_ns=300)) == Kept()


def test_beyond_their_number_the_oldest_conversations_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "MAX_TALKS", 2)
    talks = [Talk(Begun(bytes([n]) * 16, n), 100 + n) for n in range(4)]
    assert written(tmp_path, Change(talks=talks), Change(now_ns=50)) == Kept(talks=talks[2:])


@pytest.mark.parametrize("start_ns", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_time_may_be_any_that_a_span_can_have(start_ns: int, tmp_path: Path) -> None:
    """SQLite's integers have a sign, and one such span would keep all others from being written."""
    talks = [Talk(Begun(b"a" * 16, start_ns), 100)]
    assert written(tmp_path, Change(talks=talks)) == Kept(talks=talks)


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_written_does_not_depend_on_whether_its_statement_is_kept(more: int, tmp_path: Path) -> None:
    sizes = [statements._KEPT_BYTES - 10, 10 + more]
    bodies = [Body(number, TRACES, 1, bytes(size), ("one",)) for number, size in enumerate(sizes)]
    assert len(list(statements.insert("bodies", [(body.number, body.wire) for body in bodies]))) == 1 + more
    assert written(tmp_path, Change(bodies)) == Kept(bodies)


def test_nothing_of_what_was_written_stays_in_memory(tmp_path: Path) -> None:
    """Of groups of all sizes: neither in SQLite's statements nor with the thread that wrote them."""
    if not hasattr(SQLITE, "sqlite3_memory_used"):
        pytest.skip("this Python's SQLite does not tell how much memory it uses")
    SQLITE.sqlite3_memory_used.restype = ctypes.c_int64

    def used() -> int:
        return int(SQLITE.sqlite3_memory_used()) + tracemalloc.get_traced_memory()[0]

    async def scenario() -> None:
        journal = Journal(JournalFile(tmp_path), 10**9)
        chance = random.Random(1)
        before = used()
        for count in range(1, 20):
            bodies = [Body(journal.next_number(), TRACES, 1, chance.randbytes(50_000), ("one",)) for _ in range(count)]
            pieces = [Piece(A, TRACES, chance.randbytes(50_000), b"", b"") for _ in range(count)]
            steps = [Change([body], [piece]) for body, piece in zip(bodies, pieces, strict=True)]
            await asyncio.gather(*(journal.write(step) for step in steps))
        del bodies, pieces, steps
        # As little as SQLite's own cache of pages; the thread tells nobody when it has let go.
        while used() - before > 4 * 10**6:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await journal.close()

    tracemalloc.start()
    try:
        within(20, scenario)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [1, 200])
def test_many_rows_take_several_statements(size: int, tmp_path: Path) -> None:
    bodies = [Body(number, TRACES, 1, bytes(size), ("one",)) for number in range(1001)]
    assert written(tmp_path, Change(bodies)) == Kept(bodies)
    assert written(tmp_path, Change(delivered=[(n, "") for n in range(1000)])) == Kept(bodies[1000:])


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "journal"
    file = JournalFile(folder)
    file.write([Change(BODIES)])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"journal.db": 0o600, "journal.db-wal": 0o600, "reserve": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    file.close()


@pytest.mark.parametrize("pack", [bytes, Packer().pack])
def test_what_was_delivered_can_no_longer_be_found_in_the_files(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    secret = random.Random(1).randbytes(80_000)
    file = JournalFile(tmp_path)
    file.write([Change([Body(0, TRACES, 1, pack(secret), ("one",))], [Piece(A, TRACES, pack(secret), b"", b"")])])
    assert any(secret[1000:1100] in path.read_bytes() for path in tmp_path.iterdir())
    file.write([Change(delivered=[(0, "")], settled=[A])])
    file.tidy()
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert [at for at in range(0, len(secret), 100) if secret[at : at + 100] in content] == []
    file.close()


def test_packed_rows_are_found_again_as_they_were(tmp_path: Path) -> None:
    pack = Packer().pack
    long = b"what a tool returned, " * 1000
    bodies, pieces = [Body(1, TRACES, 1, long, ("one",))], [Piece(A, TRACES, long, long[:9000], b"")]
    packed = Change(
        [replace(bodies[0], wire=pack(long))], [replace(pieces[0], held=pack(long), read=pack(long[:9000]))]
    )
    assert packed.size < 2000
    assert written(tmp_path, packed) == Kept(bodies, pieces)


def test_two_processes_cannot_share_one(tmp_path: Path) -> None:
    file = JournalFile(tmp_path)
    with pytest.raises(ConfigError, match=r"journal\.path: .* is in use by another process"):
        JournalFile(tmp_path)
    file.close()


def test_a_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for folder in ("file", "file/journal", "nowhere", "loop", "loop/journal"):
        place = tmp_path / folder.partition("/")[0]
        assert told(tmp_path / folder) == (
            f"journal.path: {place} is no folder; name another folder, or write journal: none"
        )


READ_ONLY = "{place} is on a read-only file system; mount it writable, name another folder, or write journal: none"
NOT_OURS = "{place} may not be written by user 65534; give it to that user, name another folder, or write journal: none"


@pytest.fixture
def states() -> Iterator[Path]:
    """A folder for each state that a journal is found in, where others may look too."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    (place / "empty").mkdir()
    for name in ("whole", "damaged", "killed while set aside"):
        written(place / name, MANY)
    garbage(place / "damaged" / "journal.db")
    (place / "killed while set aside" / "journal.db").rename(place / "killed while set aside" / "journal-fresh.db")
    yield place
    shutil.rmtree(place)


def files_in(place: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def told(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        JournalFile(folder)
    return str(caught.value)


STATES = ("missing", "empty", "whole", "damaged", "killed while set aside")


@pytest.mark.skipif(bool(os.geteuid()), reason="only root may mount a folder read-only")
def test_a_folder_on_a_read_only_file_system_is_said_to_be_and_stays_as_it_is(states: Path) -> None:
    before = files_in(states)
    if subprocess.run(["mount", "--bind", states, states], check=False, capture_output=True).returncode:
        pytest.skip("this root may not mount a folder read-only")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", states], check=True)
        for folder in STATES:
            assert told(states / folder) == f"journal.path: {READ_ONLY.format(place=states / folder)}"
    finally:
        subprocess.run(["umount", states], check=True)
    assert files_in(states) == before


@pytest.mark.skipif(bool(os.geteuid()), reason="only root may become another user, whom permissions bind")
def test_a_folder_or_file_of_another_user_is_said_to_be_and_stays_as_it_is(states: Path) -> None:
    for folder in ("empty", "whole", "damaged", "killed while set aside"):
        (states / folder).chmod(0o755)
    (states / "file").mkdir()
    shutil.copy(states / "whole" / "journal.db", states / "file")
    (states / "file").chmod(0o777)
    before = files_in(states)
    places = {**{folder: folder for folder in STATES}, "missing": "", "file": "file/journal.db"}
    os.setresuid(65534, 65534, 0)
    try:
        said = {folder: told(states / folder) for folder in places}
    finally:
        os.setresuid(0, 0, 0)
    assert said == {
        folder: f"journal.path: {NOT_OURS.format(place=states / place)}" for folder, place in places.items()
    }
    assert files_in(states) == before


# ---- broken files ------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()


def of_a_later_version(path: Path) -> None:
    with sqlite3.connect(path) as later:
        later.execute(f"PRAGMA user_version = {journal_file.VERSION + 1}")
    later.close()


def of_an_earlier_version(path: Path) -> None:
    with sqlite3.connect(path) as earlier:
        earlier.execute(f"PRAGMA user_version = {journal_file.VERSION - 1}")
    earlier.close()


def with_a_damaged_row(path: Path) -> None:
    """SQLite finds nothing wrong with it."""
    with sqlite3.connect(path) as damaged:
        packed = bytearray(Packer().pack(b"a prompt, " * 1000))
        packed[20] ^= 0xFF
        damaged.execute("UPDATE bodies SET wire = ? WHERE number = 15", [bytes(packed)])
    damaged.close()


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 3 * journal_room.PAGE_BYTES + 100])


def torn(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-2 * journal_room.PAGE_BYTES :] = b"\xff" * (2 * journal_room.PAGE_BYTES)
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage", [garbage, foreign, of_a_later_version, of_an_earlier_version, with_a_damaged_row, cut_short, torn]
)
def test_a_file_that_cannot_be_read_is_set_aside_with_one_line(
    damage: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert callable(damage)
    written(tmp_path, Change([*BODIES, *(Body(n, TRACES, 1, b"y" * 20_000, ("one",)) for n in range(10, 20))]))
    damage(tmp_path / "journal.db")
    with caplog.at_level(logging.ERROR):
        file = JournalFile(tmp_path)
    assert [r.message.split(" (")[0] for r in caplog.records] == [f"journal {tmp_path}/journal.db cannot be read"]
    assert len(list(tmp_path.glob("broken-*.db"))) == 1
    file.write([Change([Body(99, TRACES, 1, b"new", ("one",))])])
    file.close()
    assert kept_in(tmp_path).bodies[-1].number == 99


MANY = Change(
    [Body(n, TRACES, 1, bytes([n]) * 40_000, ("one",)) for n in range(20)],
    [Piece(f"{n:032x}", TRACES, bytes([n]) * 20_000, b"", b"") for n in range(20)],
    LEFT,
    JUDGED,
)


BUT_A_PAGE = [body for body in MANY.bodies if body.number not in (11, 12)]


def with_a_lost_page(path: Path) -> None:
    """One in the middle of the table, with the ends of two rows on it."""
    content = bytearray(path.read_bytes())
    at = content.index(bytes([12]) * 16_000) // journal_room.PAGE_BYTES * journal_room.PAGE_BYTES
    content[at : at + journal_room.PAGE_BYTES] = bytes(journal_room.PAGE_BYTES)
    path.write_bytes(content)


@pytest.mark.parametrize("checked", [0, journal_file.CHECKED_BYTES])
def test_what_can_be_read_of_a_torn_file_is_kept(checked: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, MANY)
    monkeypatch.setattr(journal_file, "CHECKED_BYTES", checked)
    with_a_lost_page(tmp_path / "journal.db")
    kept = kept_in(tmp_path)
    assert kept.broken != ""
    assert (kept.bodies, kept.left, kept.judged) == (BUT_A_PAGE, LEFT, JUDGED)
    assert kept.pieces == MANY.pieces


WRONG = {
    "a number for contents": ("bodies", "wire = 5"),
    "nothing for contents": ("bodies", "wire = NULL"),
    "a text for contents": ("pieces", "held = 'text'"),
    "a packed row with a bit that flipped": ("pieces", "held = X'28b52ffd00000001'"),
    "no destinations": ("bodies", "destinations = 'null'"),
    "destinations that are no JSON": ("bodies", "destinations = '['"),
    "a number for a destination": ("bodies", "destinations = '[1]'"),
    "a signal that there is not": ("bodies", "signal = 'tracks'"),
    "a text for a count": ("bodies", "count = 'many'"),
    "a trace id that is not hex": ("pieces", "trace = 'x'"),
    "a trace id that is no text": ("pieces", "trace = 3.5"),
}


@pytest.mark.parametrize(("table", "value"), WRONG.values(), ids=WRONG)
def test_a_damaged_row_costs_itself_alone(table: str, value: str, tmp_path: Path) -> None:
    written(tmp_path, MANY)
    with sqlite3.connect(tmp_path / "journal.db") as damaged:
        damaged.execute(f"UPDATE {table} SET {value} WHERE rowid = 7")
    damaged.close()
    kept = kept_in(tmp_path)
    kept.broken, why = "", kept.broken
    expected = Kept(list(MANY.bodies), list(MANY.pieces), LEFT, JUDGED)
    if table == "bodies":
        del expected.bodies[7]
    else:
        del expected.pieces[6]
    assert kept == expected
    assert why


@pytest.mark.parametrize("size", [1, 8, journal_room.PAGE_BYTES])
def test_whatever_is_damaged_it_starts_with_what_can_be_read(size: int, tmp_path: Path) -> None:
    """Bits that flip, headers, tables' definitions, whole pages: of 30 files each, cut off behind it in every other."""
    written(tmp_path / "whole", MANY)
    whole = (tmp_path / "whole" / "journal.db").read_bytes()
    chance = random.Random(size)
    found = 0
    for number in range(30):
        folder = tmp_path / str(number)
        folder.mkdir()
        at = chance.choice([chance.randrange(200), chance.randrange(len(whole)), chance.randrange(14_000, 16_384)])
        broken = whole[:at] + chance.randbytes(size) + whole[at + size :]
        (folder / "journal.db").write_bytes(broken if number % 2 else broken[: max(at, len(whole) // 2)])
        kept = kept_in(folder)
        assert [body.number for body in kept.bodies] == sorted({body.number for body in kept.bodies})
        assert len(list(folder.glob("broken-*.db"))) == bool(kept.broken)
        assert kept_in(folder) == replace(kept, broken="")
        found += len(kept.bodies) + len(kept.pieces)
    assert found >= 30 * 10


def test_a_full_disk_leaves_a_damaged_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, MANY)
    with_a_lost_page(tmp_path / "journal.db")
    with monkeypatch.context() as full:
        full.setattr(journal_room.Room, "check", _no_room)
        with pytest.raises(ConfigError, match="the disk is full"):
            JournalFile(tmp_path)
    assert list(tmp_path.glob("broken-*")) == []
    assert kept_in(tmp_path).bodies == BUT_A_PAGE


def _no_room(*_: object) -> None:
    raise OSError("the disk is full")


def test_a_kill_while_a_damaged_file_is_set_aside_costs_nothing(tmp_path: Path) -> None:
    written(tmp_path, MANY)
    (tmp_path / "journal.db").rename(tmp_path / "journal-fresh.db")
    assert kept_in(tmp_path) == Kept(list(MANY.bodies), list(MANY.pieces), LEFT, JUDGED)


def test_files_set_aside_within_a_second_do_not_overwrite_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor one of which a kill left only the write-ahead file."""
    monkeypatch.setattr("time.strftime", lambda *_: "20260131T120000Z")
    (tmp_path / "broken-20260131T120000Z-2.db-wal").write_bytes(b"before a kill")
    for content in (b"first", b"second", b"third"):
        (tmp_path / "journal.db").write_bytes(content * 100)
        kept_in(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("broken-*")} == {
        "broken-20260131T120000Z.db": b"first" * 100,
        "broken-20260131T120000Z-2.db-wal": b"before a kill",
        "broken-20260131T120000Z-3.db": b"second" * 100,
        "broken-20260131T120000Z-4.db": b"third" * 100,
    }


# ---- merging -----------------------------------------------------------------------------------


def test_steps_are_merged_unless_something_comes_after_it_went() -> None:
    comes, goes = Change(pieces=PIECES[:1]), Change(settled=[A])
    assert merge([comes, goes]) == [
        Change(bodies=[], pieces=PIECES[:1], left=[], judged=[], talks=[], delivered=[], settled=[A], final=[])
    ]
    assert merge([goes, comes]) == [goes, comes]
    assert merge([Change(final=[f"{A}:root"]), Change(judged=JUDGED)]) == [
        Change(final=[f"{A}:root"]),
        Change(judged=JUDGED),
    ]
    assert merge([]) == []


# ---- group commit ------------------------------------------------------------------------------


class Stubborn(JournalFile):
    """Refuses to write while it is told to."""

    refuse = False
    steps: list[Sequence[Change]]

    def write(self, changes: Sequence[Change]) -> None:
        if self.refuse:
            self._room.give_up_reserve()
            raise Full("disk is full")
        self.__dict__.setdefault("steps", []).append(changes)
        super().write(changes)


def test_changes_are_committed_in_order_and_told_then(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal = Journal(JournalFile(tmp_path), 10**8)
        told: list[int] = []
        for number in range(10):
            change = Change([Body(journal.next_number(), TRACES, 1, b"x", ("one",))])
            journal.write(change).add_done_callback(lambda _, n=number: told.append(n))  # type: ignore[misc]
        await journal.flush()
        assert told == list(range(10))
        journal.delivered("one", [0, 1, 2])
        await journal.close()
        file = JournalFile(tmp_path)
        assert [body.number for body in file.kept.bodies] == list(range(3, 10))
        journal = Journal(file, 10**8)
        assert journal.next_number() == 10
        await journal.close()

    within(20, scenario)


def test_one_is_told_in_order_whether_or_not_it_still_waits_and_whatever_another_does_when_told(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        troubles: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context["message"]))
        file = Stubborn(tmp_path)
        journal = Journal(file, 10**8)
        told: list[tuple[str, bool]] = []

        def note(name: str) -> Callable[[bool], None]:
            def tell(written: bool) -> None:
                told.append((name, written))
                if name == "faulty":
                    raise RuntimeError(name)

            return tell

        def write(name: str, *, owed: bool = False) -> asyncio.Future[None]:
            return journal.write(
                Change([Body(journal.next_number(), TRACES, 1, b"x", ("one",))]), note(name), owed=owed
            )

        waits, gone, faulty, last = (write(name) for name in ("waits", "gone", "faulty", "last"))
        gone.cancel()
        await asyncio.gather(waits, faulty, last)
        assert told == [("waits", True), ("gone", True), ("faulty", True), ("last", True)]
        assert troubles == ["journal: told in vain"]
        told.clear()
        file.refuse = True
        refused, owed = write("refused"), write("owed", owed=True)
        await owed
        assert told == [("refused", False), ("owed", True)]
        assert isinstance(refused.exception(), Busy)
        file.refuse = False
        assert await journal.close()

    within(20, scenario)


def test_one_that_comes_alone_waits_for_nobody_and_those_that_come_together_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luckrate_otel.service.journal.journal.QUIET", 0.001)

    async def scenario() -> None:
        file = Stubborn(tmp_path)
        journal = Journal(file, 10**8)

        def write() -> asyncio.Future[None]:
            return journal.write(Change([Body(journal.next_number(), TRACES, 1, b"x", ("one",))]))

        with monkeypatch.context() as long:
            long.setattr("luckrate_otel.service.journal.journal.QUIET", 3600.0)
            for _ in range(3):
                await write()  # would wait for an hour, were it to wait for others
        for _ in range(3):
            await asyncio.gather(*(write() for _ in range(8)))
        await journal.close()
        # The first of a burst finds nobody there yet.
        assert [len(change.bodies) for (change,) in file.steps] == [1, 1, 1, 1, 7, 8, 8]

    within(20, scenario)


@settings(max_examples=30, deadline=None)
@given(turns=st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_whenever_they_come_all_are_written_once_and_in_order(turns: list[int]) -> None:
    """Before, while and after others are on their way to the disk. turns: of the event loop before each step."""

    told: list[int] = []

    async def scenario() -> None:
        journal = Journal(JournalFile(Path(folder)), 10**8)
        for number, wait in enumerate(turns):
            for _ in range(wait**3):
                await asyncio.sleep(0)
            change = Change([Body(number, TRACES, 1, bytes([number]), ("one",))])
            journal.write(change, lambda _, n=number: told.append(n))  # type: ignore[misc]
            journal.note(Change(settled=[A]))
        assert await journal.close()

    with tempfile.TemporaryDirectory() as folder:
        within(20, scenario)
        assert told == list(range(len(turns)))
        assert [body.number for body in kept_in(Path(folder)).bodies] == told


@pytest.mark.parametrize("waited_for", [True, False])
def test_a_stream_that_never_pauses_does_not_put_off_a_commit(
    waited_for: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luckrate_otel.service.journal.journal.LINGER", 0.005)

    async def scenario() -> None:
        file = Stubborn(tmp_path)
        journal = Journal(file, 10**8)
        # Several together, after which it waits for company.
        await asyncio.gather(*(journal.write(Change(settled=[A])) for _ in range(3)))
        before = len(file.steps)
        while len(file.steps) == before:  # else until the test's deadline
            if waited_for:
                journal.write(Change(settled=[A]))
            else:
                journal.note(Change(settled=[A]))
            await asyncio.sleep(0)
        assert await journal.close()

    within(20, scenario)


def test_a_body_for_two_destinations_goes_with_the_second(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal = Journal(JournalFile(tmp_path), 10**8)
        await journal.write(
            Change([Body(0, TRACES, 1, b"x", ("one", "two")), Body(1, TRACES, 1, b"y", ("one", "two"))])
        )
        journal.delivered("one", [0, 1])
        journal.delivered("two", [1])
        await journal.close()
        file = JournalFile(tmp_path)
        assert file.kept.bodies == [Body(0, TRACES, 1, b"x", ("two",))]
        journal = Journal(file, 10**8)
        journal.delivered("two", [0])
        await journal.close()
        assert kept_in(tmp_path) == Kept()

    within(20, scenario)


def test_beyond_its_size_requests_are_asked_to_wait_and_giants_to_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = JournalFile(tmp_path)
        journal = Journal(file, file.used_bytes + 1000 + ROW_BYTES)
        journal.check(1000)
        with pytest.raises(TooLarge):
            journal.check(journal.max_bytes + 1)
        done = journal.write(Change([Body(0, TRACES, 1, bytes(1000), ("one",))]))
        with pytest.raises(Busy, match="the journal is full"):  # counted while it is on its way
            journal.check(1000)
        await done
        with pytest.raises(Busy, match="the journal is full"):
            journal.check(1000)
        await journal.close()

    within(20, scenario)


def test_a_full_disk_refuses_requests_and_keeps_trying_what_is_owed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("luckrate_otel.service.journal.writer.RETRY_AFTER", 0.01)

    async def scenario() -> None:
        file = Stubborn(tmp_path)
        journal = Journal(file, 10**8)
        file.refuse = True
        asked = journal.write(Change([Body(0, TRACES, 1, b"asked", ("one",))]))
        owed = journal.write(Change([Body(1, TRACES, 1, b"owed", ("one",))]), owed=True)
        with pytest.raises(Busy, match="the journal cannot be written: disk is full"):
            await asked
        await owed
        with pytest.raises(Busy, match="disk is full"):
            journal.check(0)
        assert not (tmp_path / "reserve").exists()
        file.refuse = False
        while journal.trouble:
            await journal.flush()
        journal.check(0)
        assert (tmp_path / "reserve").exists()
        await journal.close()
        assert kept_in(tmp_path).bodies == [Body(1, TRACES, 1, b"owed", ("one",))]

    within(20, scenario)
    assert [r.message for r in caplog.records if r.levelno == logging.ERROR] == [
        "journal: cannot be written, requests are refused: disk is full"
    ]


class Narrow(JournalFile):
    """Has room for steps of so many bytes."""

    room = 10**9
    steps: list[Sequence[Change]]

    def write(self, changes: Sequence[Change]) -> None:
        if sum(change.size for change in changes) > self.room:
            raise Full("disk is full")
        super().write(changes)
        self.__dict__.setdefault("steps", []).append(changes)


def test_what_is_owed_gets_through_as_far_as_there_is_room_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large verdict waits; deliveries that have nothing to do with it are noted, and so make room for it."""
    monkeypatch.setattr("luckrate_otel.service.journal.writer.RETRY_AFTER", 0.01)
    small, large = (Body(number, TRACES, 1, bytes(size), ("one",)) for number, size in ((0, 10), (1, 5000)))

    async def scenario() -> None:
        file = Narrow(tmp_path)
        journal = Journal(file, 10**8)
        await journal.write(Change([small], PIECES))
        file.room = 2000
        await journal.write(Change([large], settled=[A]), owed=True)
        await journal.write(Change(left=LEFT), owed=True)  # of the same trace: not before the other
        journal.delivered("one", [0])
        journal.delivered("one", [1])  # nor this
        await journal.flush()
        while [Change(delivered=[(0, "")])] not in file.steps:
            await journal.flush()
        assert file.steps == [[Change([small], PIECES)], [Change(delivered=[(0, "")])]]
        file.room = 10**9
        while journal.trouble:
            await journal.flush()
        await journal.close()

    within(20, scenario)
    assert kept_in(tmp_path) == Kept([], PIECES[1:], LEFT)


@pytest.mark.parametrize("bodies", [[], [Body(3, TRACES, 1, b"lost", ("one",))]])
def test_a_step_that_can_never_be_written_is_let_go_and_holds_up_no_other(
    bodies: list[Body], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be owed for ever, and every request be refused with it."""
    monkeypatch.setattr("luckrate_otel.service.journal.writer.RETRY_AFTER", 0.01)
    never = Judged(f"{A}:root", 2**64, 123)

    async def scenario() -> None:
        file = JournalFile(tmp_path)
        journal = Journal(file, 10**8)
        first = journal.write(Change(left=LEFT))  # while it is written the others come together
        good = Body(1, TRACES, 1, b"owed", ("one",))
        poison = journal.write(Change(bodies, judged=[never], settled=[A]), owed=True)
        owed = journal.write(Change([good], settled=[B]), owed=True)
        with pytest.raises(Busy, match="fault: OverflowError"):
            await journal.write(Change([Body(2, TRACES, 1, b"refused", ("one",))]))
        await asyncio.gather(first, poison, owed)
        while journal.trouble:
            await journal.flush()
        await journal.write(Change(settled=[A]), owed=True)  # what the other did not take away
        assert await journal.close() is not bool(bodies)
        assert kept_in(tmp_path) == Kept([good])

    within(20, scenario)
    assert [r.message.split(":")[1] for r in caplog.records if r.levelno == logging.ERROR] == [
        " a step cannot be written and is let go",
        " cannot be written, requests are refused",
    ]


def test_closed_twice_it_tells_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        journal = Journal(JournalFile(tmp_path), 10**8)
        journal.note(Change(settled=[A]))
        assert all(await asyncio.gather(journal.close(), journal.close()))
        assert await journal.close()
        assert journals() == before

    def journals() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "journal"]

    before = journals()
    within(20, scenario)


# ---- room --------------------------------------------------------------------------------------


class Disk:
    """What is said to be free."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
        self.free = free
        monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_bavail=self.free, f_frsize=1))


def test_nothing_is_written_that_the_main_file_would_have_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else neither file could be written any more. Once for the write-ahead file, and once for the main one."""
    disk = Disk(monkeypatch, 10**9)
    file = JournalFile(tmp_path)
    file.empty()
    file.write([Change([Body(0, TRACES, 1, bytes(500_000), ("one",))])])
    file.empty()
    change = Change([Body(1, TRACES, 1, bytes(400_000), ("one",))])
    disk.free = 2 * change.size - journal_room.RESERVE_BYTES - 1
    with pytest.raises(Full, match="the disk is full"):
        file.write([change])
    assert not file._room.has_reserve
    disk.free = 2 * change.size - 1
    with pytest.raises(Full, match="the disk is full"):
        file.write([change])
    disk.free = change.size
    file.write([Change(delivered=[(0, "")])])  # what only goes is always taken
    file.empty()
    file.write([change])  # into the pages that are free now
    file.close()
    assert kept_in(tmp_path) == Kept(list(change.bodies))


def test_where_room_is_short_rows_are_written_over_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = random.Random(1).randbytes(80_000)

    def found() -> bool:
        return any(secret[at : at + 100] in path.read_bytes() for path in tmp_path.iterdir() for at in (100, 70_000))

    disk = Disk(monkeypatch, 10**9)
    file = JournalFile(tmp_path)
    file.write([Change([Body(0, TRACES, 1, secret, ("one",)), Body(1, TRACES, 1, b"stays", ("one",))])])
    file.empty()
    disk.free = journal_room.TIGHT_BYTES - journal_room.RESERVE_BYTES - 1
    size = (tmp_path / "journal.db-wal").stat().st_size
    file.write([Change(delivered=[(0, "")])])
    assert (tmp_path / "journal.db-wal").stat().st_size - size < 80_000
    file.tidy()
    assert found()
    disk.free += 1
    file.tidy()
    assert not found()
    file.close()
    assert kept_in(tmp_path) == Kept([Body(1, TRACES, 1, b"stays", ("one",))])


def test_a_reserve_that_was_cut_short_is_none(tmp_path: Path) -> None:
    file = JournalFile(tmp_path)
    (tmp_path / "reserve").write_bytes(bytes(journal_room.RESERVE_BYTES - 1))
    assert not file._room.has_reserve
    assert file.restore_reserve()
    assert (tmp_path / "reserve").stat().st_size == journal_room.RESERVE_BYTES
    file.close()


@pytest.mark.parametrize("put_back", [False, True])
def test_a_journal_that_was_removed_takes_nothing_any_more(
    put_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would write on into the deleted file, and what was acknowledged would not survive."""
    monkeypatch.setattr("luckrate_otel.service.journal.writer.RETRY_AFTER", 0.01)

    async def scenario() -> None:
        folder = tmp_path / "journal"
        journal = Journal(JournalFile(folder), 10**8)
        shutil.rmtree(folder)
        if put_back:
            folder.mkdir()
        for number in range(3):
            with pytest.raises(Busy, match=r"journal.db was removed or replaced; restart to begin a new one"):
                await journal.write(Change([Body(number, TRACES, 1, b"x", ("one",))]))
            with pytest.raises(Busy, match="removed or replaced"):
                journal.check(0)
            await journal.flush()
        assert not await journal.close()

    within(20, scenario)


@pytest.mark.parametrize("until_the_last", [False, True], ids=["room at the end", "full to the last"])
def test_what_is_owed_is_tried_once_more_at_the_end_and_said_if_it_was_in_vain(
    until_the_last: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("luckrate_otel.service.journal.writer.RETRY_AFTER", 3600.0)

    async def scenario() -> None:
        journal = Journal(JournalFile(tmp_path), 10**8)
        body = Body(1, TRACES, 1, b"owed", ("one",))
        with monkeypatch.context() as full:
            full.setattr(journal_room.Room, "check", _no_room)
            await journal.write(Change([body]), owed=True)
            if until_the_last:
                assert not await journal.close()
        if not until_the_last:
            assert await journal.close()
        assert kept_in(tmp_path).bodies == ([] if until_the_last else [body])

    within(20, scenario)


def test_a_large_request_that_a_short_disk_has_no_room_for_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it were tried, the reserve would go and every other sender be refused with it, each time it comes again."""

    async def scenario() -> None:
        disk = Disk(monkeypatch, 10**9)
        file = JournalFile(tmp_path)
        file.empty()
        journal = Journal(file, 10**9)
        disk.free = 2 * LARGE_BYTES + 1
        for size, refused in ((LARGE_BYTES, False), (LARGE_BYTES + 1, True), (10 * LARGE_BYTES, True)):
            if refused:
                with pytest.raises(Busy, match="no room for a request of this size"):
                    journal.check(size)
            else:
                journal.check(size)
        disk.free = 2 * LARGE_BYTES + 2
        journal.check(LARGE_BYTES + 1)
        assert file._room.has_reserve
        assert journal.trouble == ""
        await journal.close()

    within(20, scenario)
