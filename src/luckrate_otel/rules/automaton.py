"""A regular expression as an automaton: whether it is found in a text, in time that grows as the text does.

`re` tries one way after the other, and `a.*b.*c` has as many as the cube of a text's length. Followed here are all ways
at once, a set of states per character; sets that come again are not worked out again. Classes of characters, anchors
and look-arounds are still judged by `re`, one character or place at a time, so that both read a pattern alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

# Private, and the same since Python 3.11, as in backtracking.py.
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any, Final

Item = tuple[Any, Any]

# What `{1,1000}` unfolds to.
MAX_STATES: Final = 2000

# Anchors and look-arounds that differ: a bit of a byte each.
MAX_ASKED: Final = 8

# Characters that are searched: half a second. States that are followed where sets keep changing: about another second.
MAX_CHARS: Final = 4_000_000
MAX_WORK: Final = 1_000_000

# Sets that are remembered in one search.
_REMEMBERED: Final = 20_000


class Irregular(ValueError):
    """A pattern that no automaton of bearable size can follow: references to groups, atomic groups, huge repeats."""


class TooLong(Exception):
    """A text in which the pattern cannot be searched in bearable time."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """A state that takes one character of a class."""

    one: re.Pattern[str]
    to: int


@dataclass(frozen=True, slots=True)
class _Asks:
    """A state that takes none, and lets pass where a place in the text is as it asks. what: index among the asked."""

    what: int
    to: int


@dataclass(frozen=True, slots=True)
class _Forks:
    """A state that takes none."""

    to: tuple[int, ...]


State = _Reads | _Asks | _Forks

# The state that is reached when all was found.
_END: Final = 0


@dataclass(slots=True)
class _Closed:
    """States that wait for a character. moves: character → where it leads."""

    waiting: tuple[_Reads, ...]
    ended: bool
    moves: dict[str, _Reached] = field(default_factory=dict)


@dataclass(slots=True)
class _Reached:
    """States before the asking. closed: what a place answers → those that are reached with it; always: if none asks."""

    states: frozenset[int]
    closed: dict[int, _Closed] = field(default_factory=dict)
    always: _Closed | None = None


class Automaton:
    """Raises Irregular."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        parsed = _parser.parse(pattern.pattern, pattern.flags)
        self._groups = parsed.state
        self._states: list[State] = [_Forks(())]
        self._asked: dict[str, re.Pattern[str]] = {}
        self._start = self._sequence(list(parsed), parsed.state.flags, _END)

    # ---- searching -----------------------------------------------------------------------------

    def found(self, text: str) -> bool:
        """Whether it is found anywhere in a text. Raises TooLong."""
        if len(text) > MAX_CHARS:
            raise TooLong
        search = _Search(self._states, self._start)
        here = self._answers(text)
        now = search.reached(search.first)
        for at, char in enumerate(text):
            closed = now.always or now.closed.get(here[at]) or search.closed(now, here[at])
            if closed.ended:
                return True
            now = closed.moves.get(char) or search.after(closed, char)
        return (now.always or search.closed(now, here[-1])).ended

    def _answers(self, text: str) -> bytearray:
        """What each place answers, the end too: a bit per asking."""
        answers = bytearray(len(text) + 1)
        for bit, ask in enumerate(self._asked.values()):
            for found in ask.finditer(text):
                answers[found.start()] |= 1 << bit
        return answers

    # ---- building, from the end on -------------------------------------------------------------

    def _sequence(self, items: Iterable[Item], flags: int, to: int) -> int:
        for op, value in reversed(list(items)):
            to = self._item(str(op), op, value, flags, to)
        return to

    def _item(self, name: str, op: Any, value: Any, flags: int, to: int) -> int:
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._add(_Reads(self._alone((op, value), flags), to))
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, body = value
            return self._repeat(least, most, body, flags, to)
        if name == "BRANCH":
            return self._add(_Forks(tuple(self._sequence(branch, flags, to) for branch in value[1])))
        if name == "SUBPATTERN":
            _, more, less, inner = value
            return self._sequence(inner, _compiler._combine_flags(flags, more, less), to)  # noqa: SLF001
        if name == "AT" or (name in ("ASSERT", "ASSERT_NOT") and _short(value[1])):
            return self._add(_Asks(self._asking((op, value), flags), to))
        raise Irregular

    def _repeat(self, least: int, most: int, body: Sequence[Item], flags: int, to: int) -> int:
        end = to
        if most == _parser.MAXREPEAT:
            to = self._add(_Forks(()))
            self._states[to] = _Forks((self._sequence(body, flags, to), end))
        else:
            for _ in range(most - least):
                to = self._add(_Forks((self._sequence(body, flags, to), end)))
        for _ in range(least):
            to = self._sequence(body, flags, to)
        return to

    def _asking(self, item: Item, flags: int) -> int:
        key = f"{item} {flags}"
        if key not in self._asked:
            if len(self._asked) == MAX_ASKED:
                raise Irregular
            self._asked[key] = self._alone(item, flags)
        return list(self._asked).index(key)

    def _add(self, state: State) -> int:
        if len(self._states) >= MAX_STATES:
            raise Irregular
        self._states.append(state)
        return len(self._states) - 1

    def _alone(self, item: Item, flags: int) -> re.Pattern[str]:
        """One item as a pattern of its own."""
        state = _parser.State()
        state.flags = flags
        state.groupwidths = self._groups.groupwidths
        alone: re.Pattern[str] = _compiler.compile(_parser.SubPattern(state, [item]), flags)
        return alone


class _Search:
    """The sets of states that one search has come by."""

    def __init__(self, states: Sequence[State], start: int) -> None:
        self.first = frozenset((start,))
        self._states = states
        self._known: dict[frozenset[int], _Reached] = {}
        self._moves = 0
        self._work = 0

    def reached(self, states: frozenset[int]) -> _Reached:
        known = self._known.get(states)
        if known is None:
            known = self._known[states] = _Reached(states)
            closed, asked = self._close(states, None)
            known.always = None if asked else closed
        return known

    def closed(self, reached: _Reached, here: int) -> _Closed:
        closed = reached.closed[here] = self._close(reached.states, here)[0]
        return closed

    def after(self, closed: _Closed, char: str) -> _Reached:
        """Raises TooLong. What was remembered is let go of now and then, as each character may be a new one."""
        self._moves += 1
        if self._moves % _REMEMBERED == 0:
            self._known = {}
        self._spend(len(closed.waiting))
        states = self.first.union([state.to for state in closed.waiting if state.one.match(char)])
        reached = closed.moves[char] = self.reached(states)
        return reached

    def _close(self, states: frozenset[int], here: int | None) -> tuple[_Closed, bool]:
        """All that can be reached at one place without taking a character; whether anything asks about the place."""
        seen, left = set(states), list(states)
        waiting: list[_Reads] = []
        asked = False
        while left:
            state = self._states[left.pop()]
            if isinstance(state, _Reads):
                waiting.append(state)
                continue
            to = state.to if isinstance(state, _Forks) else (state.to,)
            if isinstance(state, _Asks):
                asked = True
                to = to if here is not None and here >> state.what & 1 else ()
            left += set(to) - seen
            seen.update(to)
        self._spend(len(seen))
        return _Closed(tuple(waiting), _END in seen), asked

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise TooLong


def _short(items: Iterable[Item]) -> bool:
    """Whether all that stands in a look-around is judged at once: nothing in it repeats, or means what stood before."""
    for op, value in items:
        if str(op) == "SUBPATTERN":
            if not _short(value[3]):
                return False
        elif str(op) not in ("LITERAL", "NOT_LITERAL", "ANY", "IN", "AT"):
            return False
    return True
