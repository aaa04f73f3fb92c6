"""What a report shows, whatever its format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from luckrate_otel.gate import Gate, case_id, gate
from luckrate_otel.luck import LuckRate, luck_rate
from luckrate_otel.model import Trajectory, Verdict, Violation
from luckrate_otel.telemetry import nothing

Run = tuple[Trajectory, Verdict]

# What a baseline knows: the case's label, "" for a run that is its own case, and the finding's fingerprint.
Known = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a clause of a spec is written. line: 1-based."""

    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Graded runs with the numbers and the decision they lead to.

    places: (spec version, clause) → where it is written; clause "" is the spec as a whole. known: findings of the
    baseline, which the gate left out.
    """

    runs: tuple[Run, ...]
    luck: LuckRate
    gate: Gate
    places: Mapping[tuple[str, str], Place] = field(default_factory=nothing)
    known: Known = frozenset()

    def findings(self) -> Iterator[tuple[Trajectory, Verdict, Violation]]:
        return ((run, verdict, violation) for run, verdict in self.runs for violation in verdict.violations)

    def is_known(self, run: Trajectory, verdict: Verdict, violation: Violation) -> bool:
        """Whether the baseline has this finding already."""
        return is_known(self.known, run, verdict, violation)

    def place(self, verdict: Verdict, clause: str) -> Place | None:
        """Where the clause, or the nearest part of the spec around it, is written."""
        version = verdict.spec_version or ""
        while (version, clause) not in self.places and clause:
            clause = clause[: max(clause.rfind("."), clause.rfind("["), 0)]
        return self.places.get((version, clause))


@dataclass(frozen=True, slots=True)
class GateOptions:
    """What the gate lets pass; see `gate`. known: findings that do not count, being accepted already."""

    allow_empty: bool = False
    allow_unjudged: bool = False
    max_luck_rate: float | None = None
    known: Known = frozenset()


def make_report(
    runs: Iterable[Run],
    options: GateOptions = GateOptions(),
    places: Mapping[tuple[str, str], Place] | None = None,
    reasons: Sequence[str] = (),
) -> Report:
    """Count and decide. reasons: why the gate fails besides what the verdicts say, one line each."""
    kept = tuple(runs)
    decision = gate(
        [_new_only(options.known, run, verdict) for run, verdict in kept],
        allow_empty=options.allow_empty,
        allow_unjudged=options.allow_unjudged,
        max_luck_rate=options.max_luck_rate,
        names={verdict.case: case_label(run, verdict) for run, verdict in kept},
    )
    if reasons:
        decision = Gate(failed=True, reasons=(*reasons, *decision.reasons))
    return Report(kept, luck_rate(verdict for _, verdict in kept), decision, places or {}, options.known)


def case_label(run: Trajectory, verdict: Verdict) -> str:
    """The case's name; where nobody named it, it is the task's own text, and a hash stands for that."""
    case = verdict.case
    return case if case in {run.case, run.run_id} else case_id(case)


def case_key(run: Trajectory, verdict: Verdict) -> str:
    """The case as a baseline knows it: run ids never come again."""
    return "" if verdict.case == run.run_id else case_label(run, verdict)


def is_known(known: Known, run: Trajectory, verdict: Verdict, violation: Violation) -> bool:
    return bool(known) and (case_key(run, verdict), violation.fingerprint) in known


def _new_only(known: Known, run: Trajectory, verdict: Verdict) -> Verdict:
    if not known:
        return verdict
    return replace(verdict, violations=tuple(v for v in verdict.violations if not is_known(known, run, verdict, v)))
