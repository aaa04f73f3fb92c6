"""Regular expressions that can take for ever: told when a spec is loaded, as nothing can stop one that is searched.

The values that patterns meet come from models and web pages. `(a+)+$` takes twice as long for every further letter of
"aaaaaaaa!", hours for forty of them, and with it everything that the processor holds. What makes it so is a loop whose
rounds can be cut in more than one way. That is told by what may come first: inside a loop, where a repeat could go on
or end, and where one of several branches is taken, the next character has to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations

# Private, and the same since Python 3.11. Its own parser is the only one that reads all that `re` reads.
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final, NamedTuple

# Rounds from which on repeats count as a loop: what is cut in four is tried in n to the power of four ways at most.
MANY: Final = 5

# What sets of characters are compared on: all of Latin, and some of elsewhere.
_SAMPLE: Final = frozenset(map(chr, (*range(0x180), 0x3B1, 0x416, 0x4E00, 0x2003, 0x1F600)))

# `(?i:…)`: then all of it is read so.
_FOLDS_IN_PART: Final = re.compile(r"\(\?[a-z]*i[a-z]*[-:]")

_SINGLE: Final = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN"})
_REPEATS: Final = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})

Item = tuple[Any, Any]


class _First(NamedTuple):
    """The characters that can come first; whether there may be none."""

    chars: frozenset[str]
    empty: bool


def runs_away(pattern: re.Pattern[str]) -> bool:
    """Whether a text exists that it takes exponential time for. Where that is hard to tell, the answer is yes."""
    parsed = list(_parser.parse(pattern.pattern, pattern.flags))
    folds = pattern.flags | (re.IGNORECASE if _FOLDS_IN_PART.search(pattern.pattern) else 0)
    return _Reading(folds).ambiguous(parsed, frozenset(), rounds=1, fails=False)


def degree(pattern: re.Pattern[str]) -> int:
    """Which power of a text's length a search takes at most, if it does not run away: 2 for `a.*b`, 1 for `ab`."""
    parsed = _parser.parse(pattern.pattern, pattern.flags)
    wide = frozenset(i for i, width in enumerate(parsed.state.groupwidths) if width and width[1] >= MANY)
    items = _flat(parsed)
    at_start = ["AT_BEGINNING_STRING"] if pattern.flags & re.MULTILINE else ["AT_BEGINNING_STRING", "AT_BEGINNING"]
    anchored = bool(items) and str(items[0][0]) == "AT" and str(items[0][1]) in at_start
    return max(1, _ways(items, wide, fails=False) + (0 if anchored else 1))


def _ways(items: Sequence[Item], wide: frozenset[int], *, fails: bool) -> int:
    """The same of the attempt at one place: how many loops are tried again, as what follows them may not match.

    wide: groups that can hold much, which every reference to them reads again.
    """
    ways = peak = 0
    for index, (op, value) in enumerate(items):
        may_fail = fails or index + 1 < len(items)
        if str(op) in _REPEATS:
            least, most, body = value
            inner = _ways(list(body), wide, fails=may_fail or most > 1)
            ways += inner * most if most < MANY else inner  # few rounds can be cut in several ways: each is a loop more
            ways += 1 if may_fail and most - least >= MANY else 0
        elif str(op) == "BRANCH":
            ways += max(_ways(list(branch), wide, fails=may_fail) for branch in value[1])
        elif str(op) == "GROUPREF":
            ways += 1 if value in wide else 0
        elif str(op) in ("SUBPATTERN", "GROUPREF_EXISTS"):
            ways += max((_ways(part, wide, fails=may_fail) for part in _parts(str(op), value)), default=0)
        else:  # what was found within these is not gone into again
            peak = max([peak, *(ways + _ways(part, wide, fails=True) for part in _parts(str(op), value))])
    return max(ways, peak)


class _Reading:
    def __init__(self, flags: int) -> None:
        self._flags = flags

    def ambiguous(self, items: Sequence[Item], after: frozenset[str], *, rounds: int, fails: bool) -> bool:
        """Whether a loop in these items can be cut in several ways.

        after: what can come first when they have ended, in the loop around them. loops: they are in one. fails: what
        follows them may not match, so that all the ways are tried.
        """
        for index, (op, value) in enumerate(items):
            rest = items[index + 1 :]
            first = self.first(rest)
            follows = first.chars | (after if first.empty else frozenset())
            if self._item(str(op), value, follows, rounds=rounds, fails=fails or bool(rest)):
                return True
        return False

    def _item(self, op: str, value: Any, follows: frozenset[str], *, rounds: int, fails: bool) -> bool:
        if op in _REPEATS:
            least, most, body = value
            return self._repeat(least, most, list(body), follows, rounds=rounds, fails=fails)
        if op == "BRANCH":
            branches = [_flat(branch) for branch in value[1]]
            return (rounds >= MANY and any(self._unclear(*two, follows) for two in combinations(branches, 2))) or any(
                self.ambiguous(branch, follows, rounds=rounds, fails=fails) for branch in branches
            )
        return any(self.ambiguous(part, follows, rounds=rounds, fails=fails) for part in _parts(op, value))

    def _repeat(
        self, least: int, most: int, body: list[Item], follows: frozenset[str], *, rounds: int, fails: bool
    ) -> bool:
        first = self.first(body)
        if rounds >= MANY and most > least and (first.empty or first.chars & follows):
            return True  # where it may be nothing, it can be that or not be there at all
        # Nothing is tried again where all is well as soon as one round is.
        again = fails or least > 1 or not all(self.first([item]).empty for item in body[1:])
        around = (first.chars if most > 1 else frozenset()) | (follows if rounds > 1 else frozenset())
        inside = rounds * min(max(most, 1), MANY) if again else rounds
        return self.ambiguous(body, around, rounds=inside, fails=fails)

    def _unclear(self, one: Sequence[Item], other: Sequence[Item], follows: frozenset[str]) -> bool:
        """Whether some text may be read by either branch: told character by character while both are of such."""
        if not one or not other:
            left = self.first([*one, *other])
            return left.empty or bool(left.chars & follows)
        (op, value), (other_op, other_value) = one[0], other[0]
        if str(op) in _SINGLE and str(other_op) in _SINGLE:
            meet = self._set(str(op), value) & self._set(str(other_op), other_value)
            return bool(meet) and self._unclear(one[1:], other[1:], follows)
        return bool(self._starts(one, follows) & self._starts(other, follows))

    def _starts(self, items: Sequence[Item], follows: frozenset[str]) -> frozenset[str]:
        first = self.first(items)
        return first.chars | (follows if first.empty else frozenset())

    # ---- what comes first ----------------------------------------------------------------------

    def first(self, items: Iterable[Item]) -> _First:
        chars: frozenset[str] = frozenset()
        for op, value in items:
            one = self._first(str(op), value)
            chars |= one.chars
            if not one.empty:
                return _First(chars, empty=False)
        return _First(chars, empty=True)

    def _first(self, op: str, value: Any) -> _First:
        if op in _REPEATS:
            inner = self.first(value[2])
            return _First(inner.chars, inner.empty or value[0] == 0)
        if op == "BRANCH":
            inners = [self.first(branch) for branch in value[1]]
            return _First(frozenset().union(*(i.chars for i in inners)), any(i.empty for i in inners))
        if op in ("ASSERT", "ASSERT_NOT", "AT"):
            return _First(frozenset(), empty=True)
        if op in ("SUBPATTERN", "ATOMIC_GROUP"):
            return self.first(_parts(op, value)[0])
        if op in _SINGLE:
            return _First(self._set(op, value), empty=False)
        return _First(_SAMPLE, empty=True)  # a reference to a group, which may hold anything

    def _set(self, op: str, value: Any) -> frozenset[str]:
        if op == "ANY":
            return _SAMPLE
        members = value if op == "IN" else [("LITERAL", value)]
        negated = op == "NOT_LITERAL" or any(str(kind) == "NEGATE" for kind, _ in members)
        found = frozenset(c for c in _SAMPLE if any(self._has(str(kind), what, c) for kind, what in members))
        literals = frozenset(chr(what) for kind, what in members if str(kind) == "LITERAL")
        return _SAMPLE - found if negated else found | literals

    def _has(self, kind: str, what: Any, char: str) -> bool:
        forms = {char, char.swapcase()} if self._flags & re.IGNORECASE else {char}
        if kind == "LITERAL":
            return chr(what) in forms
        if kind == "RANGE":
            return any(len(form) == 1 and what[0] <= ord(form) <= what[1] for form in forms)
        return kind == "CATEGORY" and re.match(_CATEGORIES[str(what)], char, self._flags & re.ASCII) is not None


def _flat(items: Iterable[Item]) -> list[Item]:
    """Without the groups around what stands in it anyway."""
    return [inner for op, value in items for inner in (_flat(value[3]) if str(op) == "SUBPATTERN" else [(op, value)])]


def _parts(op: str, value: Any) -> list[list[Item]]:
    """The items inside a group or an assertion."""
    if op == "SUBPATTERN":
        return [list(value[3])]
    if op == "ATOMIC_GROUP":
        return [list(value)]
    if op in ("ASSERT", "ASSERT_NOT"):
        return [list(value[1])]
    if op == "GROUPREF_EXISTS":
        return [list(part) for part in value[1:] if part]
    return []


_CATEGORIES: Final = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
