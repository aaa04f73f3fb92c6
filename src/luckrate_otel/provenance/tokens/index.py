"""Which source holds which words: one pass over the texts, asked only for the words that arguments use."""

from __future__ import annotations

from luckrate_otel.provenance.tokens import numbers
from luckrate_otel.provenance.tokens.fold import decoded, words
from luckrate_otel.provenance.tokens.leaves import TooMuch
from luckrate_otel.provenance.tokens.sources import Source

# Characters compared while verifying candidates. A run of 500 steps with 8 kB results needs about 10 million; beyond
# this bound the run was made to be expensive.
MAX_COMPARED = 400_000_000


class Index:
    """Word → numbers of the sources that hold it, for wanted words only. Not thread-safe; one per run."""

    def __init__(self, sources: tuple[Source, ...], wanted: set[str]) -> None:
        self.sources = sources
        self._wanted = wanted
        self._where: dict[str, list[int]] = {}
        self._phrases: list[str] = []
        self._numbers: dict[int, frozenset[str]] = {}
        self._found: dict[str, tuple[int, ...]] = {}
        self._compared = 0
        for number, source in enumerate(sources):
            self._phrases.append(self._read(number, source.text, wanted))

    def _read(self, number: int, text: str, wanted: set[str]) -> str:
        found = words(text)
        hits = wanted.intersection(found)
        readable = f" {' '.join(found)} " if hits else ""
        if ("\\" in text or "%" in text or "&" in text) and (plain := decoded(text)) != text:
            found = words(plain)
            if more := wanted.intersection(found):
                hits |= more
                readable += f"| {' '.join(found)} "
        for word in hits:
            self._where.setdefault(word, []).append(number)
        return readable

    def find(self, phrase: str) -> tuple[int, ...]:
        """The sources that hold the phrase as a run of whole words, oldest first; one of its words was wanted."""
        known = self._found.get(phrase)
        if known is None:
            known = self._found[phrase] = self._search(phrase)
        return known

    def _search(self, phrase: str) -> tuple[int, ...]:
        parts = phrase.split(" ")
        held = sorted((self._where.get(part, []) for part in parts if part in self._wanted), key=len)
        if len(parts) == 1 or not held or not held[0]:
            return tuple(held[0]) if held else ()
        both = held[0]
        for other in held[1:3]:  # three words narrow the choice enough
            among = set(other)
            both = [number for number in both if number in among]
        needle = f" {phrase} "
        self._spend(sum(len(self._phrases[number]) for number in both) + len(held[0]))
        return tuple(number for number in both if needle in self._phrases[number])

    def _spend(self, compared: int) -> None:
        self._compared += compared
        if self._compared > MAX_COMPARED:
            raise TooMuch

    def find_number(self, number: str) -> tuple[int, ...]:
        """The sources that state this canonical number, in any spelling."""
        candidates = sorted({source for spelling in numbers.spellings(number) for source in self.find(spelling)})
        self._spend(sum(len(self.sources[source].text) for source in candidates))
        return tuple(source for source in candidates if numbers.states(self.sources[source].text, number))

    def numbers(self, source: int) -> frozenset[str]:
        """All numbers a source states; computed once."""
        known = self._numbers.get(source)
        if known is None:
            known = self._numbers[source] = numbers.numbers_in(self.sources[source].text)
        return known

    def holds(self, source: int, phrase: str) -> bool:
        return f" {phrase} " in self._phrases[source]
