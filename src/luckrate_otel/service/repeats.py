"""Keeps a recurring condition from filling the log."""

from __future__ import annotations

from collections.abc import Callable, Hashable

# One line a minute for each condition: seen in time by a person, nothing to a log store.
EVERY_NS = 60 * 10**9

# Keys come from fixed sets (destination, status code); the bound only makes sure of it.
MAX_KEYS = 1000


class Repeats:
    """Says whether to log a condition now, and in words how often it was kept quiet since the last time."""

    def __init__(self, clock: Callable[[], int], every_ns: int = EVERY_NS) -> None:
        self._clock = clock
        self._every_ns = every_ns
        self._seen: dict[Hashable, tuple[int, int]] = {}

    def due(self, key: Hashable) -> str | None:
        """None: stay quiet. Else log it, with these words behind it: how often it happened unlogged, "" for never."""
        now_ns = self._clock()
        last_ns, quiet = self._seen.get(key, (now_ns - self._every_ns, 0))
        if now_ns - last_ns < self._every_ns or (key not in self._seen and len(self._seen) >= MAX_KEYS):
            if key in self._seen:
                self._seen[key] = (last_ns, quiet + 1)
            return None
        self._seen[key] = (now_ns, 0)
        return f" ({quiet} more unlogged)" if quiet else ""
