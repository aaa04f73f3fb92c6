"""The gate: whether a build passes, over all runs of all cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from luckrate_otel.luck import luck_rate
from luckrate_otel.model import Severity, Verdict, VerdictLabel
from luckrate_otel.plural import plural
from luckrate_otel.telemetry import NOTHING


@dataclass(frozen=True, slots=True)
class Gate:
    """The decision. reasons: one line each, beginning with `no_runs`, `not_judged`, `hard`, `soft` or `luck_rate`.

    Cases are named by a hash, as a case may be the text of a user's task, unless the caller knows a name for them.
    """

    failed: bool
    reasons: tuple[str, ...] = ()


def gate(
    verdicts: Iterable[Verdict],
    *,
    allow_empty: bool = False,
    allow_unjudged: bool = False,
    max_luck_rate: float | None = None,
    names: Mapping[str, str] = NOTHING,
) -> Gate:
    """Fail on a hard violation in any run, and on soft violations in most runs of a case. Warnings never fail.

    Nothing judged is not a pass either: no runs at all, and a hard rule that could be judged in no run, fail unless
    allowed. max_luck_rate: 0 to 1, compared with the lower end of the interval, so that few runs do not fail by chance.
    names: case → what reasons call it.
    """
    runs = tuple(verdicts)
    reasons = [*_hard(runs), *_soft(runs, names)]
    if not runs and not allow_empty:
        reasons.append("no_runs: nothing to judge")
    if not allow_unjudged:
        reasons += _not_judged(runs)
    if max_luck_rate is not None:
        reasons += _too_lucky(runs, max_luck_rate)
    return Gate(bool(reasons), tuple(reasons))


def case_id(case: str) -> str:
    """A name for a case that does not tell its text; 8 hex digits."""
    return sha256(case.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _hard(runs: Sequence[Verdict]) -> Iterator[str]:
    counts = Counter(v.rule for run in runs for v in run.violations if v.severity is Severity.HARD)
    if counts:
        hit = sum(any(v.severity is Severity.HARD for v in run.violations) for run in runs)
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(counts.items()))
        yield f"hard: {plural(counts.total(), 'violation')} in {hit} of {plural(len(runs), 'run')} ({rules})"


def _soft(runs: Sequence[Verdict], names: Mapping[str, str]) -> Iterator[str]:
    """Per case. A run that was not graded has no say in what most runs do."""
    cases: dict[str, list[bool]] = {}
    for run in runs:
        if run.verdict is not VerdictLabel.NOT_GRADED:
            soft = any(v.severity is Severity.SOFT for v in run.violations)
            cases.setdefault(run.case, []).append(soft)
    for case, flags in cases.items():
        if sum(flags) * 2 > len(flags):
            name = names.get(case) or case_id(case)
            yield f"soft: violations in {sum(flags)} of {plural(len(flags), 'run')} of case {name}"


def _not_judged(runs: Sequence[Verdict]) -> Iterator[str]:
    graded = [run for run in runs if run.verdict is not VerdictLabel.NOT_GRADED]
    if runs and not graded:
        reasons = Counter(run.reason or "not graded" for run in runs)
        why = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
        yield f"not_judged: no run was graded ({why})"
    by_spec: dict[tuple[str | None, str | None], list[Verdict]] = {}
    for run in graded:
        by_spec.setdefault((run.spec, run.spec_version), []).append(run)
    for (spec, _), its_runs in by_spec.items():
        yield from (
            f"not_judged: {rule} was evaluated in none of {plural(len(its_runs), 'run')} of spec {spec} ({why})"
            for rule, why in _unjudged_rules(its_runs)
        )


def _unjudged_rules(runs: Sequence[Verdict]) -> Iterator[tuple[str, str]]:
    """Hard rules that no run of one spec could judge, each with the reasons."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for missed in run.not_evaluated:
            if missed.severity is Severity.HARD:
                reasons.setdefault(missed.rule, []).append(missed.reason)
    for rule, whys in reasons.items():
        if len(whys) == len(runs):
            yield rule, ", ".join(sorted(set(whys)))


def _too_lucky(runs: Sequence[Verdict], limit: float) -> Iterator[str]:
    rate = luck_rate(runs)
    if rate.interval is not None and rate.interval[0] > limit:
        low, green = f"{rate.interval[0]:.0%}", plural(rate.green, "green run")
        yield f"luck_rate: at least {low}, {limit:.0%} allowed ({rate.lucky} lucky of {green})"
