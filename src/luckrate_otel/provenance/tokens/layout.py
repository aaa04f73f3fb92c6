"""The fields of one result, and the records that they stand in together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from luckrate_otel.provenance.tokens.fold import phrase, within

MAX_FIELDS = 50_000  # of one result; what follows is one piece of free text
# A key that is no plain name may be data (a product, a person): paths show `*` in its place.
NAME = re.compile(r"[A-Za-z_]\w{0,59}")


@dataclass(slots=True)
class Field:
    """One value of a result. free: written text rather than a value with a place of its own. record: its group."""

    path: str
    text: str
    record: int
    free: bool = False
    _phrase: str | None = None

    @property
    def phrase(self) -> str:
        """The folded words; folded when first asked for, as most fields never are."""
        if self._phrase is None:
            self._phrase = phrase(self.text)
        return self._phrase


@dataclass(slots=True)
class Layout:
    """The fields of one result.

    parents: record → the record around it; titles: record → its own key. counts: lengths of its lists. size: characters
    of all fields.
    """

    fields: list[Field] = field(default_factory=list)
    parents: list[int] = field(default_factory=lambda: [0])
    titles: list[str] = field(default_factory=lambda: [""])
    counts: set[int] = field(default_factory=set)
    size: int = 0

    def open(self, parent: int, title: str = "") -> int:
        self.parents.append(parent)
        self.titles.append(title)
        return len(self.parents) - 1

    def add(self, path: str, text: str, record: int, *, free: bool = False) -> None:
        if text and not text.isspace():
            self.fields.append(Field(path, text, record, free))
            self.size += len(text)

    def holding(self, wanted: str) -> list[Field]:
        """The fields that hold a phrase as a run of whole words."""
        key = max(wanted.split(" "), key=len)
        return [f for f in self.fields if (key in f.text.lower() or not f.text.isascii()) and within(wanted, f.phrase)]

    def record(self, number: int) -> str:
        """The words of a record and of the one around it, as one phrase."""
        wanted = {number, self.parents[number]} - {0} or {0}
        own = [phrase(self.titles[n]) for n in sorted(wanted)]
        return " | ".join([*own, *(f.phrase for f in self.fields if f.record in wanted)])
