"""Room on the disk for the journal: that it can always be emptied, also when there is none left."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final

# Rows are bodies of kilobytes to megabytes; larger pages keep more of each in one piece.
PAGE_BYTES: Final = 16 * 1024

# The write-ahead file is moved into the main one at this size. A row that goes before that was written once only.
WAL_BYTES: Final = 16 * 2**20

# Kept beside the journal and given up when the disk is full. Without it a full disk could not be helped: to note that
# rows are gone takes room in the write-ahead file, and to empty that takes room in the main one, up to WAL_BYTES.
RESERVE_BYTES: Final = 24 * 2**20

# With less room than this on the disk, pages that rows leave free are no longer written over: that takes as much of the
# write-ahead file as the rows were long, which is what a full disk does not have. They are cut off when there is room.
TIGHT_BYTES: Final = 4 * RESERVE_BYTES

# What a row that only goes may take of the write-ahead file, if it is not written over: its share of a page.
_GOING_BYTES: Final = 4 * 1024


class Room:
    """Of one open journal. path: of its main file."""

    def __init__(self, path: Path, sql: sqlite3.Connection) -> None:
        self._path = path
        self._sql = sql
        self._place = _place(path)
        self._reserve = path.with_name("reserve")
        self._overwrites = True
        self._uncleaned = False

    def check(self, coming: int, going: int) -> None:
        """Refuse what could be written to the write-ahead file but not moved from there into the main one.

        Such a file can neither be emptied nor written to any more, so it would never recover by itself. Raises OSError.
        coming: bytes of rows. going: rows.
        """
        self._check_place()
        free = self._look()
        ahead = self._ahead_bytes()
        written = coming + going * _GOING_BYTES
        # The main file may have to grow by all that stands in the write-ahead file, but for pages that are free in it.
        needed = 2 * written + ahead
        if needed > free and self.has_reserve:
            free += RESERVE_BYTES
        if needed > free:
            (unused,) = self._sql.execute("PRAGMA freelist_count").fetchone()
            needed -= min(written + ahead, unused * PAGE_BYTES)
        if needed > free:
            raise OSError("the disk is full")

    def has_room(self, coming: int) -> bool:
        """Whether that many bytes of rows would leave the reserve alone. For any thread."""
        try:
            disk = os.statvfs(self._path.parent)
        except OSError:
            return False
        return 2 * coming + self._ahead_bytes() <= disk.f_bavail * disk.f_frsize

    @property
    def in_place(self) -> bool:
        """Whether the path still names the file that is open."""
        with suppress(OSError):
            return _place(self._path) == self._place
        return False

    def _check_place(self) -> None:
        """What is written to a file that was deleted is lost with this process. Raises OSError."""
        if self.in_place:
            return
        raise OSError(f"{self._path.name} was removed or replaced; restart to begin a new one")

    def _look(self) -> int:
        """Bytes free on the disk; also sees to whether rows that go are written over."""
        disk = os.statvfs(self._path.parent)
        free = disk.f_bavail * disk.f_frsize
        overwrites = free + (RESERVE_BYTES if self.has_reserve else 0) >= TIGHT_BYTES
        if overwrites is not self._overwrites:
            self._sql.execute(f"PRAGMA secure_delete = {'ON' if overwrites else 'FAST'}")
            self._overwrites = overwrites
            self._uncleaned = self._uncleaned or not overwrites
        return free

    def _ahead_bytes(self) -> int:
        try:
            return Path(f"{self._path}-wal").stat().st_size
        except FileNotFoundError:
            return 0

    # ---- the reserve -----------------------------------------------------------------------------

    @property
    def has_reserve(self) -> bool:
        try:
            return self._reserve.stat().st_size == RESERVE_BYTES
        except OSError:
            return False

    def give_up_reserve(self) -> None:
        """Use its room to empty the write-ahead file."""
        with suppress(OSError):
            self._reserve.unlink(missing_ok=True)
        self.empty()

    def restore(self) -> bool:
        """Take the reserve again; False if there is no room for it, or the journal itself is gone."""
        if not self.in_place:
            return False
        if self.has_reserve:
            return True
        with suppress(sqlite3.Error):
            self._sql.execute("PRAGMA incremental_vacuum").fetchall()
        self.empty()
        if self._write_reserve():
            return True
        with suppress(OSError):
            self._reserve.unlink(missing_ok=True)
        return False

    def _write_reserve(self) -> bool:
        try:
            handle = os.open(self._reserve, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            try:
                # Not fallocate, which some systems lack and some only promise. A full disk may take a part of it.
                return os.write(handle, bytes(RESERVE_BYTES)) == RESERVE_BYTES
            finally:
                os.close(handle)
        except OSError:
            return False

    # ---- what is gone ----------------------------------------------------------------------------

    def empty(self) -> None:
        """Move what the write-ahead file holds into the main one, and cut it to nothing, if there is room for that."""
        with suppress(sqlite3.Error):
            self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def tidy(self) -> None:
        """Let nothing that is gone stay readable: in the write-ahead file, or in pages that were not written over.

        Raises OSError, sqlite3.Error.
        """
        self._look()
        if self._uncleaned and self._overwrites:
            self._sql.execute("PRAGMA incremental_vacuum").fetchall()  # they leave the file
            self._uncleaned = False
        self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _place(path: Path) -> tuple[int, int]:
    """Which file stands at a path."""
    found = path.stat()
    return found.st_dev, found.st_ino
