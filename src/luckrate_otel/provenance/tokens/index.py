"""Which source holds which words: one pass over the texts, asked only for the words that arguments use.

The pass goes only as far as it must: most values stand in the user's words or an early result, and cutting texts into
words is most of the cost of judging a run.
"""

from __future__ import annotations

from collections.abc import Iterable

from luckrate_otel.provenance.tokens import numbers
from luckrate_otel.provenance.tokens.fold import decoded, phrase, words
from luckrate_otel.provenance.tokens.leaves import TooMuch
from luckrate_otel.provenance.tokens.sources import Origin, Source

# Characters (or fields, or sources) compared while verifying candidates. A run of 500 steps with 8 kB results needs
# about 10 million, in well under a second; beyond this bound the run was made to be expensive.
MAX_COMPARED = 300_000_000
MAX_TASK = 4_000  # characters of the user's texts, in all, that are looked through for each value before any index


class Index:
    """Word → numbers of the sources that hold it, for wanted words only. Not thread-safe; one per run."""

    def __init__(self, sources: tuple[Source, ...], wanted: Iterable[str]) -> None:
        self.sources = sources
        self._asked = wanted  # read when the first source is: often none has to be
        self._wanted: set[str] = set()
        self._where: dict[str, list[int]] = {}
        self._phrases: list[str | None] = [None] * len(sources)
        self._numbers: dict[int, frozenset[str]] = {}
        self._found: dict[str, tuple[int, ...]] = {}
        self._compared = 0
        self._indexed = 0  # sources whose words are known, oldest first
        self._task = _task(sources)

    def _index_next(self) -> None:
        if self._indexed == 0:
            self._wanted.update(self._asked)
        text = self.sources[self._indexed].text
        hits = self._wanted.intersection(words(text))
        if (plain := _plain(text)) is not None:
            hits |= self._wanted.intersection(words(plain))
        for word in hits:
            self._where.setdefault(word, []).append(self._indexed)
        self._indexed += 1

    def find(self, wanted: str) -> tuple[int, ...]:
        """The sources that hold the phrase as a run of whole words, oldest first; one of its words was wanted."""
        known = self._found.get(wanted)
        if known is None:
            while self._indexed < len(self.sources):
                self._index_next()
            known = self._found[wanted] = self._search(wanted)
        return known

    def quoted(self, text: str, step: int, number: str | None = None) -> bool:
        """Whether the user wrote this ASCII text out, as words of its own. True only where stood() is.

        Most values that a run is given stand in its task, and a look there saves cutting the texts into words: 4 µs of
        the 5 that the rule `ground` takes per span.
        """
        for since, said in self._task:
            at = said.find(text) if since <= step else -1
            if at < 0:
                continue
            before, after = said[max(at - 1, 0) : at], said[at + len(text) : at + len(text) + 1]
            if not before.isalnum() and not after.isalnum():  # between other words
                blank = before == after == " " and text.isdigit()
                return number is None or blank or numbers.states(said, number)
        return False

    def stood(self, phrases: Iterable[str], step: int, number: str | None = None) -> bool:
        """Whether one of the phrases is in a source that this step could use. number: which also states this number.

        As find() and find_number() tell, but no more sources are read than it takes.
        """
        start = 0
        while True:
            for wanted in phrases:
                for at in self._search(wanted, start):
                    if self.sources[at].since <= step and (number is None or self._states(at, number)):
                        return True
            if self._indexed == len(self.sources):
                return False
            start = self._indexed
            self._index_next()

    def _search(self, wanted: str, start: int = 0) -> tuple[int, ...]:
        """The sources that hold the phrase, among those indexed so far; none before start."""
        if " " not in wanted:
            return tuple(number for number in self._where.get(wanted, ()) if number >= start)
        held: list[list[int]] = []
        for part in wanted.split(" "):
            if part in self._wanted:
                found = self._where.get(part)
                if found is None:
                    return ()
                held.append(found)
        if not held:
            return ()
        held.sort(key=len)
        both = [number for number in held[0] if number >= start]
        for other in held[1:3]:  # three words narrow the choice enough
            among = set(other)
            both = [number for number in both if number in among]
        needle = f" {wanted} "
        self.spend(sum(len(self.sources[number].text) for number in both) + len(held[0]))
        return tuple(number for number in both if needle in self._read(number))

    def _read(self, number: int) -> str:
        """A source as one phrase, blanks at both ends; its decoded form behind it if that differs."""
        known = self._phrases[number]
        if known is None:
            text = self.sources[number].text
            plain = _plain(text)
            known = f" {phrase(text)} " if plain is None else f" {phrase(text)} | {phrase(plain)} "
            self._phrases[number] = known
        return known

    def spend(self, compared: int) -> None:
        """Count work against the bound of one run. TooMuch: the bound is reached."""
        self._compared += compared
        if self._compared > MAX_COMPARED:
            raise TooMuch

    def find_number(self, number: str) -> tuple[int, ...]:
        """The sources that state this canonical number, in any spelling."""
        candidates = sorted({source for spelling in numbers.spellings(number) for source in self.find(spelling)})
        return tuple(source for source in candidates if self._states(source, number))

    def _states(self, source: int, number: str) -> bool:
        text = self.sources[source].text
        self.spend(len(text))
        return numbers.states(text, number)

    def numbers(self, source: int) -> frozenset[str]:
        """All numbers a source states; computed once."""
        known = self._numbers.get(source)
        if known is None:
            known = self._numbers[source] = numbers.numbers_in(self.sources[source].text)
        return known

    def holds(self, source: int, wanted: str) -> bool:
        return f" {wanted} " in self._read(source)


def _task(sources: Iterable[Source]) -> list[tuple[int, str]]:
    """The user's first texts, as long as they are short and ASCII, each with the first step that could use it."""
    found: list[tuple[int, str]] = []
    room = MAX_TASK
    for source in sources:
        if source.origin is Origin.RESULT:
            break  # these come last
        if source.from_user and source.text.isascii():
            room -= len(source.text)
            if room < 0:
                break
            found.append((source.since, source.text))
    return found


def _plain(text: str) -> str | None:
    """The text with escapes undone, None if that changes nothing."""
    if "\\" not in text and "%" not in text and "&" not in text:
        return None
    plain = decoded(text)
    if "\\" in plain:
        plain = decoded(plain)  # JSON printed into JSON, as tool protocols do
    return plain if plain != text else None
