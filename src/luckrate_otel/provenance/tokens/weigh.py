"""Where in the untrusted texts a value stands, and whether the user pointed there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens.atoms import Atom, Kind, host_phrase
from luckrate_otel.provenance.tokens.fold import within
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.place import Field
from luckrate_otel.provenance.tokens.pointing import Request
from luckrate_otel.provenance.tokens.run import Match, Run
from luckrate_otel.provenance.tokens.severity import SHORT, Level, Taint, listed

MAX_PLACES = 4  # untrusted sources looked into per value; the earliest is where it came from
Tainted = Mapping[str, Taint]
Steered = Mapping[int, tuple[tuple[str, Taint], ...]]


def weigh(
    run: Run, policy: Policy, request: Request, tainted: Tainted, steered: Steered, atom: Atom, dirty: tuple[Match, ...]
) -> Taint | None:
    """How a value that stands only in these untrusted texts came in; None if a field is trusted by the spec."""
    phrase = (
        host_phrase(atom.text)
        if atom.kind is Kind.URL and dirty[0].form is Form.JOINED
        else _stated(run, atom, dirty[0])
    )
    whole: Taint | None = None
    free: list[tuple[int, Field]] = []
    for match in dirty[:MAX_PLACES]:
        if match.source in steered and (led := _led(run, steered[match.source], match.source, phrase)) is not None:
            if all(other.source in steered for other in dirty):
                return led
            continue
        names = policy.fields.get(run.sources[match.source].tool or "", ())
        for place in run.layout(match.source).fields:
            if not within(phrase, place.phrase):
                continue
            if listed(place.path, names):
                return None
            if not place.free and (place.phrase == phrase or atom.kind is Kind.PATH and "<" in place.path):
                whole = whole or Taint(Level.WHOLE, match.source, place.path, "a field of its own", match.form)
            else:
                free.append((match.source, place))
    if whole is not None and (not free or len(phrase) < SHORT):
        return whole
    if not free:
        return Taint(Level.FREE, dirty[0].source, "$", "inside free text", dirty[0].form)
    if atom.kind is Kind.URL and _same_site(run, tainted, atom, free[0][0]):
        return Taint(Level.SITE, free[0][0], free[0][1].path, "on a site that was asked for", dirty[0].form)
    pointed = _pointed(run, policy, request, atom, free)
    if pointed:
        return Taint(Level.POINTED, free[0][0], free[0][1].path, f"inside free text, {pointed}", dirty[0].form)
    return Taint(Level.FREE, free[0][0], free[0][1].path, "inside free text", dirty[0].form)


def _stated(run: Run, atom: Atom, match: Match) -> str:
    """The phrase that the match was found by."""
    return next((phrase for _, phrase in run.pairs(atom) if run.index.holds(match.source, phrase)), atom.phrase)


def _led(run: Run, carried: tuple[tuple[str, Taint], ...], source: int, phrase: str) -> Taint | None:
    """The value stands in an answer beside a tainted value that the call asked for."""
    read = run.layout(source)
    records = [read.record(place.record) for place in read.fields if within(phrase, place.phrase)]
    for words, why in carried:
        if why.level in (Level.FREE, Level.STEERED) and (
            words == phrase or any(within(words, text) for text in records)
        ):
            return Taint(Level.STEERED, source, why.path, "answer to a call that free text steered", Form.STEERED)
    return None


# ---- what softens -------------------------------------------------------------------------------


def _pointed(run: Run, policy: Policy, request: Request, atom: Atom, free: list[tuple[int, Field]]) -> str:
    """Why an embedded value counts as one the user pointed to, "" if nothing says so."""
    source = run.sources[free[0][0]]
    if request.names_value(host_phrase(atom.text) if atom.kind is Kind.URL else atom.text):
        return "named by the user"
    if source.tool in policy.delegates:
        return "from a source the user may delegate to"
    if _own_file(run, request, free[0][0], free[0][1]):
        return "in a file the user called their own"
    if all(request.hands_over_to(run.layout(n).record(place.record)) for n, place in free[:MAX_PLACES]):
        return "in a text the user asked to act on"
    return ""


def _same_site(run: Run, tainted: Tainted, atom: Atom, source: int) -> bool:
    """The URL stays on the site of the page it was found on, or of a URL the user gave."""
    host = host_phrase(atom.text)
    if any(run.sources[n].from_user for n in run.index.find(host)):
        return True
    step = run.sources[source].step
    if step is None:
        return False
    pages = (piece for leaf in run.leaves[step] for piece in leaf.atoms if piece.kind is Kind.URL)
    return any(host_phrase(page.text) == host and not _led_astray(tainted, page) for page in pages)


def _led_astray(tainted: Tainted, atom: Atom) -> bool:
    known = tainted.get(atom.phrase)
    return known is not None and known.level in (Level.FREE, Level.STEERED)


def _own_file(run: Run, request: Request, source: int, place: Field) -> bool:
    """A text file that the user named as theirs (`my details are in /home/me/info.txt`); pages are written by others."""
    step = run.sources[source].step
    if step is None or "<" in place.path or not request.own_files:
        return False
    return any(piece.phrase in request.own_files for leaf in run.leaves[step] for piece in leaf.atoms)


def mentions_host(text: str, url: str) -> bool:
    """The text names the URL's host as a host, not as the domain of a mail address."""
    host = re.sub(r"^\w+://(?:www\.)?|^www\.", "", url, flags=re.IGNORECASE)
    host = re.split(r"[/?#:]", host, maxsplit=1)[0]
    return re.search(rf"(?<![@\w]){re.escape(host)}(?![\w@])", text.replace("www.", ""), re.IGNORECASE) is not None
