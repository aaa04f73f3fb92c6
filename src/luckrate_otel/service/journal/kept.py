"""What a journal holds at start, also of a damaged file: all that can be read of it, whatever lies between."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from luckrate_otel.conversation import Begun
from luckrate_otel.plural import plural
from luckrate_otel.service.journal.packing import unpack
from luckrate_otel.service.journal.rows import Body, Judged, Left, Piece, Talk
from luckrate_otel.service.journal.statements import time_of
from luckrate_otel.service.signals import Signal

# Rows of one table that are stepped over one by one before the rest is looked for from the other end.
_STEPS: Final = 1000

_Row = TypeVar("_Row")


@dataclass(slots=True)
class Kept:
    """What a journal holds at start, each kind oldest first. broken: why the rest could not be read, "" if all was."""

    bodies: list[Body] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    talks: list[Talk] = field(default_factory=list)
    broken: str = ""

    def __str__(self) -> str:
        requests, pieces = plural(len(self.bodies), "request"), len(self.pieces)
        return f"{requests} and {plural(pieces, 'piece of open traces', 'pieces of open traces')}"


def read_kept(sql: sqlite3.Connection) -> Kept:
    """Read every table to its end. Raises nothing: a row that is damaged costs itself, a page the rows on it."""
    reading = _Reading(sql)
    gone = set(reading.rows("delivered", "number", "number, destination", lambda number, name: (number, name)))

    def body(number: int, destinations: str, signal: str, count: int, wire: bytes) -> Body:
        waiting = tuple(name for name in _names(destinations) if (number, name) not in gone)
        return Body(_of(int, number), Signal(signal), _of(int, count), unpack(_of(bytes, wire)), waiting)

    def piece(trace_id: str, signal: str, links: bytes, held: bytes, read: bytes) -> Piece:
        bytes.fromhex(trace_id)
        return Piece(trace_id, Signal(signal), unpack(_of(bytes, held)), unpack(_of(bytes, read)), _of(bytes, links))

    def left(trace_id: str, forwarded: bytes, judged: bytes, span_ids: bytes) -> Left:
        return Left(_of(str, trace_id), _of(bytes, forwarded), _of(bytes, judged), _of(bytes, span_ids))

    def judged(run_id: str, revision: int, until_ns: int) -> Judged:
        return Judged(_of(str, run_id), _of(int, revision), _of(int, until_ns))

    def talk(digest: bytes, start_ns: int, until_ns: int) -> Talk:
        return Talk(Begun(_of(bytes, digest), time_of(_of(int, start_ns))), _of(int, until_ns))

    return Kept(
        list(reading.rows("bodies", "number", "number, destinations, signal, count, wire", body)),
        list(reading.rows("pieces", "rowid", "trace, signal, links, held, read", piece)),
        list(reading.rows("left", "rowid", "trace, forwarded, judged, span_ids", left)),
        list(reading.rows("judged", "run", "run, revision, until", judged)),
        list(reading.rows("talks", "digest", "digest, start, until", talk)),
        reading.broken,
    )


class _Reading:
    """broken: the first thing that was wrong."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self.broken = ""

    def rows(self, table: str, key: str, columns: str, make: Callable[..., _Row]) -> Iterator[_Row]:
        """The rows of a table, made, in the order of its key."""
        for values in self._whole(table, key, columns):
            try:
                made = make(*values)
            except (ValueError, TypeError, AttributeError) as error:  # a value that was never written so
                self._note(error)
            else:
                yield made

    def _whole(self, table: str, key: str, columns: str) -> Iterator[Sequence[Any]]:
        """From the first row on, stepping over those whose contents are damaged; where the tree itself is, what lies
        behind that is read from the last row back."""
        last: Any = None
        for _ in range(_STEPS):
            try:
                for at, *values in self._after(table, key, columns, last):
                    if last is not None and at <= last:
                        break
                    last = at
                    yield values
                else:
                    return
                self._note(ValueError(f"rows of {table} are out of order"))
            except (sqlite3.Error, ValueError, TypeError) as error:
                self._note(error)
            damaged = self._next(table, key, last)
            if damaged is None:
                break
            last = damaged
        yield from reversed(self._from_the_end(table, key, columns, last))

    def _after(self, table: str, key: str, columns: str, last: Any) -> sqlite3.Cursor:
        where, values = ("", []) if last is None else (f"WHERE {key} > ?", [last])
        query = f"SELECT {key}, {columns} FROM {table} {where} ORDER BY {key}"  # noqa: S608 - names from this file
        return self._sql.execute(query, values)

    def _next(self, table: str, key: str, last: Any) -> Any:
        """The key after this one, without a look at what else is in its row; None if it cannot be read either."""
        where, values = ("", []) if last is None else (f"WHERE {key} > ?", [last])
        query = f"SELECT {key} FROM {table} {where} ORDER BY {key} LIMIT 1"  # noqa: S608 - as above
        try:
            found = self._sql.execute(query, values).fetchone()
            return found[0] if found is not None and (last is None or found[0] > last) else None
        except (sqlite3.Error, ValueError, TypeError):
            return None

    def _from_the_end(self, table: str, key: str, columns: str, first: Any) -> list[Sequence[Any]]:
        """Rows after `first`, last one first, as far as they can be read."""
        found: list[Sequence[Any]] = []
        before: Any = None
        try:
            for at, *values in self._sql.execute(f"SELECT {key}, {columns} FROM {table} ORDER BY {key} DESC"):  # noqa: S608 - as above
                if (first is not None and at <= first) or (before is not None and at >= before):
                    break
                before = at
                found.append(values)
        except (sqlite3.Error, ValueError, TypeError) as error:
            self._note(error)
        return found

    def _note(self, error: Exception) -> None:
        self.broken = self.broken or str(error)


def _of(kind: type[_Row], value: Any) -> _Row:
    if type(value) is not kind:
        raise ValueError("a row holds a value of another kind")
    return value


def _names(destinations: str) -> list[str]:
    names = json.loads(destinations)
    if not isinstance(names, list):
        raise ValueError("a row names no destinations")
    return [_of(str, name) for name in names]
