"""Where in the untrusted texts a value stands, and whether the user pointed there."""

from __future__ import annotations

import re

from luckrate_otel.provenance.tokens.atoms import Atom, Kind, host_phrase
from luckrate_otel.provenance.tokens.fold import within
from luckrate_otel.provenance.tokens.forms import Form
from luckrate_otel.provenance.tokens.inquiry import Inquiry, Lead
from luckrate_otel.provenance.tokens.layout import Field
from luckrate_otel.provenance.tokens.run import SCAN
from luckrate_otel.provenance.tokens.severity import SHORT, Level, Taint, listed

MAX_PLACES = 4  # untrusted sources looked into per value; the earliest is where it came from


def weigh(inquiry: Inquiry, lead: Lead) -> Taint | None:
    """How a value that stands only in untrusted texts came in; None if a field it stands in is trusted by the spec."""
    run, atom, first = inquiry.run, lead.atom, lead.dirty[0]
    by_host = atom.kind is Kind.URL and first.form is Form.JOINED
    phrase = host_phrase(atom.text) if by_host else run.stated(atom, first.source)
    whole: Taint | None = None
    free: list[tuple[int, Field]] = []
    for match in lead.dirty[:MAX_PLACES]:
        if match.source in inquiry.steered and (led := _led(inquiry, match.source, phrase)) is not None:
            if all(other.source in inquiry.steered for other in lead.dirty):
                return led
            continue
        trusted = inquiry.policy.fields.get(run.sources[match.source].tool or "", ())
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
    level, why = _standing(inquiry, atom, free)
    return Taint(level, free[0][0], free[0][1].path, why, first.form)


def _led(inquiry: Inquiry, source: int, phrase: str) -> Taint | None:
    """The value stands in an answer beside a suspect that the call had asked for."""
    read = inquiry.run.layout(source)
    places = inquiry.run.places(source, phrase)[:MAX_PLACES]
    inquiry.run.index.spend(SCAN * len(read.fields) * len(places))
    records = [read.record(place.record) for place in places]
    for carried in inquiry.steered[source]:
        if (carried == phrase or any(within(carried, text) for text in records)) and inquiry.led_astray(carried):
            path = places[0].path if places else "$"
            return Taint(Level.STEERED, source, path, "answer to a call that free text steered", Form.STEERED)
    return None


# ---- what softens -------------------------------------------------------------------------------


def _standing(inquiry: Inquiry, atom: Atom, free: list[tuple[int, Field]]) -> tuple[Level, str]:
    """How an embedded value counts, and why: the user may have pointed to it."""
    source, place = free[0]
    if atom.kind is Kind.URL and _same_site(inquiry, atom, source):
        return Level.SITE, "on a site that was asked for"
    pointed = ""
    if inquiry.request.names_value(host_phrase(atom.text).rpartition(" ")[0] if atom.kind is Kind.URL else atom.text):
        pointed = ", named by the user"
    elif inquiry.run.sources[source].tool in inquiry.policy.delegates:
        pointed = ", from a source the user may delegate to"
    elif _own_file(inquiry, source, place):
        pointed = ", in a file the user called their own"
    elif all(inquiry.request.hands_over_to(inquiry.run.layout(n).record(f.record)) for n, f in free[:MAX_PLACES]):
        pointed = ", in a text the user asked to act on"
    return (Level.POINTED if pointed else Level.FREE), f"inside free text{pointed}"


def _same_site(inquiry: Inquiry, atom: Atom, source: int) -> bool:
    """The URL stays on the site of the page it was found on, or of a URL the user gave."""
    run, host = inquiry.run, host_phrase(atom.text)
    if any(run.sources[n].from_user for n in run.index.find(host)):
        return True
    step = run.sources[source].step
    if step is None:
        return False
    pages = (piece for leaf in run.leaves[step] for piece in leaf.atoms if piece.kind is Kind.URL)
    return any(host_phrase(page.text) == host and not inquiry.led_astray(page.phrase) for page in pages)


def _own_file(inquiry: Inquiry, source: int, place: Field) -> bool:
    """A text file the user named as theirs (`my details are in /home/me/info.txt`); pages are written by others."""
    step = inquiry.run.sources[source].step
    if step is None or "<" in place.path or not inquiry.request.own_files:
        return False
    return any(piece.phrase in inquiry.request.own_files for leaf in inquiry.run.leaves[step] for piece in leaf.atoms)


def mentions_host(text: str, url: str) -> bool:
    """The text names the URL's host as a host, not as the domain of a mail address."""
    host = re.sub(r"^\w+://(?:www\.)?|^www\.", "", url, flags=re.IGNORECASE)
    host = re.split(r"[/?#:]", host, maxsplit=1)[0]
    return re.search(rf"(?<![@\w]){re.escape(host)}(?![\w@])", text.replace("www.", ""), re.IGNORECASE) is not None
