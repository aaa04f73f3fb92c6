"""SQL of the journal: one statement for all rows of a kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

# One of SQL, with its values.
Statement = tuple[str, Sequence[Any]]

# Rows of one INSERT: SQLite takes 32,766 values.
_ROWS: Final = 500

# The sqlite3 module keeps 128 statements, each with a copy of the values it had last: one for each number of rows there
# was. With more than so many bytes of them it is made to let go.
_KEPT_BYTES: Final = 64 * 2**10

# Conversations that are known to have begun; 5 MB on disk, and 10 MB in the memory of the next process.
MAX_TALKS: Final = 65_536


# A time in a span has 64 bits, an integer in SQLite 63 and a sign.
_TIMES: Final = 2**64


def integer_of(time_ns: int) -> int:
    """A time as SQLite can hold it."""
    return time_ns - _TIMES if time_ns >= _TIMES // 2 else time_ns


def time_of(integer: int) -> int:
    """The time that integer_of() was given."""
    return integer % _TIMES


def insert(table: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[Statement]:
    """Rows that come, or replace those with their key."""
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        marks = ",".join([f"({','.join('?' * len(some[0]))})"] * len(some))
        values = [value for row in some for value in row]
        if sum(len(value) for value in values if isinstance(value, bytes)) <= _KEPT_BYTES:
            yield f"INSERT OR REPLACE INTO {table} VALUES {marks}", values  # noqa: S608 - names from the program
            continue
        query = f"INSERT OR REPLACE INTO {table} SELECT * FROM (VALUES {marks}) WHERE ?"  # noqa: S608 - as above
        yield query, [*values, 1]
        yield query, [*[None] * len(values), 0]


def delete(table: str, key: str, values: Sequence[Any]) -> Iterator[Statement]:
    """Rows whose key is one of these go."""
    if values:
        query = f"DELETE FROM {table} WHERE {key} IN (SELECT value FROM json_each(?))"  # noqa: S608 - as above
        yield query, [json.dumps(values)]


def forget_talks(now_ns: int) -> Iterator[Statement]:
    """Conversations go whose time is over, and beyond MAX_TALKS the oldest."""
    yield "DELETE FROM talks WHERE until <= ?", [now_ns]
    newest = "SELECT digest FROM talks ORDER BY until DESC LIMIT ?"
    yield f"DELETE FROM talks WHERE digest NOT IN ({newest})", [MAX_TALKS]  # noqa: S608 - as above
