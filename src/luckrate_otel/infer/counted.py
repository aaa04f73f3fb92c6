"""What known-good runs have in common, counted: calls, orders, budgets and arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from luckrate_otel.model import Trajectory
from luckrate_otel.provenance.tokens import Leaf
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import Value

# Below this many runs, or calls of a tool, a habit cannot be told from chance: with five of five the true share may
# still be as low as 57 % (95 % interval).
MIN_SUPPORT = 5

# Distinct texts that look like the whole list of options, and how often they must have been seen. One is no list.
MAX_OPTIONS = 6
MIN_OPTION_USES = 4

# Kinds of values that come from somewhere. Plain words, prose and small numbers are often made up, and rightly.
TRACED = frozenset({"id", "email", "url", "path"})

Trace = Callable[[Trajectory], tuple[Leaf, ...]]


@dataclass(frozen=True, slots=True)
class Counted:
    """value: what is proposed. support: of how many runs or calls it held. of: of how many it could have."""

    value: Value
    support: int
    of: int
    note: str = ""


def nameable(tool: str) -> bool:
    """Whether a spec can name it: names come from models and frameworks."""
    return bool(tool.strip()) and "*" not in tool


def tools(runs: Sequence[Trajectory]) -> list[Counted]:
    """Every tool, with the runs that call it, by name."""
    seen = Counter(tool for run in runs for tool in {step.tool for step in run.steps} if nameable(tool))
    return [Counted(tool, count, len(runs)) for tool, count in sorted(seen.items())]


def required(runs: Sequence[Trajectory]) -> list[Counted]:
    """The tools that every run calls."""
    return [one for one in tools(runs) if one.support == one.of >= MIN_SUPPORT]


def before(runs: Sequence[Trajectory]) -> list[Counted]:
    """The pairs that held in every run with b, without those that follow from two others."""
    always, called = pairs(runs)
    names = sorted(called)
    implied = {(a, c) for a, c in always for b in names if (a, b) in always and (b, c) in always}
    return [Counted([a, b], called[b], called[b]) for a, b in sorted(always - implied)]


def pairs(runs: Sequence[Trajectory]) -> tuple[set[tuple[str, str]], Counter[str]]:
    """Every pair [a, b] of tools of which the first a preceded the first b in all runs with b, and tool → runs."""
    follows: Counter[tuple[str, str]] = Counter()
    called: Counter[str] = Counter()
    for run in runs:
        firsts = list(dict.fromkeys(step.tool for step in run.steps if nameable(step.tool)))
        called.update(firsts)
        follows.update((a, b) for j, b in enumerate(firsts) for a in firsts[:j])
    always = {pair for pair, count in follows.items() if count == called[pair[1]] >= MIN_SUPPORT}
    return always, called


def budget(amounts: Iterable[float | None]) -> Counted | None:
    """The 95th percentile by nearest rank, as a whole number; None of too few."""
    known = sorted(amount for amount in amounts if amount is not None)
    if len(known) < MIN_SUPPORT:
        return None
    p95 = ceil(known[ceil(0.95 * len(known)) - 1])
    return Counted(p95, sum(amount <= p95 for amount in known), len(known), f"most {known[-1]:.6g}")


def once(runs: Sequence[Trajectory]) -> list[Counted]:
    """The tools that no run calls twice."""
    most: dict[str, int] = {}
    for run in runs:
        for tool, count in Counter(step.tool for step in run.steps).items():
            most[tool] = max(count, most.get(tool, 0))
    return [one for one in tools(runs) if most[one.value] == 1 and one.support >= MIN_SUPPORT]


def repeats(run: Trajectory) -> bool:
    """Whether the rule no_repeat finds something in the run, or cannot be sure that there is nothing."""
    outcome = RULES["no_repeat"].evaluate(run, Spec())
    return bool(outcome.violations) or outcome.gap is not None


# ---- arguments ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool. types: JSON types. options: all texts it was, if they look like a closed list.
    sources: where it came from every time, as `from:` writes it."""

    name: str
    uses: int
    calls: int
    types: tuple[str, ...]
    options: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def arguments(runs: Sequence[Trajectory], trace: Trace) -> Mapping[str, list[Argument]]:
    """Tool → its arguments by name, of the tools that were called often enough with their arguments captured."""
    values: dict[str, dict[str, list[Value]]] = {}
    calls: Counter[str] = Counter()
    for step in (step for run in runs for step in run.steps if step.args is not None and step.ok is not False):
        calls[step.tool] += 1
        for name, value in (step.args or {}).items():
            values.setdefault(step.tool, {}).setdefault(str(name), []).append(value)
    origins = _origins(runs, trace)
    # Runs of a few tasks name the same few orders, which are no closed list for all that.
    closed = {
        key: _options(seen)
        for tool, by_name in values.items()
        for name, seen in by_name.items()
        if (key := (tool, name)) not in origins
    }
    return {
        tool: [
            Argument(
                name,
                len(seen),
                calls[tool],
                _types(seen),
                closed.get((tool, name), ()),
                _cover(origins.get((tool, name), [])),
            )
            for name, seen in sorted(values.get(tool, {}).items())
        ]
        for tool in sorted(calls)
        if calls[tool] >= MIN_SUPPORT and nameable(tool)
    }


def _types(values: Iterable[Value]) -> tuple[str, ...]:
    found = {_type(value) for value in values}
    return tuple(sorted(found - {"integer"} if "number" in found else found))


def _type(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        (str, "string"),
        (int, "integer"),
        (float, "number"),
        (Mapping, "object"),
        ((list, tuple), "array"),
    )
    return next((name for kind, name in kinds if isinstance(value, kind)), "null")


def _options(values: Sequence[Value]) -> tuple[str, ...]:
    seen = Counter(value for value in values if isinstance(value, str))
    closed = 2 <= len(seen) <= MAX_OPTIONS and all(
        count >= MIN_OPTION_USES and len(text) <= 40 for text, count in seen.items()
    )
    return tuple(sorted(seen)) if closed and seen.total() == len(values) else ()


def _origins(runs: Sequence[Trajectory], trace: Trace) -> dict[tuple[str, str], list[frozenset[str]]]:
    """(tool, argument) → per call the sources that its value was seen in. Arguments with parts are left out."""
    found: dict[tuple[str, str], list[frozenset[str]]] = {}
    for run in runs:
        try:
            leaves = trace(run)
        except ValueError:  # too large to be traced; the other runs tell enough
            continue
        for leaf in leaves:
            failed = run.steps[leaf.step].ok is False
            if leaf.kind in TRACED and not failed and not {".", "["} & set(leaf.path):
                seen = frozenset(_source(s.origin, s.tool) for s in leaf.sources) - {""}
                found.setdefault((leaf.tool, leaf.path), []).append(seen)
    return found


def _source(origin: str, tool: str | None) -> str:
    if origin in ("user", "earlier user"):
        return "user"
    return tool or "" if origin in ("result", "earlier result") else ""


def _cover(uses: Sequence[frozenset[str]]) -> tuple[str, ...]:
    """The fewest sources of which every use has one, the commonest first; none if some use has none."""
    if len(uses) < MIN_SUPPORT or not all(uses):
        return ()
    left, chosen = list(uses), []
    while left:
        counts = Counter(source for use in left for source in use)
        best = min(counts, key=lambda source: (-counts[source], source))
        chosen.append(best)
        left = [use for use in left if best not in use]
    return tuple(chosen) if len(chosen) <= 3 else ()
