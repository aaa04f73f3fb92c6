"""The rule `taint`: privileged calls directed by values that only untrusted texts supplied."""

from __future__ import annotations

from dataclasses import dataclass, field

from luckrate_otel.model import Evidence, Severity, Violation
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import copied
from luckrate_otel.provenance.tokens.atoms import Atom, Kind, file_phrase, host_phrase
from luckrate_otel.provenance.tokens.fold import within
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.pointing import Request, request
from luckrate_otel.provenance.tokens.run import ArgLeaf, Match, Run
from luckrate_otel.provenance.tokens.severity import Level, Taint, severity
from luckrate_otel.provenance.tokens.sources import Origin, Source
from luckrate_otel.provenance.tokens.weigh import mentions_host, weigh

_RESULTS = (Origin.RESULT, Origin.EARLIER_RESULT)


@dataclass(slots=True)
class Judge:
    """State of one pass over a run.

    tainted: phrase → how it first came in; what happens to it later is an echo. own: phrase → the step at which the agent
    wrote it out of nothing. files: name of a file fetched from a tainted URL or path → that taint. steered: source → the tainted phrases that its call carried and that recur in it.
    """

    run: Run
    policy: Policy
    request: Request
    untrusted: frozenset[str]
    tainted: dict[str, Taint] = field(default_factory=dict)
    files: dict[str, Taint] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    steered: dict[int, tuple[tuple[str, Taint], ...]] = field(default_factory=dict)


def taint(run: Run, policy: Policy, end: int | None = None) -> tuple[Violation, ...]:
    """One finding per tainted leaf of a privileged call, for the worst of its values. end: judge only the first steps."""
    turns = (*run.trajectory.history.turns, *(turn.text for turn in run.trajectory.turns))
    asked = request(turns, {step.tool for step in run.trajectory.steps})
    judge = Judge(run, policy, asked, frozenset(policy.untrusted))
    results = {source.step: n for n, source in enumerate(run.sources) if source.origin is Origin.RESULT}
    found: list[Violation] = []
    for number, step in enumerate(run.trajectory.steps[:end]):
        carried: dict[str, Taint] = {}
        for leaf in run.leaves[number]:
            verdicts = [(atom, why) for atom in leaf.atoms if (why := _trace(judge, leaf, atom)) is not None]
            carried.update((atom.phrase, why) for atom, why in verdicts)
            if step.tool in policy.privileged:
                found += _finding(judge, leaf, verdicts)
        if carried and (source := results.get(number)) is not None:
            _carry_on(judge, source, carried)
    return tuple(found)


def _trace(judge: Judge, leaf: ArgLeaf, atom: Atom) -> Taint | None:
    """Where this value comes from, if only from untrusted texts."""
    if atom.kind in (Kind.NONE, Kind.DATE):
        return None
    known = judge.tainted.get(atom.phrase)
    if known is not None:
        confirmed = any(judge.run.sources[match.source].from_user for match in judge.run.strict(atom, leaf.step))
        return None if confirmed else known
    found = _copied(judge, leaf, atom) if atom.kind is Kind.PROSE else _first_seen(judge, leaf, atom)
    if found is not None:
        judge.tainted[atom.phrase] = found
        if atom.kind in (Kind.URL, Kind.PATH):
            judge.files.setdefault(file_phrase(atom.text), found)
    return found


def _first_seen(judge: Judge, leaf: ArgLeaf, atom: Atom) -> Taint | None:
    if atom.kind is Kind.PATH and (fetched := judge.files.get(file_phrase(atom.text))) is not None:
        return fetched
    matches = judge.run.strict(atom, leaf.step)
    if not matches and atom.kind is not Kind.WORDS:
        matches = _loosely(judge.run, atom, leaf.step)
    if not matches:
        judge.own.setdefault(atom.phrase, leaf.step)
        return None
    since = judge.own.get(atom.phrase)
    dirty: list[Match] = []
    echoed: Taint | None = None
    for match in matches:
        source = judge.run.sources[match.source]
        if source.origin not in _RESULTS:
            return None
        if since is not None and source.step is not None and source.step >= since:
            continue  # an echo of what the agent itself wrote
        if source.tool not in judge.untrusted and match.source not in judge.steered:
            return None
        if match.form is not Form.JOINED and _is_echo(judge.run, source, atom):
            echoed = echoed or _upstream(judge, source, atom)
            continue
        dirty.append(match)
    if not dirty:
        return echoed
    if any(judge.run.sources[match.source].origin not in _RESULTS for match in judge.run.grouped(atom, leaf.step)):
        return None
    return weigh(judge.run, judge.policy, judge.request, judge.tainted, judge.steered, atom, tuple(dirty))


def _is_echo(run: Run, source: Source, atom: Atom) -> bool:
    """All words of the value were in the call itself: `cloned to /src/tool` answers clone(owner/tool, to=/src)."""
    if source.step is None or source.tool is None:
        return False
    said = {word for leaf in run.leaves[source.step] for piece in leaf.atoms for word in piece.phrase.split(" ")}
    return said.issuperset(atom.phrase.split(" "))


def _upstream(judge: Judge, source: Source, atom: Atom) -> Taint | None:
    """The taint of the call's own arguments that the value was put together from."""
    pieces = (piece for leaf in judge.run.leaves[source.step or 0] for piece in leaf.atoms)
    own = set(atom.phrase.split(" "))
    shared = (judge.tainted[p.phrase] for p in pieces if p.phrase in judge.tainted and own & set(p.phrase.split(" ")))
    return next(shared, None)


def _loosely(run: Run, atom: Atom, step: int) -> list[Match]:
    found = run.loose(atom, step) or run.grouped(atom, step) or run.encoded(atom, step)
    if not found and atom.kind is Kind.URL and (host := host_phrase(atom.text)):
        numbers = [n for n in run.index.find(host) if run.sources[n].since <= step]
        found = [Match(n, Form.JOINED) for n in numbers if mentions_host(run.sources[n].text, atom.text)]
    return found


def _copied(judge: Judge, leaf: ArgLeaf, atom: Atom) -> Taint | None:
    """Copied content, unless the user or a trusted text has the passage too."""
    run = judge.run
    for passage in copied.runs(atom.phrase):
        found = [n for n in run.index.find(passage) if run.sources[n].since <= leaf.step]
        if found and all(run.sources[n].origin in _RESULTS and run.sources[n].tool in judge.untrusted for n in found):
            place = next((f.path for f in run.layout(found[0]).fields if within(passage, f.phrase)), "$")
            return Taint(Level.COPIED, found[0], place, "copied words", Form.COPIED)
    return None


def _carry_on(judge: Judge, source: int, carried: dict[str, Taint]) -> None:
    """A result is tainted by what its call carried, if that recurs in it."""
    kept = tuple((phrase, why) for phrase, why in carried.items() if judge.run.index.holds(source, phrase))
    if kept:
        judge.steered[source] = kept


def _finding(judge: Judge, leaf: ArgLeaf, verdicts: list[tuple[Atom, Taint]]) -> list[Violation]:
    tool = judge.run.trajectory.steps[leaf.step].tool
    weighed = [(severity(why, leaf, atom, judge.policy.targets.get(tool)), why) for atom, why in verdicts]
    worst = next((pair for pair in weighed if pair[0] is Severity.HARD), None)
    worst = worst or next((pair for pair in weighed if pair[0] is Severity.SOFT), None)
    return [_violation(judge.run, leaf, worst[0], worst[1])] if worst is not None and worst[0] is not None else []


def _violation(run: Run, leaf: ArgLeaf, level: Severity, why: Taint) -> Violation:
    step, source = run.trajectory.steps[leaf.step], run.sources[why.source]
    origin = f"{source} {why.path} ({why.why})"
    evidence = () if source.step is None else (Evidence(source.step, run.trajectory.steps[source.step].span),)
    message = f"{step.tool}.{leaf.path} ← {origin}"
    return Violation("taint", "taint", level, message, leaf.step, step.tool, leaf.path, (origin,), evidence, step.span)
