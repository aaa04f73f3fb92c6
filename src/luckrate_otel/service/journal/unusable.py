"""Why a journal cannot be used, and what to do about it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

_SYSTEM: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_AUTH,
    }
)


def of_the_system(error: sqlite3.Error, path: Path) -> bool:
    """Whether it is the machine that keeps us from the file, and not what is in the file."""
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary == sqlite3.SQLITE_READONLY:  # a damaged head says the same of a file that can be written
        return not os.access(path, os.W_OK)
    return primary in _SYSTEM


def cause(error: Exception, path: Path) -> str:
    """One line for whoever started it. path: of the journal's main file."""
    if isinstance(error, sqlite3.Error) and _busy(error):
        return f"{path} is in use by another process; give each its own, or stop the other"
    # SQLite says of both no more than that it cannot open or write the file; the system names a file of many.
    if told := no_folder(path.parent):
        return told
    folder = _nearest(path.parent)
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return f"{path.parent} is on a read-only file system; mount it writable, {_OTHERWISE}"
    for place, needed in ((folder, os.W_OK | os.X_OK), (path, os.R_OK | os.W_OK)):
        if _is_there(place) and not os.access(place, needed):
            return f"{place} may not be written by user {os.geteuid()}; give it to that user, {_OTHERWISE}"
    words = error.strerror.lower() if isinstance(error, OSError) and error.strerror else error
    return f"{path} cannot be used ({words}); name a folder that can be written, or write journal: none"


def no_folder(path: Path) -> str:
    """Why a journal cannot have its folder there, whoever runs it; "" if it can."""
    nearest = _nearest(path)
    return "" if nearest.is_dir() else f"{nearest} is no folder; {_OTHERWISE}"


_OTHERWISE: Final = "name another folder, or write journal: none"


def _busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", None) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _nearest(folder: Path) -> Path:
    """The folder, or the one above it where it would have to be made; a link that leads nowhere counts as there."""
    return next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))


def _is_there(place: Path) -> bool:
    return os.path.exists(place)  # noqa: PTH110 - before Python 3.12 Path.exists raises in a folder that is closed to us
