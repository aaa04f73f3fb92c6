"""The rule `ground`: arguments that trace to nothing the agent was given."""

from __future__ import annotations

from luckrate_otel.model import Severity, Violation
from luckrate_otel.plural import plural
from luckrate_otel.provenance.tokens import derived, forms, naming
from luckrate_otel.provenance.tokens.atoms import Atom, Kind, has_digit
from luckrate_otel.provenance.tokens.run import SCAN, ArgLeaf, Run
from luckrate_otel.rules.finding import named

_KINDS = (Kind.NUMBER, Kind.ID, Kind.EMAIL, Kind.URL, Kind.PATH)  # looked through faster than an enum is hashed
JUDGED = frozenset(_KINDS)
# Smaller whole numbers are counts, page sizes and quantities, which a model sets by itself.
SMALL = 100
MIN_ID = 4  # characters; shorter ones (A4, Q3, mp3) are words of the trade


def ground(run: Run, end: int | None = None) -> tuple[Violation, ...]:
    """One warning per leaf with an invented value, on the first call that carries it. end: judge so many steps."""
    written: set[str] = set()
    found: list[Violation] = []
    for number, step in enumerate(run.trajectory.steps[:end]):
        fresh: set[str] = set()
        for leaf in run.leaves[number]:
            invented = [atom for atom in leaf.atoms if atom.kind in _KINDS and _invented(run, leaf, atom, written)]
            if invented:
                found.append(_violation(run, leaf, invented[0]))
            fresh.update([atom.phrase for atom in leaf.atoms])
        if step.ok is not False:
            written |= fresh
    return tuple(found)


def _invented(run: Run, leaf: ArgLeaf, atom: Atom, written: set[str]) -> bool:
    step = leaf.step
    if atom.phrase in written or run.quoted(atom, step) or not _judged(leaf, atom):
        return False
    if run.stood(atom, step) or run.loose(atom, step) or run.grouped(atom, step) or derived.joined(run, atom, step):
        return False
    if run.offers(atom.phrase):
        return False
    if atom.kind is Kind.NUMBER and not naming.is_id(leaf.name) and derived.explains(run, atom, step):
        return False
    if atom.kind in (Kind.URL, Kind.PATH) and not any(_unknown(run, part, step, written) for part in forms.parts(atom)):
        return False
    return not run.encoded(atom, step)


def _judged(leaf: ArgLeaf, atom: Atom) -> bool:
    """Whether finding this atom nowhere would mean anything."""
    if atom.inside:
        return False
    if atom.kind is Kind.NUMBER:
        if naming.is_id(leaf.name) or (isinstance(atom.text, str) and atom.text[:1] == "#"):
            return True
        return "." in (atom.number or "") or float(atom.number or 0) >= SMALL
    if atom.kind is Kind.ID:
        return naming.is_id(leaf.name) or (has_digit(atom.phrase) and len(atom.phrase.replace(" ", "")) >= MIN_ID)
    return True


def _unknown(run: Run, part: str, step: int, written: set[str]) -> bool:
    if part in written:
        return False
    return not any(run.sources[number].since <= step for number in run.index.find(part)) and not run.offers(part)


def _violation(run: Run, leaf: ArgLeaf, atom: Atom) -> Violation:
    step = run.trajectory.steps[leaf.step]
    run.index.spend(SCAN * len(run.sources))
    seen = [source for source in run.sources if source.since <= leaf.step]
    results = sum(source.step is not None for source in seen)
    others = dict.fromkeys(str(source) for source in seen if source.step is None)
    if run.trajectory.definitions:
        others["definitions"] = None
    searched = ", ".join([*others, plural(results, "result")])
    message = f"{named(step.tool)}.{leaf.path} ← nothing (this {atom.kind} is in none of: {searched})"
    return Violation("ground", "ground", Severity.WARN, message, leaf.step, step.tool, leaf.path, span=step.span)
