"""The journal's file: SQLite in write-ahead mode. Blocking; used by one thread at a time.

Python's sqlite3 gives up the interpreter lock in every step of a statement, and takes milliseconds to get it back from
a busy event loop. So rows go in and out many at a time: one statement for all rows of a kind in a step.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any, Final, TypeVar

from luckrate_otel.errors import ConfigError, Problem
from luckrate_otel.service.journal.kept import Kept, read_kept
from luckrate_otel.service.journal.room import PAGE_BYTES, WAL_BYTES, Room
from luckrate_otel.service.journal.rows import Change
from luckrate_otel.service.journal.statements import Statement, delete, forget_talks, insert, integer_of
from luckrate_otel.service.journal.unusable import cause, of_the_system

_log = logging.getLogger(__name__)

# "LRJ1" and the number of the layout below: a file with others is not ours to read.
APPLICATION_ID: Final = 0x4C524A31
VERSION: Final = 2

# A file up to this size is checked whole at start; a larger one would take too long, and is checked as it is read.
CHECKED_BYTES: Final = 512 * 2**20

# Seconds between two looks at how many pages are in use; what is written in between is added up.
MEASURED_EVERY: Final = 0.05

_Key = TypeVar("_Key", int, str)

# The file itself goes last: without its write-ahead file it can be read, the other way round not.
_SUFFIXES: Final = ("-wal", "-shm", "")

_TABLES = """
CREATE TABLE IF NOT EXISTS bodies
    (number INTEGER PRIMARY KEY, destinations TEXT, signal TEXT, count INTEGER, wire BLOB);
CREATE TABLE IF NOT EXISTS delivered
    (number INTEGER, destination TEXT, PRIMARY KEY (number, destination)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pieces (trace TEXT, signal TEXT, links BLOB, held BLOB, read BLOB);
CREATE INDEX IF NOT EXISTS pieces_by_trace ON pieces (trace);
CREATE TABLE IF NOT EXISTS left (trace TEXT, forwarded BLOB, judged BLOB, span_ids BLOB);
CREATE INDEX IF NOT EXISTS left_by_trace ON left (trace);
CREATE TABLE IF NOT EXISTS judged (run TEXT PRIMARY KEY, revision INTEGER, until INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS talks (digest BLOB PRIMARY KEY, start INTEGER, until INTEGER) WITHOUT ROWID;
"""


class Full(Exception):
    """A step could not be written; nothing of it was. Its text names the cause."""


class JournalFile:
    """folder: made if missing, for its owner alone. full_sync: each step reaches the disk, not only the system.

    Raises ConfigError if the folder cannot be used or another process has the journal. A file that cannot be read is
    set aside and what could be read of it is kept.
    """

    def __init__(self, folder: Path, *, full_sync: bool = False) -> None:
        self.path = folder / "journal.db"
        self._full_sync = full_sync
        self.used_bytes = 0
        self._measured = 0.0
        self.kept = Kept()
        # What has rows in the small tables, so that the usual step, which has none, needs no statement for them.
        self._partly: set[int] = set()
        self._leaving: set[str] = set()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(PermissionError):  # a mounted volume belongs to another; the files are closed all the same
                folder.chmod(0o700)
            self._open()
            self.restore_reserve()
        except (OSError, sqlite3.Error, Full) as error:
            self._disconnect()
            raise ConfigError([Problem("journal.path", cause(error, self.path))]) from error

    # ---- open ------------------------------------------------------------------------------------

    def _open(self) -> None:
        if not self.path.exists() and self._fresh.exists():
            self._fresh.rename(self.path)  # a kill came when the old one had just been set aside
        try:
            damage = self._connect()
            self.kept = read_kept(self._sql)
            self.kept.broken = self.kept.broken or damage
        except (sqlite3.Error, ValueError) as error:
            if isinstance(error, sqlite3.Error) and of_the_system(error, self.path):
                raise
            self.kept = self._rest()
            self.kept.broken = str(error) if isinstance(error, sqlite3.Error) else "its tables are damaged"
        if self.kept.broken:
            self._set_aside(self.kept)
        else:
            self._sql.execute("DELETE FROM delivered WHERE number NOT IN (SELECT number FROM bodies)")
        self._note_small_tables()
        self._measure()

    def _rest(self) -> Kept:
        """What can be read of a file that SQLite refuses as a whole: one that was cut off, or has a damaged table."""
        self._disconnect()
        with suppress(sqlite3.Error, ValueError):
            self._sql = sqlite3.connect(self.path, isolation_level=None)
            self._sql.execute("PRAGMA writable_schema = ON")  # it is then read as far as it goes
            if self._version() == (APPLICATION_ID, VERSION):
                return read_kept(self._sql)
        return Kept()

    @property
    def _fresh(self) -> Path:
        return self.path.with_name("journal-fresh.db")

    def _connect(self, path: Path | None = None) -> str:
        """Open the file; what SQLite finds wrong with it, "" if nothing. Raises sqlite3.Error if it is none of ours,
        ValueError if SQLite's own words about it cannot be read."""
        path = path or self.path
        before = os.umask(0o077)
        try:
            self._sql = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.0)
            # Exclusive: two processes on one journal would deliver everything twice. It also needs no shared memory.
            for pragma in (
                "locking_mode = EXCLUSIVE",
                f"page_size = {PAGE_BYTES}",
                "auto_vacuum = INCREMENTAL",  # so that a full disk gets back what deliveries freed
                "journal_mode = WAL",
                f"synchronous = {'FULL' if self._full_sync else 'NORMAL'}",
                f"wal_autocheckpoint = {WAL_BYTES // PAGE_BYTES}",
                f"journal_size_limit = {2 * WAL_BYTES}",
                "secure_delete = ON",
                "temp_store = MEMORY",
            ):
                self._sql.execute(f"PRAGMA {pragma}")
            damage = self._check(path)
            if not damage:
                with self._transaction():
                    for statement in filter(str.strip, _TABLES.split(";")):
                        self._sql.execute(statement)
        finally:
            os.umask(before)
        self._room = Room(path, self._sql)
        return damage

    def _check(self, path: Path) -> str:
        has_tables = self._one("SELECT count(*) FROM sqlite_master")
        found = self._version()
        if has_tables and found != (APPLICATION_ID, VERSION):
            raise sqlite3.DatabaseError(f"it is of another program or version ({found[0]:#x}, {found[1]})")
        if has_tables and path.stat().st_size <= CHECKED_BYTES:
            found_wrong = str(self._one("PRAGMA quick_check(1)"))
            if found_wrong != "ok":
                return found_wrong
        self._sql.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._sql.execute(f"PRAGMA user_version = {VERSION}")
        return ""

    def _version(self) -> tuple[int, int]:
        return self._one("PRAGMA application_id"), self._one("PRAGMA user_version")

    def _note_small_tables(self) -> None:
        with suppress(sqlite3.Error):
            self._partly = {number for (number,) in self._sql.execute("SELECT number FROM delivered")}
            self._leaving = {trace_id for (trace_id,) in self._sql.execute("SELECT trace FROM left")}

    def _set_aside(self, kept: Kept) -> None:
        """Begin a new file with what could be read; the old one stays beside it for whoever wants to look.

        The new one is whole before the old one goes, so that neither a kill nor a full disk in between costs anything.
        """
        self._disconnect()
        for suffix in _SUFFIXES:
            Path(f"{self._fresh}{suffix}").unlink(missing_ok=True)
        self._connect(self._fresh)
        self.write([Change(kept.bodies, kept.pieces, kept.left, kept.judged, kept.talks)])
        self._disconnect()
        aside = _aside(self.path.parent, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        for suffix in _SUFFIXES:
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
        self._fresh.rename(self.path)
        self._connect()
        _log.error(
            "journal %s cannot be read (%s); set aside as %s. Kept of it: %s",
            self.path, kept.broken, aside.name, kept,
        )  # fmt: skip

    def _disconnect(self) -> None:
        with suppress(sqlite3.Error, AttributeError):  # there may be nothing yet to close
            self._sql.close()

    # ---- write -----------------------------------------------------------------------------------

    def write(self, changes: Sequence[Change]) -> None:
        """Apply steps in order, all or none. Raises Full."""
        coming = sum(change.size for change in changes)
        try:
            self._room.check(coming, sum(change.going for change in changes))
            self._execute([statement for change in changes for statement in self._statements(change)])
        except BaseException as error:
            self._note_small_tables()  # what the step took off them stands in them still
            if not isinstance(error, sqlite3.Error | OSError):
                raise
            self._room.give_up_reserve()
            raise Full(str(error)) from error
        self.used_bytes += coming
        if time.monotonic() - self._measured > MEASURED_EVERY:
            with suppress(sqlite3.Error):  # they are written, and to try them again would write them twice
                self._measure()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._sql.execute("BEGIN")
        try:
            yield
            self._sql.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._sql.execute("ROLLBACK")
            raise

    def _execute(self, statements: Sequence[Statement]) -> None:
        """All or none. One alone is a transaction of its own, and most groups of small requests are one."""
        if len(statements) == 1:
            self._sql.execute(*statements[0])
            return
        with self._transaction():
            for statement in statements:
                self._sql.execute(*statement)

    def _statements(self, change: Change) -> Iterator[Statement]:
        yield from insert(
            "bodies", [(b.number, json.dumps(b.destinations), str(b.signal), b.count, b.wire) for b in change.bodies]
        )
        yield from insert("pieces", [(p.trace_id, str(p.signal), p.links, p.held, p.read) for p in change.pieces])
        yield from insert("left", [(row.trace_id, row.forwarded, row.judged, row.span_ids) for row in change.left])
        yield from insert("judged", [(row.run_id, row.revision, row.until_ns) for row in change.judged])
        talks = [(row.begun.digest, integer_of(row.begun.start_ns), row.until_ns) for row in change.talks]
        yield from insert("talks", talks)
        yield from self._deliver(change.delivered)
        self._leaving.update(row.trace_id for row in change.left)
        yield from delete("pieces", "trace", change.settled)
        yield from delete("left", "trace", _known(self._leaving, change.settled))
        yield from delete("judged", "run", change.final)
        if change.now_ns:
            yield from forget_talks(change.now_ns)

    def _deliver(self, delivered: Sequence[tuple[int, str]]) -> Iterator[Statement]:
        """A body goes when its last destination has it; until then it is noted who has."""
        whole = [number for number, destination in delivered if not destination]
        partly = [pair for pair in delivered if pair[1]]
        yield from insert("delivered", partly)
        self._partly.update(number for number, _ in partly)
        yield from delete("bodies", "number", whole)
        yield from delete("delivered", "number", _known(self._partly, whole))

    def _measure(self) -> None:
        self._measured = time.monotonic()
        self.used_bytes = (self._one("PRAGMA page_count") - self._one("PRAGMA freelist_count")) * PAGE_BYTES

    def _one(self, query: str) -> Any:
        return self._sql.execute(query).fetchone()[0]

    # ---- room ------------------------------------------------------------------------------------

    def has_room(self, coming: int) -> bool:
        """Whether that many bytes of rows can be taken without the reserve. For any thread."""
        return self._room.has_room(coming)

    @property
    def in_place(self) -> bool:
        """Whether the file is still where the next start will look for it."""
        return self._room.in_place

    def restore_reserve(self) -> bool:
        """Take the reserve again; False if there is no room for it, or the journal itself is gone."""
        return self._room.restore()

    def empty(self) -> None:
        """Empty the write-ahead file, if there is room for that."""
        self._room.empty()

    def tidy(self) -> None:
        """Let nothing that is gone stay readable."""
        self._room.tidy()

    def close(self) -> None:
        with suppress(sqlite3.Error, OSError):
            self.tidy()
        self._sql.close()


def _aside(folder: Path, now: str) -> Path:
    """Where a broken file goes; never where one is. What restarts at once breaks two in a second: they get numbers."""
    names = chain([f"broken-{now}.db"], (f"broken-{now}-{number}.db" for number in count(2)))
    # Any of the three files: after a kill between the renames the first ones may stand there alone.
    return next(
        folder / name for name in names if not any(os.path.lexists(folder / f"{name}{suffix}") for suffix in _SUFFIXES)
    )


def _known(known: set[_Key], values: Iterable[_Key]) -> list[_Key]:
    """Those of the values that are known, and no longer known then."""
    found = known.intersection(values)
    known -= found
    return list(found)
