"""Two reports → what changed, and what only seems to have.

Shares of few runs differ by chance. A difference counts when its 95 % interval leaves zero out; until then the answer
is how many more runs would tell. Source of the interval: R. G. Newcombe, "Interval estimation for the difference
between independent proportions", Statistics in Medicine 17 (1998), method 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

from luckrate_otel.luck import Interval, wilson
from luckrate_otel.model import Severity, VerdictLabel
from luckrate_otel.reports.past import Past, PastFinding, PastRun

# A difference that would take more runs than this to see is not worth looking for in a suite.
MAX_RUNS = 100_000

# With three runs a side even wholly opposite outcomes come by chance once in ten (Fisher's exact test, 2 of C(6, 3));
# with four, once in 35. Newcombe's interval is too sure of itself below that.
MIN_RUNS = 4

_GREEN = frozenset({VerdictLabel.PASS, VerdictLabel.LUCKY, VerdictLabel.UNVERIFIED})
# Runs whose path and output are both known: the rest is neither a pass nor the lack of one.
_DECIDED = frozenset({VerdictLabel.PASS, VerdictLabel.LUCKY, VerdictLabel.FAIL})


class Change(StrEnum):
    """What a difference of two shares amounts to."""

    HIGHER = "higher"
    LOWER = "lower"
    SAME = "same"  # no difference seen
    UNDECIDED = "undecided"  # a difference seen, not enough runs to tell it from chance
    NO_DATA = "no_data"  # nothing to take a share of on one side


@dataclass(frozen=True, slots=True)
class Share:
    hits: int
    of: int

    @property
    def value(self) -> float | None:
        return self.hits / self.of if self.of else None


@dataclass(frozen=True, slots=True)
class Difference:
    """The share after less the share before.

    interval: Newcombe, 95 %. missing: how many more runs each side needs to tell, if undecided;
    None also if no number up to MAX_RUNS would do.
    """

    before: Share
    after: Share
    change: Change
    interval: Interval | None = None
    missing: tuple[int, int] | None = None


class CaseState(StrEnum):
    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNDECIDED = "undecided"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case in both reports. appeared, gone: hard findings that only one of them has. passes: share of decided runs
    that passed; hard: share of runs with a hard violation."""

    case: str
    state: CaseState
    appeared: tuple[PastFinding, ...]
    gone: tuple[PastFinding, ...]
    passes: Difference
    hard: Difference


@dataclass(frozen=True, slots=True)
class ToolDrift:
    """A tool that more or fewer runs call. calls: per run, before and after."""

    tool: str
    runs: Difference
    calls: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """cases: of both reports. only_before, only_after: cases of one. tools: those that surely drifted, and those that
    are new or gone."""

    luck: Difference
    cases: tuple[CaseChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    tools: tuple[ToolDrift, ...]

    @property
    def regressed(self) -> bool:
        """A case got worse, or the Luck Rate surely rose."""
        return self.luck.change is Change.HIGHER or any(case.state is CaseState.REGRESSED for case in self.cases)


def compare(before: Past, after: Past) -> Comparison:
    """What changed from one report to the other."""
    old, new = _by_case(before.runs), _by_case(after.runs)
    return Comparison(
        luck=difference(_luck(before.runs), _luck(after.runs)),
        cases=tuple(_case(case, old[case], new[case]) for case in old if case in new),
        only_before=tuple(case for case in old if case not in new),
        only_after=tuple(case for case in new if case not in old),
        tools=tuple(_tools(before.runs, after.runs)),
    )


# ---- cases and tools ---------------------------------------------------------------------------


def _by_case(runs: Iterable[PastRun]) -> dict[str, list[PastRun]]:
    cases: dict[str, list[PastRun]] = {}
    for run in runs:
        cases.setdefault(run.case, []).append(run)
    return cases


def _luck(runs: Iterable[PastRun]) -> Share:
    green = [run for run in runs if run.verdict in _GREEN]
    return Share(sum(run.verdict is VerdictLabel.LUCKY for run in green), len(green))


def _passes(runs: Iterable[PastRun]) -> Share:
    decided = [run for run in runs if run.verdict in _DECIDED]
    return Share(sum(run.verdict is VerdictLabel.PASS for run in decided), len(decided))


def _hard_findings(runs: Iterable[PastRun]) -> dict[str, PastFinding]:
    return {f.fingerprint: f for run in runs for f in run.findings if f.severity is Severity.HARD}


def _with_hard(runs: Sequence[PastRun]) -> Share:
    return Share(sum(any(f.severity is Severity.HARD for f in run.findings) for run in runs), len(runs))


def _case(case: str, before: Sequence[PastRun], after: Sequence[PastRun]) -> CaseChange:
    old, new = _hard_findings(before), _hard_findings(after)
    appeared = tuple(finding for key, finding in new.items() if key not in old)
    passes = difference(_passes(before), _passes(after))
    hard = difference(_with_hard(before), _with_hard(after))
    return CaseChange(
        case=case,
        state=_state(appeared, passes, hard),
        appeared=appeared,
        gone=tuple(finding for key, finding in old.items() if key not in new),
        passes=passes,
        hard=hard,
    )


def _state(appeared: Sequence[PastFinding], passes: Difference, hard: Difference) -> CaseState:
    """One hard violation fails a build, so one that appeared is worse, by however few runs; for everything else, and
    for all that looks better, chance has to be ruled out."""
    if appeared or passes.change is Change.LOWER or hard.change is Change.HIGHER:
        return CaseState.REGRESSED
    if passes.change is Change.HIGHER or hard.change is Change.LOWER:
        return CaseState.IMPROVED
    if Change.UNDECIDED in {passes.change, hard.change}:
        return CaseState.UNDECIDED
    return CaseState.UNCHANGED


def _tools(before: Sequence[PastRun], after: Sequence[PastRun]) -> Iterable[ToolDrift]:
    if not before or not after:
        return
    for tool in dict.fromkeys(tool for run in (*before, *after) for tool in run.tools):
        old, new = (Share(sum(tool in run.tools for run in runs), len(runs)) for runs in (before, after))
        change = difference(old, new)
        if change.change in {Change.HIGHER, Change.LOWER} or not old.hits or not new.hits:
            calls = tuple(sum(run.tools.count(tool) for run in runs) / len(runs) for runs in (before, after))
            yield ToolDrift(tool, change, (calls[0], calls[1]))


# ---- shares ------------------------------------------------------------------------------------


def newcombe(before: tuple[float, float], after: tuple[float, float]) -> Interval | None:
    """The 95 % interval of the share after less the share before, each as hits of a number; None if one is of none."""
    old, new = wilson(*before), wilson(*after)
    if old is None or new is None:
        return None
    one, two = before[0] / before[1], after[0] / after[1]
    low = two - one - sqrt((two - new[0]) ** 2 + (old[1] - one) ** 2)
    high = two - one + sqrt((new[1] - two) ** 2 + (one - old[0]) ** 2)
    return max(low, -1.0), min(high, 1.0)


def difference(before: Share, after: Share) -> Difference:
    """Whether the second share differs from the first, as far as that can be told."""
    interval = newcombe((before.hits, before.of), (after.hits, after.of))
    if interval is None:
        return Difference(before, after, Change.NO_DATA)
    if min(before.of, after.of) >= MIN_RUNS and interval[0] > 0:
        return Difference(before, after, Change.HIGHER, interval)
    if min(before.of, after.of) >= MIN_RUNS and interval[1] < 0:
        return Difference(before, after, Change.LOWER, interval)
    if before.hits * after.of == after.hits * before.of:
        return Difference(before, after, Change.SAME, interval)
    return Difference(before, after, Change.UNDECIDED, interval, _missing(before, after))


def _missing(before: Share, after: Share) -> tuple[int, int] | None:
    """How many more runs each side needs, if the shares stay what they are and both sides grow to one size."""
    one, two = before.hits / before.of, after.hits / after.of

    def tells(runs: int) -> bool:
        interval = newcombe((one * runs, runs), (two * runs, runs))
        return interval is not None and (interval[0] > 0 or interval[1] < 0)

    low, high = MIN_RUNS - 1, MIN_RUNS
    while not tells(high):
        low, high = high, high * 2
        if low > MAX_RUNS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle, high)
    missing = max(0, high - before.of), max(0, high - after.of)
    # With sides of different sizes the larger one may be past that number already, and the smaller one short of it.
    return missing if any(missing) else (1, 1)
