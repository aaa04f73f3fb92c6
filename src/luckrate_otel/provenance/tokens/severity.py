"""How bad a tainted value is, by where it came from and what the argument does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from luckrate_otel.model import Severity
from luckrate_otel.provenance.tokens import naming
from luckrate_otel.provenance.tokens.atoms import Atom, Kind
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.run import ArgLeaf

SHORT = 4  # characters below which a value stands in any longer text by chance
_ADDRESSES = (Kind.EMAIL, Kind.URL)


class Level(StrEnum):
    """Where a tainted value stood, worst first."""

    FREE = "free text"
    STEERED = "steered answer"
    POINTED = "free text the user pointed to"
    SITE = "same site"
    WHOLE = "field of its own"
    COPIED = "copied prose"


@dataclass(frozen=True, slots=True)
class Taint:
    """How one value came in: from which source and place. why: readable, for the finding."""

    level: Level
    source: int
    path: str
    why: str
    form: Form


def severity(why: Taint, leaf: ArgLeaf, atom: Atom, targets: tuple[str, ...] | None) -> Severity | None:
    """Severity of a tainted value in this argument; None: not worth a finding.

    targets: the argument paths that the spec names for this tool, None if it names none for it.
    """
    if why.level is Level.COPIED:
        return Severity.HARD if _directs(leaf, targets) else Severity.SOFT  # a whole command, an address
    if why.level is Level.SITE or not _matters(leaf, atom):
        return None
    if why.level is Level.WHOLE:
        return Severity.SOFT if atom.kind in _ADDRESSES and _directs(leaf, targets) else None
    if why.level is Level.POINTED:
        return Severity.SOFT if _directs(leaf, targets) else None
    if _directs(leaf, targets):
        return Severity.HARD
    if targets is None and atom.kind in _ADDRESSES and not atom.inside and naming.is_content(leaf.name):
        return Severity.HARD  # the message is nothing but the address
    return Severity.SOFT


def _directs(leaf: ArgLeaf, targets: tuple[str, ...] | None) -> bool:
    """The argument decides where the action goes or what it runs."""
    if targets is not None:
        return listed(leaf.path, targets)
    return naming.is_target(leaf.name) and not naming.is_content(leaf.name)


def _matters(leaf: ArgLeaf, atom: Atom) -> bool:
    if naming.is_proof(leaf.name):
        return False
    if atom.kind is Kind.NUMBER:
        return naming.is_id(leaf.name) or (len(atom.phrase) > SHORT and naming.is_target(leaf.name))
    if atom.kind is Kind.WORDS:
        return len(atom.phrase) >= SHORT and naming.is_target(leaf.name) and not naming.is_id(leaf.name)
    return len(atom.phrase) >= SHORT


def listed(path: str, names: tuple[str, ...]) -> bool:
    """The path is one of these, or inside one; list positions do not count. A bare name fits at any depth."""
    own = plain(path)
    return any(own == name or own.startswith(f"{name}.") or own.endswith(f".{name}") for name in map(plain, names))


def plain(path: str) -> str:
    """`$[3].to[0].email` → `to.email`."""
    outside = "".join(part.partition("]")[2] if n else part for n, part in enumerate(path.split("[")))
    return outside.removeprefix("$").strip(".")
