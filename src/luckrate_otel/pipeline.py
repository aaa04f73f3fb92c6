"""The graded part of the flow, on one screen. Every shell calls it: service, in-process processor, batch, tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from luckrate_otel.annotate import Annotations, SpanNote, annotate
from luckrate_otel.check import check, not_graded
from luckrate_otel.facts import ClosedRun, CloseReason, Facts
from luckrate_otel.join import join
from luckrate_otel.model import History, Trajectory, Verdict
from luckrate_otel.runs import fact_order
from luckrate_otel.spec import Spec, select

# Rules that need nothing but the call itself, so that they hold whatever the rest of the run brings.
AT_ONCE: Final = frozenset({"forbidden", "unknown_tool"})

Recall = Callable[[Trajectory], History]


@dataclass(frozen=True, slots=True)
class Graded:
    """One judged run."""

    trajectory: Trajectory
    verdict: Verdict
    annotations: Annotations


def grade(run: ClosedRun, specs: Sequence[Spec], recall: Recall | None = None) -> Graded:
    """Grade one closed run. Pure: no clock, no I/O, the same answer every time.

    recall: what earlier traces of the run's conversation hold.
    """
    trajectory, verdict = judge(join(run), specs, recall)  # span shapes become steps; unknown shapes stay visible
    return Graded(trajectory, verdict, annotate(run, trajectory, verdict))  # what to write, and on which span


def judge(
    trajectory: Trajectory, specs: Sequence[Spec], recall: Recall | None = None, *, output_ok: bool | None = None
) -> tuple[Trajectory, Verdict]:
    """Grade one trajectory, wherever it came from; it is given back with its conversation's history.

    output_ok: whether the output was right, where the caller has checked it.
    """
    trajectory = _with_history(trajectory, recall)
    spec = select(specs, trajectory)  # the first whose match fits
    if spec is None:
        return trajectory, not_graded(trajectory, "no_spec", output_ok=output_ok)
    return trajectory, check(trajectory, spec, output_ok=output_ok)


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
    return {note.span_id: note for note in annotate(run, trajectory, certain).spans}


def _with_history(trajectory: Trajectory, recall: Recall | None) -> Trajectory:
    """History that the run's own messages repeat comes first: it is what the model really saw."""
    own = trajectory.history
    if recall is None or not trajectory.conversation_id or own.turns or own.steps:
        return trajectory
    return replace(trajectory, history=recall(trajectory))
