"""One run made traceable: its argument leaves, its texts, and the index between them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from luckrate_otel.model import Trajectory
from luckrate_otel.provenance.tokens import fold, forms, numbers
from luckrate_otel.provenance.tokens.atoms import Atom, Kind, atoms
from luckrate_otel.provenance.tokens.fold import within
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.index import Index
from luckrate_otel.provenance.tokens.layout import Field, Layout
from luckrate_otel.provenance.tokens.leaves import MAX_LEAVES, TooMuch, leaves
from luckrate_otel.provenance.tokens.place import layout
from luckrate_otel.provenance.tokens.sources import Source, offered, sources
from luckrate_otel.record import record

SCAN = 20  # compared characters that one look at one source counts as
# What people write in groups: phone and card numbers, IBANs. Shorter ones side by side would look like a longer one.
_GROUPABLE = re.compile(r"\d{7,24}|[a-z]{2}\d{2}[a-z0-9]{8,30}")

# Of these the phrase is that of the text, and a text that holds one holds the other.
_VERBATIM = (Kind.ID, Kind.EMAIL)


@record(frozen=True, slots=True)
class ArgLeaf:
    """One leaf of one call's arguments, cut into atoms."""

    step: int
    path: str
    name: str
    atoms: tuple[Atom, ...]


@record(frozen=True, slots=True)
class Match:
    """An atom found in a source (its number in Run.sources)."""

    source: int
    form: Form


@dataclass(slots=True)
class Run:
    """leaves: per step. What is found is kept for both rules. TooMuch (any method): the run is out of bounds."""

    trajectory: Trajectory
    sources: tuple[Source, ...]
    leaves: tuple[tuple[ArgLeaf, ...], ...]
    index: Index
    _layouts: dict[int, Layout] = field(default_factory=dict)
    _groups: list[frozenset[str]] = field(default_factory=list)
    _blobs: list[str] = field(default_factory=list)
    _offered: tuple[str, ...] | None = None
    _strict: dict[Atom, tuple[Match, ...]] = field(default_factory=dict)
    _loose: dict[Atom, tuple[Match, ...]] = field(default_factory=dict)

    def strict(self, atom: Atom, step: int) -> list[Match]:
        """Where the same value stood before this step, oldest source first."""
        known = self._strict.get(atom)
        if known is None:
            known = self._strict[atom] = self._find(forms.strict(atom), atom)
        return [match for match in known if self.sources[match.source].since <= step]

    def quoted(self, atom: Atom, step: int) -> bool:
        """Whether the user wrote the value as it is here; then strict() finds it."""
        if atom.kind is Kind.NUMBER:
            return atom.number == atom.text and self.index.quoted(atom.text, step, atom.number)
        return atom.kind in _VERBATIM and atom.text.isascii() and self.index.quoted(atom.text, step)

    def stood(self, atom: Atom, step: int) -> bool:
        """Whether strict() finds anything; several times cheaper where it does."""
        known = self._strict.get(atom)
        if known is not None:
            return any(self.sources[match.source].since <= step for match in known)
        if atom.kind is Kind.NUMBER and atom.number is not None:
            return self.index.stood(numbers.spellings(atom.number), step, atom.number)
        return self.index.stood([phrase for _, phrase in forms.strict(atom)], step)

    def loose(self, atom: Atom, step: int) -> list[Match]:
        """Where something stood before this step that the value may have been made from."""
        known = self._loose.get(atom)
        if known is None:
            known = self._loose[atom] = self._find(forms.loose(atom), None)
        return [match for match in known if self.sources[match.source].since <= step]

    def _find(self, pairs: tuple[tuple[Form, str], ...], atom: Atom | None) -> tuple[Match, ...]:
        found: dict[int, Match] = {}
        if atom is not None and atom.kind is Kind.NUMBER and atom.number is not None:
            found = {number: Match(number, Form.NUMBER) for number in self.index.find_number(atom.number)}
        else:
            for form, phrase in pairs:
                for number in self.index.find(phrase):
                    found.setdefault(number, Match(number, form))
        return tuple(found[number] for number in sorted(found))

    def grouped(self, atom: Atom, step: int) -> list[Match]:
        """Where a long number or account number stood in groups before this step."""
        squashed = atom.phrase.replace(" ", "")
        if atom.kind not in (Kind.ID, Kind.NUMBER) or not _GROUPABLE.fullmatch(squashed):
            return []
        self.index.spend(SCAN * len(self.sources))
        if not self._groups:
            self._groups = [forms.groups(source.text) for source in self.sources]
        held = (n for n, source in enumerate(self.sources) if source.since <= step and squashed in self._groups[n])
        return [Match(n, Form.GROUPED) for n in held]

    def encoded(self, atom: Atom, step: int) -> list[Match]:
        """Where the value stood inside base64 or hex before this step."""
        self.index.spend(SCAN * len(self.sources))
        if not self._blobs:
            self._blobs = [forms.blobs(source.text) for source in self.sources]
        held = [n for n, source in enumerate(self.sources) if source.since <= step and self._blobs[n]]
        self.index.spend(sum(len(self._blobs[n]) for n in held))
        return [Match(n, Form.ENCODED) for n in held if within(atom.phrase, self._blobs[n])]

    def offers(self, phrase: str) -> bool:
        """The phrase is in the tool definitions or names a tool or agent. Read when first asked for; often never."""
        if self._offered is None:
            self._offered = tuple(fold.phrase(text) for text in offered(self.trajectory))
        self.index.spend(SCAN * len(self._offered))
        return any(within(phrase, text) for text in self._offered)

    @staticmethod
    def pairs(atom: Atom) -> tuple[tuple[Form, str], ...]:
        """Every (form, phrase) an atom is looked for by, strict ones first."""
        spelled = numbers.spellings(atom.number) if atom.number is not None else ()
        return (*forms.strict(atom), *((Form.NUMBER, spelling) for spelling in spelled), *forms.loose(atom))

    def stated(self, atom: Atom, source: int) -> str:
        """The phrase by which this source holds the atom."""
        return next((phrase for _, phrase in self.pairs(atom) if self.index.holds(source, phrase)), atom.phrase)

    def layout(self, source: int) -> Layout:
        known = self._layouts.get(source)
        if known is None:
            known = self._layouts[source] = layout(self.sources[source].text)
        return known

    def places(self, source: int, phrase: str) -> list[Field]:
        """The fields of a source that hold a phrase. A look goes over the whole text, which counts as work."""
        read = self.layout(source)
        self.index.spend(read.size + SCAN * len(read.fields))
        return read.holding(phrase)


def prepare(trajectory: Trajectory, kinds: frozenset[Kind]) -> Run:
    """Read one run; only atoms of these kinds can be traced. TooMuch: the run is out of bounds."""
    texts = sources(trajectory)
    found: list[tuple[ArgLeaf, ...]] = []
    seen: dict[object, tuple[Atom, ...]] = {}
    total = 0
    for number, step in enumerate(trajectory.steps):
        own: list[ArgLeaf] = []
        for path, name, value in leaves(step.args) if step.args else ():
            key: object = value  # a text, as nearly always
            if type(value) is not str:
                key = (type(value), value) if isinstance(value, (str, int, float)) else (repr(value),)
            pieces = seen.get(key)
            if pieces is None:
                pieces = seen[key] = atoms(value, inside=Kind.PROSE in kinds)
            own.append(ArgLeaf(number, path, name, pieces))
        total += len(own)
        if total > MAX_LEAVES:
            raise TooMuch
        found.append(tuple(own))
    wanted = (word for pieces in seen.values() for atom in pieces if atom.kind in kinds for word in forms.wanted(atom))
    return Run(trajectory, texts, tuple(found), Index(texts, wanted))
