"""Histories that grow: every model call of a run repeats the messages of the call before it.

Parsing each anew costs the square of the run's length. The text of a longer history begins with that of the shorter
one, so the few last ones are kept, and only what is new is parsed. The answer is the same as without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from luckrate_otel.content.structured import loads
from luckrate_otel.facts import Message

# Conversations that go on at the same time; each costs a reference to its last text and messages.
KEPT = 32
MIN_CHARS = 2048  # below this, parsing is cheaper than looking

_Entry = tuple[str, tuple[Message, ...]]


class Replay:
    """A small memory of histories, each as its text without the closing bracket, and its messages.

    Safe to share between threads: entries are never changed, and the memory is replaced as a whole.
    """

    def __init__(self) -> None:
        self._entries: tuple[_Entry, ...] = ()

    def messages(self, text: str, read: Callable[[Any], tuple[Message, ...] | None]) -> tuple[Message, ...] | None:
        """Messages of a JSON array of messages; None if it is none of that form, and the caller must look itself.

        read: parsed array → messages, None unless every item is a message by itself.
        """
        if len(text) < MIN_CHARS or text[:2] != "[{" or text[-1:] != "]":
            return None
        known = max((e for e in self._entries if text.startswith(e[0])), key=lambda e: len(e[0]), default=None)
        rest = text[len(known[0]) :] if known else text
        if known and rest == "]":
            return known[1]
        if known and rest[:1] != ",":
            known, rest = None, text
        try:
            new = read(loads("[" + rest[1:]))
        except ValueError:
            return None
        if new is None:
            return None
        found = (*known[1], *new) if known else new
        self._entries = ((text[:-1], found), *(e for e in self._entries if e is not known))[:KEPT]
        return found
