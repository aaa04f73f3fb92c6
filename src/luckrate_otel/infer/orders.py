"""Which calls wait for which, beyond plain pairs: a look-up of the same thing, or either of two look-ups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from luckrate_otel.canonical import canonical
from luckrate_otel.infer.counted import MIN_SUPPORT, Counted, nameable, pairs
from luckrate_otel.model import Trajectory

# An either-or that two frequent tools would keep anyway says nothing: how likely that may be at most.
MAX_CHANCE = 0.01

# Two ways to the same end are seldom both taken: in what share of the runs at most.
MAX_BOTH = 0.25

# Pairs of more tools than these are not looked through: it takes the square of them.
MAX_TOOLS = 100


def about_the_same(runs: Sequence[Trajectory]) -> list[Counted]:
    """The pairs of `before` that held for each thing, one look-up per order say, with the argument that names it."""
    always, _ = pairs(runs)
    found = (_same_argument(runs, a, b) for a, b in sorted(always))
    return [one for one in found if one is not None]


def _same_argument(runs: Sequence[Trajectory], a: str, b: str) -> Counted | None:
    """The argument in which every b equals an a before it, as a clause of `before`; None if there is none.

    An argument that hardly varies is equal without being about the same thing. support: of the calls of b.
    """
    about: dict[str, set[str]] = {}
    calls = 0
    for run in runs:
        for index, step in enumerate(run.steps):
            if step.tool != b:
                continue
            if step.args is None:
                return None
            told = {str(name): canonical(value) for name, value in step.args.items() if plain_name(name)}
            seen = {
                (str(name), canonical(value))
                for other in run.steps[:index]
                if other.tool == a
                for name, value in (other.args or {}).items()
            }
            equal = {name for name, value in told.items() if (name, value) in seen}
            about = {name: about.get(name, set()) | {told[name]} for name in (equal & set(about) if calls else equal)}
            calls += 1
    best = min(about, key=lambda name: (-len(about[name]), name), default=None)
    if best is None or len(about[best]) < MIN_SUPPORT:
        return None
    return Counted({"first": a, "then": b, "same": best}, calls, calls)


def plain_name(name: object) -> bool:
    """A name that `same:` reads as one argument and no path."""
    return isinstance(name, str) and name.replace("_", "a").isalnum() and name != "result"


def either(runs: Sequence[Trajectory]) -> list[Counted]:
    """Two tools of which one was called before every one of some others, where neither alone was."""
    firsts = [list(dict.fromkeys(step.tool for step in run.steps if nameable(step.tool))) for run in runs]
    called = Counter(tool for names in firsts for tool in names)
    if len(called) > MAX_TOOLS:
        return []
    earlier: dict[str, list[set[str]]] = {}
    found: dict[tuple[str, str], list[str]] = {}
    for b in sorted(tool for tool, count in called.items() if count >= MIN_SUPPORT):
        earlier[b] = [set(names[: names.index(b)]) for names in firsts if b in names]
        for pair in _covering(earlier[b]):
            found.setdefault(pair, []).append(b)
    found_clauses = (_choice(pair, waiting, earlier, firsts) for pair, waiting in sorted(found.items()))
    return [one for one in found_clauses if one is not None]


def _choice(
    pair: tuple[str, str], waiting: Sequence[str], earlier: Mapping[str, list[set[str]]], firsts: Sequence[list[str]]
) -> Counted | None:
    """The clause, if the two are alternatives: each alone often enough, seldom both, and not so by chance.

    Of other tools that in fewer runs always had one of the two, the same one every time, it is said as well.
    """
    x, y = pair
    before = [b for b, sets in earlier.items() if b in waiting or (b not in pair and all({x, y} & s for s in sets))]
    having = [set(names) for names in firsts if set(names) & set(before)]
    alone = [sum(one in names and other not in names for names in having) for one, other in (pair, (y, x))]
    both = len(having) - sum(alone)
    missed = [1 - sum(tool in names for names in firsts) / len(firsts) for tool in pair]
    chance = (1 - missed[0] * missed[1]) ** len(having)
    if min(alone) < MIN_SUPPORT or both > MAX_BOTH * len(having) or chance > MAX_CHANCE:
        return None
    return Counted({"calls": list(pair), "before": before}, len(having), len(having))


def loose(choices: Sequence[Counted]) -> set[tuple[str, str]]:
    """The pairs of `before` that such a clause says less strictly, and that are better left out."""
    return {(a, b) for one in choices for a in one.value["calls"] for b in one.value["before"]}


def _covering(earlier: Sequence[set[str]]) -> Iterator[tuple[str, str]]:
    """The pairs of which one is in every set, and neither in all."""
    counts = Counter(tool for names in earlier for tool in names)
    some = sorted(tool for tool, count in counts.items() if count < len(earlier))
    for x, y in combinations(some, 2):
        if counts[x] + counts[y] >= len(earlier) and all(x in names or y in names for names in earlier):
            yield x, y
