"""Where in the untrusted texts a value stands, and whether the user pointed there."""

from __future__ import annotations

import re

from luckrate_otel.provenance.tokens.atoms import Atom, Kind, host_phrase
from luckrate_otel.provenance.tokens.fold import within
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.judge import Judge, Lead
from luckrate_otel.provenance.tokens.layout import Field
from luckrate_otel.provenance.tokens.run import SCAN
from luckrate_otel.provenance.tokens.severity import SHORT, Level, Taint, listed

MAX_PLACES = 4  # untrusted sources looked into per value; the earliest is where it came from


def weigh(judge: Judge, lead: Lead) -> Taint | None:
    """How a value that stands only in untrusted texts came in; None if a field it stands in is trusted by the spec."""
    run, atom, first = judge.run, lead.atom, lead.dirty[0]
    by_host = atom.kind is Kind.URL and first.form is Form.JOINED
    phrase = host_phrase(atom.text) if by_host else run.stated(atom, first.source)
    whole: Taint | None = None
    free: list[tuple[int, Field]] = []
    for match in lead.dirty[:MAX_PLACES]:
        if match.source in judge.steered and (led := _led(judge, match.source, phrase)) is not None:
            if all(other.source in judge.steered for other in lead.dirty):
                return led
            continue
        trusted = judge.policy.fields.get(run.sources[match.source].tool or "", ())
        for place in run.places(match.source, phrase):
            if listed(place.path, trusted):
                return None
            if not place.free and (place.phrase == phrase or (atom.kind is Kind.PATH and "<" in place.path)):
                whole = whole or Taint(Level.WHOLE, match.source, place.path, "a field of its own", match.form)
            else:
                free.append((match.source, place))
    if whole is not None and (not free or len(phrase) < SHORT):
        return whole
    if not free:
        return Taint(Level.FREE, first.source, "$", "inside free text", first.form)
    level, why = _standing(judge, atom, free)
    return Taint(level, free[0][0], free[0][1].path, why, first.form)


def _led(judge: Judge, source: int, phrase: str) -> Taint | None:
    """The value stands in an answer beside a suspect that the call had asked for."""
    read = judge.run.layout(source)
    places = judge.run.places(source, phrase)[:MAX_PLACES]
    judge.run.index.spend(SCAN * len(read.fields) * len(places))
    records = [read.record(place.record) for place in places]
    for carried in judge.steered[source]:
        if (carried == phrase or any(within(carried, text) for text in records)) and judge.led_astray(carried):
            path = places[0].path if places else "$"
            return Taint(Level.STEERED, source, path, "answer to a call that free text steered", Form.STEERED)
    return None


# ---- what softens -------------------------------------------------------------------------------


def _standing(judge: Judge, atom: Atom, free: list[tuple[int, Field]]) -> tuple[Level, str]:
    """How an embedded value counts, and why: the user may have pointed to it."""
    source, place = free[0]
    if atom.kind is Kind.URL and _same_site(judge, atom, source):
        return Level.SITE, "on a site that was asked for"
    pointed = ""
    if judge.request.names_value(host_phrase(atom.text).rpartition(" ")[0] if atom.kind is Kind.URL else atom.text):
        pointed = ", named by the user"
    elif judge.run.sources[source].tool in judge.policy.delegates:
        pointed = ", from a source the user may delegate to"
    elif _own_file(judge, source, place):
        pointed = ", in a file the user called their own"
    elif all(judge.request.hands_over_to(judge.run.layout(n).record(f.record)) for n, f in free[:MAX_PLACES]):
        pointed = ", in a text the user asked to act on"
    return (Level.POINTED if pointed else Level.FREE), f"inside free text{pointed}"


def _same_site(judge: Judge, atom: Atom, source: int) -> bool:
    """The URL stays on the site of the page it was found on, or of a URL the user gave."""
    run, host = judge.run, host_phrase(atom.text)
    if any(run.sources[n].from_user for n in run.index.find(host)):
        return True
    step = run.sources[source].step
    if step is None:
        return False
    pages = (piece for leaf in run.leaves[step] for piece in leaf.atoms if piece.kind is Kind.URL)
    return any(host_phrase(page.text) == host and not judge.led_astray(page.phrase) for page in pages)


def _own_file(judge: Judge, source: int, place: Field) -> bool:
    """A text file the user named as theirs (`my details are in /home/me/info.txt`); pages are written by others."""
    step = judge.run.sources[source].step
    if step is None or "<" in place.path or not judge.request.own_files:
        return False
    return any(piece.phrase in judge.request.own_files for leaf in judge.run.leaves[step] for piece in leaf.atoms)


def mentions_host(text: str, url: str) -> bool:
    """The text names the URL's host as a host, not as the domain of a mail address."""
    host = re.sub(r"^\w+://(?:www\.)?|^www\.", "", url, flags=re.IGNORECASE)
    host = re.split(r"[/?#:]", host, maxsplit=1)[0]
    return re.search(rf"(?<![@\w]){re.escape(host)}(?![\w@])", text.replace("www.", ""), re.IGNORECASE) is not None
