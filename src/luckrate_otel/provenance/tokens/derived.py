"""Values calculated or assembled from known ones."""

from __future__ import annotations

import re
from decimal import Decimal

from luckrate_otel.provenance.tokens.atoms import Atom
from luckrate_otel.provenance.tokens.run import Run

# Sums and products of any two of n numbers: above this many, almost every amount is "explained" by chance.
MAX_OPERANDS = 60
MAX_TEXTS = 200
_WORD_AND_ID = re.compile(r"([a-z]+(?: [a-z]+){0,2}) (\d{5,})")


def explains(run: Run, atom: Atom, step: int) -> bool:
    """The number is a sum, difference, product, share or total of numbers of one text, or of one text and the user's."""
    wanted = Decimal(atom.number or "0")
    if _across(run, wanted, step):
        return True
    asked = [n for k, s in enumerate(run.sources) if s.from_user and s.since <= step for n in _values(run, k)]
    texts = [k for k, s in enumerate(run.sources) if s.since <= step][-MAX_TEXTS:]
    return any(_from(wanted, _values(run, k), asked) for k in texts)


def _across(run: Run, wanted: Decimal, step: int) -> bool:
    """A sum or difference of two numbers of different texts; only where there are few, else chance explains all."""
    pool = {
        Decimal(n) for k, s in enumerate(run.sources) if s.since <= step for n in run.index.numbers(k) if len(n) <= 12
    }
    return len(pool) <= MAX_OPERANDS and any(
        wanted - value in pool or wanted + value in pool for value in pool if value
    )


def joined(run: Run, atom: Atom, step: int) -> bool:
    """The id is a known word or two and a known number: `credit_card_5634230` from "credit card" and `gift_card_5634230`."""
    match = _WORD_AND_ID.fullmatch(atom.phrase)
    return match is not None and all(
        any(run.sources[k].since <= step for k in run.index.find(part)) for part in match.groups()
    )


def _values(run: Run, source: int) -> list[Decimal]:
    found = sorted(Decimal(number) for number in run.index.numbers(source) if len(number) <= 12)
    return found if len(found) <= MAX_OPERANDS else []


def _from(wanted: Decimal, own: list[Decimal], asked: list[Decimal]) -> bool:
    if not own:
        return False
    known = set(own) | set(asked[:MAX_OPERANDS])
    if sum(own) == wanted or len(own) > 1 and sum(own) / len(own) == wanted:
        return True
    for value in own:
        if value <= 0:
            continue
        if wanted - value in known or wanted + value in known or abs(value - wanted) in known:
            return True
        if value > 1 and wanted % value == 0 and (wanted / value in known or wanted / value <= 12):
            return True
        if wanted * 2 == value or wanted * 100 / value in known:
            return True
    return False
