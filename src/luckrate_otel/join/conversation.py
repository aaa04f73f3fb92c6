"""Traces of one conversation: later ones repeat the messages of earlier ones, and each call counts once."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from luckrate_otel.conversation import Conversations
from luckrate_otel.model import Trajectory, Turn


def in_conversation(trajectories: Iterable[Trajectory]) -> tuple[Trajectory, ...]:
    """Runs by start, each knowing the earlier turns of its conversation and without their calls.

    A run's own messages tell its history first. Only steps that messages alone show can be such repeats: a
    call that has a span ran in this trace. For a closed set of runs, as files are; a service keeps its own store.
    """
    store = Conversations()
    seen: dict[str, set[str]] = {}
    done = []
    for run in sorted(trajectories, key=lambda t: (t.start_ns, t.run_id)):
        if not run.conversation_id:
            done.append(run)
            continue
        known = seen.setdefault(run.conversation_id, set())
        run = _without_repeats(run, known)  # noqa: PLW2901 - the same run, less what an earlier one has shown
        known.update(i for i in run.call_ids if i)
        service = str(run.attributes.get("service.name", ""))
        own = run.history
        if not (own.turns or own.steps):
            run = replace(run, history=store.history(service, run.conversation_id, run.start_ns))  # noqa: PLW2901
        store.remember(run, run.start_ns, service=service)
        done.append(run)
    return tuple(done)


def _without_repeats(run: Trajectory, known: Container[str]) -> Trajectory:
    kept = [
        n
        for n, step in enumerate(run.steps)
        if step.span is not None or n >= len(run.call_ids) or run.call_ids[n] is None or run.call_ids[n] not in known
    ]
    if len(kept) == len(run.steps):
        return run
    place = {n: i for i, n in enumerate(kept)}
    return replace(
        run,
        steps=tuple(run.steps[n] for n in kept),
        call_ids=tuple(run.call_ids[n] for n in kept),
        gaps={(place[n], name): gap for (n, name), gap in run.gaps.items() if n in place},
        turns=tuple(Turn(t.text, sum(1 for n in kept if n < t.before_step)) for t in run.turns),
    )
