"""Values calculated or assembled from known ones."""

from __future__ import annotations

from decimal import Decimal

from luckrate_otel.provenance.tokens import forms
from luckrate_otel.provenance.tokens.atoms import Atom
from luckrate_otel.provenance.tokens.run import SCAN, Run

# Sums and products of any two of n numbers: above this many, almost every amount is "explained" by chance.
MAX_OPERANDS = 60
MAX_DIGITS = 12  # of an amount; longer numbers are ids, and Decimal cannot divide without limits
# Numbers a model calculates with are in what it read last. Looking farther back costs more than it explains.
MAX_READ = 60_000


def explains(run: Run, atom: Atom, step: int) -> bool:
    """The number can be calculated: sum, difference, product, share, total or count in one text or with the user's.

    Sums and differences across texts count where the run states few numbers in all.
    """
    if atom.number is None or len(atom.number) > MAX_DIGITS:
        return False
    wanted = Decimal(atom.number)
    run.index.spend(SCAN * len(run.sources))
    texts = _latest(run, step)
    run.index.spend(SCAN * MAX_OPERANDS * len(texts))
    asked = [value for source in texts if run.sources[source].from_user for value in _values(run, source)]
    pool = {value for source in texts for value in _values(run, source)}
    if len(pool) <= MAX_OPERANDS and any(wanted - value in pool or wanted + value in pool for value in pool if value):
        return True
    if any(_from(wanted, _values(run, source), asked) for source in texts):
        return True
    return any(wanted in run.layout(source).counts for source in texts)


def _latest(run: Run, step: int) -> list[int]:
    """The newest sources before the step, up to MAX_READ characters in all."""
    found: list[int] = []
    read = 0
    for number in range(len(run.sources) - 1, -1, -1):
        source = run.sources[number]
        if source.since <= step and (read := read + len(source.text)) <= MAX_READ:
            found.append(number)
    return found


def joined(run: Run, atom: Atom, step: int) -> bool:
    """The value is two known parts put together.

    Words and a number: `credit_card_5634` from "credit card" and `gift_card_5634`. A name and a domain:
    `ann.lee@shop.example` from "Ann Lee" and `info@shop.example`.
    """
    parts = forms.joints(atom)
    return bool(parts) and all(any(run.sources[k].since <= step for k in run.index.find(part)) for part in parts)


def _values(run: Run, source: int) -> list[Decimal]:
    found = sorted(Decimal(number) for number in run.index.numbers(source) if len(number) <= MAX_DIGITS)
    return found if len(found) <= MAX_OPERANDS else []


def _from(wanted: Decimal, own: list[Decimal], asked: list[Decimal]) -> bool:
    if not own:
        return False
    known = set(own) | set(asked[:MAX_OPERANDS])
    if sum(own) == wanted or (len(own) > 1 and sum(own) / len(own) == wanted):
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
