"""SQL of the journal: one statement for all rows of a kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

# One of SQL, with its values.
Statement = tuple[str, Sequence[Any]]

# Rows of one INSERT: SQLite takes 32,766 values.
_ROWS: Final = 500

# Conversations that are known to have begun; 5 MB on disk, and 10 MB in the memory of the next process.
MAX_TALKS: Final = 65_536


def insert(table: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[Statement]:
    """Rows that come, or replace those with their key."""
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        marks = ",".join([f"({','.join('?' * len(some[0]))})"] * len(some))
        yield (
            f"INSERT OR REPLACE INTO {table} VALUES {marks}",  # noqa: S608 - names from the program, values as parameters
            [value for row in some for value in row],
        )


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
