"""An n8n run seen twice: native spans tell ids and times, the stored execution arguments, results and the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from luckrate_otel.facts import Gap
from luckrate_otel.model import Coverage, Step, Trajectory
from luckrate_otel.payloads.n8n.calls import normal

_EXECUTION_ID = "n8n.execution.id"


def same_run(spans: Trajectory, payload: Trajectory) -> bool:
    """Whether both tell of the same execution: by trace id, and within a trace by execution or workflow span id.

    One trace may hold several executions, when a webhook was called with a `traceparent`.
    """
    if not set(spans.trace_ids) & set(payload.trace_ids):
        return False
    if spans.root is not None and spans.root in str(payload.attributes.get("n8n.traceparent")).split("-"):
        return True
    ids = spans.attributes.get(_EXECUTION_ID), payload.attributes.get(_EXECUTION_ID)
    return None in ids or str(ids[0]) == str(ids[1])


def merge_with_spans(spans: Trajectory, payload: Trajectory) -> Trajectory:
    """One trajectory: the payload's calls in its order, each with the span id, time and duration of its span.

    Calls that only one side has are kept: a payload that was saved without data, a sub-workflow whose execution is not
    at hand, spans that were sampled away. What the payload does not know (a failed call of the Agents feature looks
    like any other) the spans may. Trajectories of different runs: the one from spans comes back unchanged.
    """
    if not same_run(spans, payload):
        return spans
    partners = _partners(spans, payload)
    merged = [_merged(spans, payload, partners.get(i), i) for i in range(len(payload.steps))]
    for j, step in enumerate(spans.steps):
        if j not in partners.values():
            place = next((i for i, (other, _, _) in enumerate(merged) if other.t > step.t), len(merged))
            merged.insert(place, (step, j, None))
    times = list(accumulate(reversed([step.t for step, _, _ in merged]), min))[::-1]
    steps = tuple(replace(step, t=max(t, 0.0)) for (step, _, _), t in zip(merged, times, strict=True))
    return replace(
        spans,
        steps=steps,
        turns=payload.turns or spans.turns,
        history=payload.history if payload.history.turns else spans.history,
        system=payload.system or spans.system,
        final_output=payload.final_output if payload.final_output is not None else spans.final_output,
        conversation_id=spans.conversation_id or payload.conversation_id,
        adapters=tuple(dict.fromkeys((*spans.adapters, *payload.adapters))),
        agent=payload.agent or spans.agent,
        coverage=_coverage(spans.coverage, payload.coverage),
        gaps=_gaps(spans, payload, steps, [(j, i) for _, j, i in merged]),
        definitions=spans.definitions or payload.definitions,
        call_ids=tuple(_call_id(payload, i) or _call_id(spans, j) for _, j, i in merged),
        tokens=spans.tokens if spans.tokens is not None else payload.tokens,
        has_agent=spans.has_agent or payload.has_agent,
        attributes={**payload.attributes, **spans.attributes},
    )


def _partners(spans: Trajectory, payload: Trajectory) -> dict[int, int]:
    """Index of a payload step → index of its span step.

    By tool name; as many on both sides: in order, else the nearest start. What then is left (a toolkit's node has
    another name than its tools) goes by start alone, to the millisecond n8n takes for both.
    """
    found: dict[int, int] = {}
    for name in dict.fromkeys(normal(step.tool) for step in payload.steps):
        ours = [i for i, step in enumerate(payload.steps) if normal(step.tool) == name]
        theirs = [j for j, step in enumerate(spans.steps) if normal(step.tool) == name]
        if len(ours) == len(theirs):
            found.update(zip(ours, theirs, strict=True))
        else:
            _nearest(spans, payload, (ours, theirs), found, float("inf"))
    left = [i for i in range(len(payload.steps)) if i not in found]
    free = [j for j in range(len(spans.steps)) if j not in found.values()]
    _nearest(spans, payload, (left, free), found, 2.0)
    return found


def _nearest(
    spans: Trajectory,
    payload: Trajectory,
    candidates: tuple[Sequence[int], Sequence[int]],
    found: dict[int, int],
    within_ms: float,
) -> None:
    ours, theirs = candidates
    pairs = sorted((abs(_late(spans, payload, i, j)), i, j) for i in ours for j in theirs)
    for distance, i, j in pairs:
        if distance <= within_ms and i not in found and j not in found.values():
            found[i] = j


def _late(spans: Trajectory, payload: Trajectory, i: int, j: int) -> float:
    return _on_span_clock(spans, payload, payload.steps[i].t) - spans.steps[j].t


def _on_span_clock(spans: Trajectory, payload: Trajectory, t: float) -> float:
    return t + (payload.start_ns - spans.start_ns) / 1e6


def _merged(
    spans: Trajectory, payload: Trajectory, partner: int | None, index: int
) -> tuple[Step, int | None, int | None]:
    """(step, index among the spans' steps, index among the payload's)."""
    told = payload.steps[index]
    if partner is None:
        return replace(told, t=_on_span_clock(spans, payload, told.t)), None, index
    seen = spans.steps[partner]
    ok = told.ok if told.ok is not None else seen.ok
    own = told.error if ok is told.ok else None
    error = own or seen.error or told.error
    step = replace(
        told,
        args=told.args if told.args is not None else seen.args,
        ok=ok,
        result=told.result if told.result is not None else seen.result,
        error=None if ok else error,
        t=seen.t,
        agent=told.agent if told.agent != "main" else seen.agent,
        duration=seen.duration if seen.duration is not None else told.duration,
        span=seen.span,
    )
    return step, partner, index


def _gaps(
    spans: Trajectory,
    payload: Trajectory,
    steps: Sequence[Step],
    origins: Sequence[tuple[int | None, int | None]],
) -> Mapping[tuple[int, str], Gap]:
    """Reasons of what is still missing; the payload's first, as it is the one that should have known."""
    found: dict[tuple[int, str], Gap] = {}
    for index, (step, (j, i)) in enumerate(zip(steps, origins, strict=True)):
        for name, value in (("args", step.args), ("result", step.result), ("ok", step.ok)):
            if value is None:
                theirs = spans.gaps.get((j, name)) if j is not None else None
                ours = payload.gaps.get((i, name)) if i is not None else None
                found[index, name] = ours or theirs or Gap.NOT_CAPTURED
        unknown = spans.gaps.get((j, "agent")) if j is not None else None
        if unknown is not None and step.agent == "main":
            found[index, "agent"] = unknown
    return found


def _coverage(a: Coverage, b: Coverage) -> Coverage:
    return Coverage(
        tools=a.tools or b.tools,
        args=a.args or b.args,
        results=a.results or b.results,
        task_input=a.task_input or b.task_input,
        final_output=a.final_output or b.final_output,
    )


def _call_id(trajectory: Trajectory, index: int | None) -> str | None:
    return trajectory.call_ids[index] if index is not None and index < len(trajectory.call_ids) else None
