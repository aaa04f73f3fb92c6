"""The graded part of the flow, on one screen. Every shell calls it: service, in-process processor, batch, tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from luckrate_otel.annotate import Annotations, annotate
from luckrate_otel.check import check, not_graded
from luckrate_otel.facts import ClosedRun
from luckrate_otel.join import join
from luckrate_otel.model import History, Trajectory, Verdict
from luckrate_otel.spec import Spec, select


@dataclass(frozen=True, slots=True)
class Graded:
    """One judged run."""

    trajectory: Trajectory
    verdict: Verdict
    annotations: Annotations


def grade(run: ClosedRun, specs: Sequence[Spec], history: History | None = None) -> Graded:
    """Grade one closed run. Pure: no clock, no I/O, the same answer every time."""
    trajectory = join(run, history or History())  # span shapes become steps; unknown shapes stay visible
    spec = select(specs, trajectory)  # the first whose match fits
    verdict = check(trajectory, spec) if spec else not_graded(trajectory, "no_spec")
    return Graded(trajectory, verdict, annotate(run, trajectory, verdict))  # what to write, and on which span
