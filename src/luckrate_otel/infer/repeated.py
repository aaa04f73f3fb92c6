"""How often a tool is called for one and the same thing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil

from luckrate_otel.canonical import canonical
from luckrate_otel.infer.counted import MIN_SUPPORT, Counted, nameable
from luckrate_otel.infer.orders import plain_name
from luckrate_otel.model import Step, Trajectory


def once_each(runs: Sequence[Trajectory]) -> list[tuple[str, Counted]]:
    """Tool → a limit of one call for the same arguments, where at least 95 % of the runs that call it keep that.

    The arguments are those that every call gives. Tools with calls whose arguments were not captured are left out.
    """
    return [(tool, found) for tool in _tools(runs) if (found := _limit(runs, tool)) is not None]


def _tools(runs: Sequence[Trajectory]) -> Iterator[str]:
    called = Counter(tool for run in runs for tool in {step.tool for step in run.steps} if nameable(tool))
    return iter(sorted(tool for tool, count in called.items() if count >= MIN_SUPPORT))


def _limit(runs: Sequence[Trajectory], tool: str) -> Counted | None:
    calls = [[step for step in run.steps if step.tool == tool] for run in runs]
    by_run = [steps for steps in calls if steps]
    if any(step.args is None for steps in by_run for step in steps):
        return None
    always = set.intersection(*(set(step.args or {}) for steps in by_run for step in steps))
    same = sorted(name for name in always if plain_name(name))
    most = [max(Counter(_about(step, same) for step in steps).values()) for steps in by_run]
    kept = sum(count == 1 for count in most)
    if kept < ceil(0.95 * len(most)):
        return None
    return Counted({"max": 1, "same": same} if same else 1, kept, len(most), f"most {max(most)}")


def _about(step: Step, same: Sequence[str]) -> str:
    return canonical([(step.args or {})[name] for name in same])
