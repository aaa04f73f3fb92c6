"""The rule `taint`: privileged calls directed by values that only untrusted texts supplied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from luckrate_otel.model import Evidence, Severity, Violation
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens import copied, naming
from luckrate_otel.provenance.tokens.atoms import Atom, Kind, host_phrase
from luckrate_otel.provenance.tokens.fold import within
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.place import Field
from luckrate_otel.provenance.tokens.pointing import Request, request
from luckrate_otel.provenance.tokens.run import ArgLeaf, Match, Run
from luckrate_otel.provenance.tokens.sources import Origin

_RESULTS = (Origin.RESULT, Origin.EARLIER_RESULT)
_ADDRESSES = (Kind.EMAIL, Kind.URL)
MAX_PLACES = 4  # untrusted sources looked into per value; the earliest is where it came from
SHORT = 4  # characters below which a value stands in any longer text by chance


@dataclass(frozen=True, slots=True)
class Taint:
    """Why one value is tainted. severity None: only carried on, not worth a finding of its own."""

    severity: Severity | None
    source: int
    path: str
    why: str
    form: Form


@dataclass(slots=True)
class Judge:
    """State of one pass over a run. tainted: phrase → how it first came in. steered: source → phrases its call carried."""

    run: Run
    policy: Policy
    request: Request
    untrusted: frozenset[str]
    tainted: dict[str, Taint] = field(default_factory=dict)
    own: dict[str, int] = field(default_factory=dict)
    steered: dict[int, list[tuple[str, Taint]]] = field(default_factory=dict)


def taint(run: Run, policy: Policy) -> tuple[Violation, ...]:
    """One finding per tainted leaf of a privileged call."""
    turns = [turn.text for turn in run.trajectory.turns] + list(run.trajectory.history.turns)
    tools = {step.tool for step in run.trajectory.steps}
    judge = Judge(run, policy, request(turns, tools), frozenset(policy.untrusted))
    privileged = frozenset(policy.privileged)
    results = {source.step: n for n, source in enumerate(run.sources) if source.origin is Origin.RESULT}
    found: list[Violation] = []
    for number, step in enumerate(run.trajectory.steps):
        carried: list[tuple[str, Taint]] = []
        for leaf in run.leaves[number]:
            worst: tuple[Taint, Atom] | None = None
            for atom in leaf.atoms:
                verdict = _judge(judge, leaf, atom)
                if verdict is None:
                    continue
                carried.append((atom.phrase, verdict))
                if verdict.severity is not None and (worst is None or worst[0].severity is Severity.SOFT):
                    worst = verdict, atom
            if worst is not None and step.tool in privileged:
                found.append(_violation(run, leaf, *worst))
        if carried and number in results:
            _carry_on(judge, results[number], carried)
    return tuple(found)


def _judge(judge: Judge, leaf: ArgLeaf, atom: Atom) -> Taint | None:
    if atom.kind in (Kind.NONE, Kind.DATE):
        return None
    known = judge.tainted.get(atom.phrase)
    if known is not None:
        if _user_said(judge, atom, leaf.step):
            return None
        return _weigh_again(judge, leaf, atom, known)
    verdict = _first_seen(judge, leaf, atom)
    if verdict is not None:
        judge.tainted[atom.phrase] = verdict
    return verdict


def _first_seen(judge: Judge, leaf: ArgLeaf, atom: Atom) -> Taint | None:
    run, step = judge.run, leaf.step
    if atom.kind is Kind.PROSE:
        return _copied(judge, leaf, atom)
    matches = run.strict(atom, step)
    if not matches and atom.kind is not Kind.WORDS:
        matches = _loosely(judge, atom, step)
    if not matches:
        judge.own.setdefault(atom.phrase, step)
        return None
    since = judge.own.get(atom.phrase)
    dirty: list[Match] = []
    for match in matches:
        source = run.sources[match.source]
        if source.origin not in _RESULTS:
            return None
        if since is not None and source.step is not None and source.step >= since:
            continue  # an echo of what the agent itself wrote
        if source.tool in judge.untrusted or match.source in judge.steered:
            dirty.append(match)
        else:
            return None
    return _weigh(judge, leaf, atom, dirty) if dirty else None


def _user_said(judge: Judge, atom: Atom, step: int) -> bool:
    return any(judge.run.sources[match.source].from_user for match in judge.run.strict(atom, step))


def _loosely(judge: Judge, atom: Atom, step: int) -> list[Match]:
    found = judge.run.loose(atom, step)
    if not found and atom.kind is Kind.URL:
        host = host_phrase(atom.text)
        if " " in host:
            index = judge.run.index.find(host)
            found = [Match(n, Form.JOINED) for n in index if judge.run.sources[n].since <= step]
    return found


# ---- weighing -----------------------------------------------------------------------------------


def _weigh(judge: Judge, leaf: ArgLeaf, atom: Atom, dirty: list[Match]) -> Taint | None:
    """How bad it is that this value came only from these untrusted texts."""
    whole: Taint | None = None
    free: list[tuple[int, Field, Form]] = []
    wanted = host_phrase(atom.text) if atom.kind is Kind.URL and dirty[0].form is Form.JOINED else atom.phrase
    for match in dirty[:MAX_PLACES]:
        steering = _steering(judge, match.source, wanted)
        if steering is not None:
            if all(m.source in judge.steered for m in dirty):
                return steering
            continue
        for place in judge.run.layout(match.source).fields:
            if place.phrase == wanted and not place.free:
                trusted = _is_trusted(judge, match.source, place)
                if trusted:
                    return None
                whole = whole or Taint(None, match.source, place.path, "a field of its own", match.form)
            elif within(wanted, place.phrase) and not _is_trusted(judge, match.source, place):
                free.append((match.source, place, match.form))
    if free:
        return _embedded(judge, leaf, atom, free, whole)
    if whole is not None:
        return _whole(judge, leaf, atom, whole)
    return Taint(None, dirty[0].source, "$", "unclear place", dirty[0].form)


def _embedded(
    judge: Judge, leaf: ArgLeaf, atom: Atom, free: list[tuple[int, Field, Form]], whole: Taint | None
) -> Taint | None:
    source, place, form = free[0]
    here = Taint(None, source, place.path, "inside free text", form)
    if len(atom.phrase) < SHORT and whole is not None:
        return _whole(judge, leaf, atom, whole)
    softened = _softened(judge, atom, free)
    if softened:
        return _with(here, Severity.SOFT if _matters(judge, leaf, atom) else None, f"inside free text; {softened}")
    return _with(here, _severity(judge, leaf, atom), here.why)


def _softened(judge: Judge, atom: Atom, free: list[tuple[int, Field, Form]]) -> str:
    """Why an embedded value counts as one the user pointed to, "" if nothing says so."""
    if atom.kind is Kind.URL and _same_site(judge, atom, free):
        return "on a site that was asked for"
    if judge.request.names_value(atom.text):
        return "named by the user"
    source = judge.run.sources[free[0][0]].tool
    if source in judge.policy.delegates:
        return "the user may delegate to this source"
    if all(judge.request.hands_over_to(judge.run.layout(n).record(place.record)) for n, place, _ in free[:MAX_PLACES]):
        return "the user asked to act on this text"
    return ""


def _same_site(judge: Judge, atom: Atom, free: list[tuple[int, Field, Form]]) -> bool:
    """The URL stays on the site of the page it was found on, or of a URL the user gave."""
    host = host_phrase(atom.text)
    if any(judge.run.sources[n].from_user for n in judge.run.index.find(host)):
        return True
    step = judge.run.sources[free[0][0]].step
    if step is None:
        return False
    pages = (piece for leaf in judge.run.leaves[step] for piece in leaf.atoms if piece.kind is Kind.URL)
    return any(host_phrase(page.text) == host and not _is_hard(judge, page) for page in pages)


def _is_hard(judge: Judge, atom: Atom) -> bool:
    known = judge.tainted.get(atom.phrase)
    return known is not None and known.severity is Severity.HARD


def _whole(judge: Judge, leaf: ArgLeaf, atom: Atom, whole: Taint) -> Taint:
    if atom.kind in _ADDRESSES and naming.is_target(leaf.name) and not naming.is_content(leaf.name):
        return _with(whole, Severity.SOFT, "a field of its own")
    return whole


def _severity(judge: Judge, leaf: ArgLeaf, atom: Atom) -> Severity | None:
    """Of a value that sits in free text and that nothing points to."""
    if not _matters(judge, leaf, atom):
        return None
    targets = judge.policy.targets.get(judge.run.trajectory.steps[leaf.step].tool)
    if targets is not None:
        return Severity.HARD if _listed(leaf.path, targets) else Severity.SOFT
    if naming.is_target(leaf.name) and not naming.is_content(leaf.name):
        return Severity.HARD
    if atom.kind in _ADDRESSES and not atom.inside and naming.is_content(leaf.name):
        return Severity.HARD
    return Severity.SOFT


def _matters(judge: Judge, leaf: ArgLeaf, atom: Atom) -> bool:
    if naming.is_proof(leaf.name):
        return False
    if atom.kind is Kind.NUMBER:
        return naming.is_id(leaf.name) or len(atom.phrase) > 4 and naming.is_target(leaf.name)
    if atom.kind is Kind.WORDS:
        return naming.is_target(leaf.name) and len(atom.phrase) >= SHORT
    return len(atom.phrase) >= SHORT


def _listed(path: str, targets: tuple[str, ...]) -> bool:
    plain = _plain(path)
    return any(plain == _plain(target) or plain.startswith(_plain(target) + ".") for target in targets)


def _plain(path: str) -> str:
    return "".join(part.partition("]")[2] if n else part for n, part in enumerate(path.split("[")))


def _is_trusted(judge: Judge, source: int, place: Field) -> bool:
    """The spec says that the platform writes this field itself."""
    fields = judge.policy.fields.get(judge.run.sources[source].tool or "")
    if not fields:
        return False
    plain = _plain(place.path).removeprefix("$").lstrip(".")
    return any(plain == name or plain.endswith("." + name) for name in (_plain(f).removeprefix("$").lstrip(".") for f in fields))


def _weigh_again(judge: Judge, leaf: ArgLeaf, atom: Atom, known: Taint) -> Taint:
    """The same value in another call: where it came from stays, how much the argument matters may differ."""
    if known.severity is None or known.severity is Severity.SOFT and "free text" in known.why and ";" not in known.why:
        fresh = _severity(judge, leaf, atom) if known.why == "inside free text" else known.severity
        return _with(known, fresh, known.why)
    if known.severity is Severity.HARD and not _matters(judge, leaf, atom):
        return _with(known, None, known.why)
    if known.severity is Severity.HARD and naming.is_content(leaf.name):
        return _with(known, Severity.SOFT, known.why)
    return known


def _with(known: Taint, severity: Severity | None, why: str) -> Taint:
    return Taint(severity, known.source, known.path, why, known.form)


# ---- taint that travels -------------------------------------------------------------------------


def _carry_on(judge: Judge, source: int, carried: list[tuple[str, Taint]]) -> None:
    """A result is tainted by what its call carried, if that recurs in it."""
    kept = [(words, why) for words, why in carried if judge.run.index.holds(source, words)]
    if kept:
        judge.steered[source] = kept


def _steering(judge: Judge, source: int, wanted: str) -> Taint | None:
    """The value stands in an answer beside a tainted value that the call had asked for."""
    kept = judge.steered.get(source)
    if not kept:
        return None
    read = judge.run.layout(source)
    records = [read.record(place.record) for place in read.fields if within(wanted, place.phrase)]
    for words, why in kept:
        if why.severity is not None or why.why == "inside free text":
            if words == wanted or any(within(words, record) for record in records):
                return Taint(why.severity or Severity.HARD, source, why.path, "answer to a call that free text steered", Form.STEERED)
    return None


def _copied(judge: Judge, leaf: ArgLeaf, atom: Atom) -> Taint | None:
    """Copied content, unless the user or a trusted text has the passage too."""
    run = judge.run
    for passage in copied.runs(atom.phrase):
        found = [run.sources[n] for n in run.index.find(passage) if run.sources[n].since <= leaf.step]
        if found and all(source.origin in _RESULTS and source.tool in judge.untrusted for source in found):
            first = next(n for n in run.index.find(passage))
            return Taint(Severity.SOFT, first, "$", "copied words", Form.COPIED)
    return None


# ---- findings -----------------------------------------------------------------------------------


def _violation(run: Run, leaf: ArgLeaf, why: Taint, atom: Atom) -> Violation:
    step, source = run.trajectory.steps[leaf.step], run.sources[why.source]
    origin = f"{source} {why.path} ({why.why})"
    message = f"{step.tool}.{leaf.path} ← {origin}"
    evidence: Iterator[Evidence] = iter(())
    if source.step is not None:
        evidence = iter((Evidence(source.step, run.trajectory.steps[source.step].span),))
    severity = why.severity or Severity.SOFT
    del atom
    return Violation(
        "taint", "taint", severity, message, leaf.step, step.tool, leaf.path, (origin,), tuple(evidence), step.span
    )
