"""How good a spec is: known-good runs that it fails, rules that never had a chance, and the mutants it catches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from luckrate_otel.check import check
from luckrate_otel.model import Trajectory, Verdict, VerdictLabel
from luckrate_otel.quality.mutants import KINDS, mutants
from luckrate_otel.spec import Spec

# Mutants judged at most, spread over all runs: a share to within 2 points, in a few seconds.
MAX_MUTANTS = 2000


@dataclass(frozen=True, slots=True)
class Share:
    """caught of made mutants."""

    caught: int
    made: int

    def __str__(self) -> str:
        return f"{self.caught} of {self.made} ({self.caught / self.made:.0%})" if self.made else "none made"


@dataclass(frozen=True, slots=True)
class Quality:
    """failing: known-good run → the rules it breaks. vacuous, unjudged: written rules that in no run had a chance to
    fire, or could be evaluated. mutants: by kind, of the runs that break nothing."""

    runs: int
    failing: Mapping[str, tuple[str, ...]]
    vacuous: tuple[str, ...]
    unjudged: tuple[str, ...]
    mutants: Mapping[str, Share]

    @property
    def score(self) -> Share:
        """Of all mutants. Some are good runs too (a needless look-up dropped), so that 100 % is not the aim."""
        return Share(sum(s.caught for s in self.mutants.values()), sum(s.made for s in self.mutants.values()))


def quality(spec: Spec, good: Sequence[Trajectory]) -> Quality:
    """Judge a spec by runs that are known to be good."""
    verdicts = [check(run, spec) for run in good]
    graded = [(run, verdict) for run, verdict in zip(good, verdicts, strict=True) if _was_graded(verdict)]
    clean = [run for run, verdict in graded if not verdict.violations]
    written = [rule.id for rule in spec.rules if spec.writes(rule)]
    return Quality(
        len(graded),
        {run.run_id or f"run {i}": _rules(verdict) for i, (run, verdict) in enumerate(graded) if verdict.violations},
        _everywhere(written, [set(verdict.vacuous) for _, verdict in graded]),
        _everywhere(written, [{missed.rule for missed in verdict.not_evaluated} for _, verdict in graded]),
        _caught(spec, clean),
    )


def _was_graded(verdict: Verdict) -> bool:
    return verdict.verdict is not VerdictLabel.NOT_GRADED


def _rules(verdict: Verdict) -> tuple[str, ...]:
    return tuple(dict.fromkeys(violation.rule for violation in verdict.violations))


def _everywhere(rules: Iterable[str], per_run: Sequence[set[str]]) -> tuple[str, ...]:
    return tuple(rule for rule in rules if per_run and all(rule in some for some in per_run))


def _caught(spec: Spec, runs: Sequence[Trajectory]) -> Mapping[str, Share]:
    """Every nth mutant, so that each run and kind has its share."""
    made: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    every = -(-sum(len(KINDS) * len(run.steps) for run in runs) // MAX_MUTANTS)
    every |= 1  # odd, so that it does not fall in step with the four kinds
    of_all = (mutant for run in runs for mutant in mutants(run))
    for number, mutant in enumerate(of_all):
        if number % every:
            continue
        made[mutant.kind] += 1
        caught[mutant.kind] += bool(check(mutant.trajectory, spec).violations)
    return {kind: Share(caught[kind], made[kind]) for kind in KINDS}
