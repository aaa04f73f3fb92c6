"""The graded part of the flow, on one screen. Every shell calls it: service, in-process processor, batch, tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from luckrate_otel.annotate import AT_ONCE, Annotations, SpanNote, annotate, annotate_early
from luckrate_otel.check import check, not_graded
from luckrate_otel.facts import ClosedRun, CloseReason, Facts
from luckrate_otel.join import join
from luckrate_otel.model import Trajectory, Verdict
from luckrate_otel.record import record, replace
from luckrate_otel.runs import fact_order
from luckrate_otel.spec import Spec, select

Place = Callable[[Trajectory], Trajectory]


@record(frozen=True, slots=True)
class Graded:
    """One judged run. spec: what graded it, None if none fits."""

    trajectory: Trajectory
    verdict: Verdict
    annotations: Annotations
    spec: Spec | None = None


def grade(run: ClosedRun, specs: Sequence[Spec], place: Place = lambda trajectory: trajectory) -> Graded:
    """Grade one closed run. Pure: no clock, no I/O, the same answer every time.

    place: gives the run what earlier traces of its conversation hold, see Conversations.
    """
    trajectory = place(join(run))  # span shapes become steps; unknown shapes stay visible
    spec = select(specs, trajectory)
    verdict = _judge(trajectory, spec)
    annotations = annotate(run, trajectory, verdict)  # what to write, and on which span
    return Graded(trajectory, verdict, annotations, spec)


def judge(trajectory: Trajectory, specs: Sequence[Spec], *, output_ok: bool | None = None) -> Verdict:
    """Grade one trajectory, wherever it came from, with the first spec whose match fits.

    output_ok: whether the output was right, where the caller has checked it.
    """
    return _judge(trajectory, select(specs, trajectory), output_ok=output_ok)


def _judge(trajectory: Trajectory, spec: Spec | None, *, output_ok: bool | None = None) -> Verdict:
    if spec is None:
        return not_graded(trajectory, "no_spec", output_ok=output_ok)
    return check(trajectory, spec, output_ok=output_ok)


def grade_early(facts: Sequence[Facts], specs: Sequence[Spec]) -> Mapping[str, SpanNote]:
    """What can be written on spans that leave before their run is judged, by span id."""
    run = ClosedRun(
        run_id="",
        trace_ids=tuple(dict.fromkeys(f.head.trace_id for f in facts)),
        facts=tuple(sorted(facts, key=fact_order)),
        close_reason=CloseReason.NO_ROOT,
    )
    trajectory = join(run)
    spec = select(specs, trajectory)
    if spec is None:
        return {}
    verdict = check(trajectory, spec)
    certain = replace(verdict, violations=tuple(v for v in verdict.violations if v.rule in AT_ONCE))
    return {note.span_id: note for note in annotate_early(run, trajectory, certain)}
