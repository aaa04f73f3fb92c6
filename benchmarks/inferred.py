"""Measure `spec infer`: `python -m benchmarks.inferred FOLDER`.

FOLDER holds tau.jsonl.gz. Of each suite the runs that solved their task are cut into five; a spec is proposed from four
fifths and tried on the fifth, each in turn. Prints how many of the runs it was not made from it flags, by rule, and how
many mutants of the others it catches: the table of docs/spec.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.provenance.corpus import PLAIN, load
from luckrate_otel import check
from luckrate_otel.infer import proposed
from luckrate_otel.luck import wilson
from luckrate_otel.model import Trajectory
from luckrate_otel.quality import Share, quality
from luckrate_otel.quality.mutants import KINDS

FOLDS = 5


@dataclass
class Measured:
    """Over all folds: runs held out and those of them that were flagged, by what; mutants by kind."""

    runs: int = 0
    flagged: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    caught: Counter[str] = field(default_factory=Counter)


def measure(good: Sequence[Trajectory]) -> Measured:
    found = Measured()
    for fold in range(FOLDS):
        held_out = good[fold::FOLDS]
        spec = proposed([run for i, run in enumerate(good) if i % FOLDS != fold])
        for run in held_out:
            rules = {violation.rule for violation in check(run, spec).violations}
            found.runs += 1
            found.flagged += bool(rules)
            found.rules.update(rules)
        for kind, share in quality(spec, held_out).mutants.items():
            found.made[kind] += share.made
            found.caught[kind] += share.caught
    return found


def row(suite: str, found: Measured) -> str:
    interval = wilson(found.flagged, found.runs)
    assert interval is not None, suite
    alarms = f"{Share(found.flagged, found.runs)}, {interval[0]:.0%} to {interval[1]:.0%}"
    caught = " | ".join(str(Share(found.caught[kind], found.made[kind])) for kind in KINDS)
    every = Share(found.caught.total(), found.made.total())
    return f"| {suite} | {alarms} | {caught} | {every} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    good = [run for run in load(parser.parse_args().folder) if run.collection == PLAIN and run.good]
    print(f"| suite | flagged, 95 % interval | {' | '.join(KINDS)} | all |")
    for suite in sorted({run.suite for run in good}):
        found = measure([run.trajectory for run in good if run.suite == suite])
        print(row(suite, found))
        print(f"  flagged by {', '.join(f'{rule} {count}' for rule, count in sorted(found.rules.items()))}")


if __name__ == "__main__":
    main()
