"""The rule `taint`: privileged calls directed by values that only untrusted texts supplied."""

from __future__ import annotations

from luckrate_otel.model import Evidence, Severity, Violation
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import copied
from luckrate_otel.provenance.tokens.atoms import Atom, Kind, file_phrase, host_phrase
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.inquiry import Inquiry, Lead
from luckrate_otel.provenance.tokens.pointing import request
from luckrate_otel.provenance.tokens.run import SCAN, ArgLeaf, Match, Run
from luckrate_otel.provenance.tokens.severity import Level, Taint, severity
from luckrate_otel.provenance.tokens.sources import Origin, Source
from luckrate_otel.provenance.tokens.weigh import mentions_host, weigh
from luckrate_otel.rules.finding import named

_WORST = Taint(Level.FREE, 0, "", "", Form.SAME)
_RESULTS = (Origin.RESULT, Origin.EARLIER_RESULT)


def taint(run: Run, policy: Policy, end: int | None = None) -> tuple[Violation, ...]:
    """One finding per tainted leaf of a privileged call, for the worst of its values. end: judge so many steps."""
    turns = (*run.trajectory.history.turns, *(turn.text for turn in run.trajectory.turns))
    inquiry = Inquiry(run, policy, request(turns, {step.tool for step in run.trajectory.steps}), weigh)
    results = {source.step: n for n, source in enumerate(run.sources) if source.origin is Origin.RESULT}
    found: list[Violation] = []
    for number, step in enumerate(run.trajectory.steps[:end]):
        carried: dict[str, None] = {}
        for leaf in run.leaves[number]:
            suspects = [(atom, phrase) for atom in leaf.atoms if (phrase := _suspect(inquiry, leaf, atom)) is not None]
            carried.update((phrase, None) for _, phrase in suspects)
            if suspects and step.tool in policy.privileged:
                found += _finding(inquiry, leaf, suspects)
        if carried and (source := results.get(number)) is not None:
            _carry_on(inquiry, source, tuple(carried))
    return tuple(found)


# ---- suspects -----------------------------------------------------------------------------------


def _suspect(inquiry: Inquiry, leaf: ArgLeaf, atom: Atom) -> str | None:
    """The phrase under which this value is a suspect: it came only from untrusted texts. None if it is not."""
    if atom.kind in (Kind.NONE, Kind.DATE):
        return None
    if atom.phrase in inquiry.suspects:
        confirmed = any(inquiry.run.sources[match.source].from_user for match in inquiry.run.strict(atom, leaf.step))
        return None if confirmed else atom.phrase
    if atom.kind is Kind.PROSE:
        return _copied(inquiry, leaf, atom)
    return _first_seen(inquiry, leaf, atom)


def _first_seen(inquiry: Inquiry, leaf: ArgLeaf, atom: Atom) -> str | None:
    run, policy = inquiry.run, inquiry.policy
    matches = run.strict(atom, leaf.step)
    if any(run.sources[match.source].origin not in _RESULTS for match in matches):
        return None
    if atom.kind is Kind.PATH and (fetched := inquiry.files.get(file_phrase(atom.text))) is not None:
        return fetched
    clears = bool(matches)  # loose forms accuse, they do not clear
    if not matches and atom.kind is not Kind.WORDS:
        matches = _loosely(run, atom, leaf.step)
    if not matches:
        inquiry.own.setdefault(atom.phrase, leaf.step)
        return None
    since = inquiry.own.get(atom.phrase, leaf.step)
    dirty: list[Match] = []
    echo: Source | None = None
    for match in matches:
        source = run.sources[match.source]
        if source.step is not None and source.step >= since:
            continue  # an echo of what the agent itself wrote
        trusted = source.origin not in _RESULTS or (
            source.tool not in policy.untrusted and match.source not in inquiry.steered
        )
        if trusted and (clears or match.form is Form.JOINED):
            return None
        if not trusted and match.form is not Form.JOINED and _is_echo(run, source, atom):
            echo = echo or source
        elif not trusted:
            dirty.append(match)
    if not dirty:
        return _upstream(inquiry, echo, atom) if echo is not None else None
    if run.offers(atom.phrase):
        return None
    if any(run.sources[match.source].origin not in _RESULTS for match in run.grouped(atom, leaf.step)):
        return None  # the user wrote it in groups; looked for last, as it is the dearest look
    inquiry.suspects[atom.phrase] = Lead(atom, tuple(dirty))
    if atom.kind in (Kind.URL, Kind.PATH):
        inquiry.files.setdefault(file_phrase(atom.text), atom.phrase)
    return atom.phrase


def _loosely(run: Run, atom: Atom, step: int) -> list[Match]:
    found = run.loose(atom, step) or run.grouped(atom, step) or run.encoded(atom, step)
    if not found and atom.kind is Kind.URL and (host := host_phrase(atom.text)):
        numbers = [n for n in run.index.find(host) if run.sources[n].since <= step]
        found = [Match(n, Form.JOINED) for n in numbers if mentions_host(run.sources[n].text, atom.text)]
    return found


def _is_echo(run: Run, source: Source, atom: Atom) -> bool:
    """All words of the value were in the call itself: `cloned to /src/tool` answers clone(owner/tool, to=/src)."""
    if source.step is None:
        return False
    run.index.spend(SCAN * len(run.leaves[source.step]))
    said = {word for leaf in run.leaves[source.step] for piece in leaf.atoms for word in piece.phrase.split(" ")}
    return said.issuperset(atom.phrase.split(" "))


def _upstream(inquiry: Inquiry, source: Source, atom: Atom) -> str | None:
    """The suspect among the call's own arguments that an echoed value was put together from."""
    own = set(atom.phrase.split(" "))
    for leaf in inquiry.run.leaves[source.step or 0]:
        for piece in leaf.atoms:
            if piece.phrase in inquiry.suspects and own.intersection(piece.phrase.split(" ")):
                return piece.phrase
    return None


def _copied(inquiry: Inquiry, leaf: ArgLeaf, atom: Atom) -> str | None:
    """Copied content, unless the user or a trusted text has the passage too."""
    run = inquiry.run
    for passage in copied.runs(atom.phrase):
        found = [n for n in run.index.find(passage) if run.sources[n].since <= leaf.step]
        if found and all(
            run.sources[n].origin in _RESULTS and run.sources[n].tool in inquiry.policy.untrusted for n in found
        ):
            place = next((f.path for f in run.places(found[0], passage)), "$")
            inquiry.suspects[atom.phrase] = Taint(Level.COPIED, found[0], place, "copied words", Form.COPIED)
            return atom.phrase
    return None


def _carry_on(inquiry: Inquiry, source: int, carried: tuple[str, ...]) -> None:
    """A result is tainted by what its call carried, if that recurs in it."""
    kept = tuple(phrase for phrase in carried if inquiry.run.index.holds(source, phrase))
    if kept and inquiry.run.sources[source].tool not in inquiry.policy.untrusted:
        kept = tuple(phrase for phrase in kept if inquiry.taint_of(phrase) is not None)
    if kept:
        inquiry.steered[source] = kept


# ---- findings -----------------------------------------------------------------------------------


def _finding(inquiry: Inquiry, leaf: ArgLeaf, suspects: list[tuple[Atom, str]]) -> list[Violation]:
    targets = inquiry.policy.targets.get(inquiry.run.trajectory.steps[leaf.step].tool)
    worst: tuple[Severity, Taint] | None = None
    for atom, phrase in suspects:
        if severity(_WORST, leaf, atom, targets) is None and atom.kind is not Kind.PROSE:
            continue  # wherever it came from, it directs nothing
        why = inquiry.taint_of(phrase)
        level = severity(why, leaf, atom, targets) if why is not None else None
        if why is not None and level is not None and (worst is None or worst[0] is Severity.SOFT):
            worst = level, why
    return [_violation(inquiry.run, leaf, *worst)] if worst is not None else []


def _violation(run: Run, leaf: ArgLeaf, level: Severity, why: Taint) -> Violation:
    step, source = run.trajectory.steps[leaf.step], run.sources[why.source]
    origin = f"{source} {why.path} ({why.why})"
    evidence = () if source.step is None else (Evidence(source.step, run.trajectory.steps[source.step].span),)
    message = f"{named(step.tool)}.{leaf.path} ← {origin}"
    return Violation("taint", "taint", level, message, leaf.step, step.tool, leaf.path, (origin,), evidence, step.span)
