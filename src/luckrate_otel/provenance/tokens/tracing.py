"""The sources of every argument leaf, for reports and for people."""

from __future__ import annotations

from dataclasses import dataclass

from luckrate_otel.facts import Gap
from luckrate_otel.model import Trajectory
from luckrate_otel.provenance.tokens.atoms import Atom, Kind
from luckrate_otel.provenance.tokens.forms import Form, strength
from luckrate_otel.provenance.tokens.leaves import TooMuch
from luckrate_otel.provenance.tokens.run import ArgLeaf, Match, Run, prepare
from luckrate_otel.provenance.tokens.sources import Origin

MAX_SIGHTINGS = 16  # listed per leaf, oldest first


@dataclass(frozen=True, slots=True)
class Sighting:
    """One place a leaf's value (or, in prose, an identifier in it) was seen before the call.

    origin: `user`, `system`, `result`, `definition`, `earlier user`, `earlier result` or `agent` (an argument the agent
    wrote itself). step, tool: of the result or call, None otherwise. path: JSON path in a result, argument path in a
    call, else `$`. strength: `strict` (the same value, perhaps written differently) or `loose` (made from it, or part).
    """

    origin: str
    step: int | None
    tool: str | None
    path: str
    form: str
    strength: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """One leaf of a call's arguments. kind: what it is made of; sources: oldest first, empty = seen nowhere."""

    step: int
    tool: str
    path: str
    kind: str
    sources: tuple[Sighting, ...] = ()


def trace(trajectory: Trajectory) -> tuple[Leaf, ...]:
    """Every argument leaf of every step, in order. ValueError: the run is beyond the engine's bounds (too_large)."""
    try:
        run = prepare(trajectory, frozenset(Kind))
        written: dict[str, tuple[int, str]] = {}
        found: list[Leaf] = []
        for leaves in run.leaves:
            found += [_leaf(run, leaf, written) for leaf in leaves]
            for leaf in leaves:
                for atom in leaf.atoms:
                    written.setdefault(atom.phrase, (leaf.step, leaf.path))
    except TooMuch:
        raise ValueError(Gap.TOO_LARGE) from None
    return tuple(found)


def _leaf(run: Run, leaf: ArgLeaf, written: dict[str, tuple[int, str]]) -> Leaf:
    sightings: dict[Sighting, None] = {}
    for atom in leaf.atoms:
        if atom.kind is Kind.NONE:
            continue
        matches = run.strict(atom, leaf.step) or run.loose(atom, leaf.step) or run.grouped(atom, leaf.step)
        for match in matches[:MAX_SIGHTINGS]:
            sightings[_sighting(run, match, atom)] = None
        if run.offers(atom.phrase):
            sightings[Sighting("definition", None, None, "$", str(Form.FOLDED), str(strength(Form.FOLDED)))] = None
        if atom.phrase in written:
            step, path = written[atom.phrase]
            tool = run.trajectory.steps[step].tool
            sightings[Sighting("agent", step, tool, path, str(Form.FOLDED), str(strength(Form.FOLDED)))] = None
    tool = run.trajectory.steps[leaf.step].tool
    return Leaf(leaf.step, tool, leaf.path, str(leaf.atoms[0].kind), tuple(sightings)[:MAX_SIGHTINGS])


def _sighting(run: Run, match: Match, atom: Atom) -> Sighting:
    source = run.sources[match.source]
    path = "$"
    if source.origin in (Origin.RESULT, Origin.EARLIER_RESULT):
        path = next((f.path for f in run.places(match.source, run.stated(atom, match.source))), "$")
    form = Form.SAME if match.form is Form.FOLDED and atom.text in source.text else match.form
    return Sighting(str(source.origin), source.step, source.tool, path, str(form), str(strength(match.form)))
