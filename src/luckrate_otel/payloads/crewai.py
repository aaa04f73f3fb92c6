"""CrewAI events, as recorded from its event bus → trajectory, without importing it.

Live event objects or their JSON. Written against crewai 1.15 (`crewai.events.types`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from luckrate_otel.facts import NO_RETURN, CloseReason, Gap
from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.payloads.coverage import covered
from luckrate_otel.payloads.fields import (
    arguments,
    first,
    get,
    items,
    mapping,
    moment_ms,
    nanoseconds,
    number,
    output,
    render,
    word,
)
from luckrate_otel.telemetry import Status, Value

ADAPTER = "crewai-events"

_STARTED = "tool_usage_started"
_FINISHED = "tool_usage_finished"
# A call that a model made and that never reached its tool; in a newer crewai no start precedes them.
_REFUSED = frozenset({"tool_selection_error", "tool_validate_input_error"})
_ERRORS = frozenset({"tool_usage_error", "tool_execution_error"}) | _REFUSED
_NOTED = "tool_failure_detected"  # says once more what the finished event's `failure` says
_TOOL_EVENTS = _ERRORS | {_STARTED, _FINISHED, _NOTED}
_PREFIXES = ("tool_", "crew_", "task_", "agent_", "llm_", "flow_", "memory_", "method_", "lite_agent_", "knowledge_")
_KICKOFF_DONE = {"crew_kickoff_completed": Status.OK, "crew_kickoff_failed": Status.ERROR}


@dataclass(frozen=True, slots=True)
class _Use:
    """One use of a tool. started, ended: its events; either may be missing. place: index of its first event."""

    place: int
    started: Any = None
    ended: Any = None

    @property
    def either(self) -> Any:
        return self.ended if self.started is None else self.started


def read(value: Any) -> tuple[Trajectory, ...] | None:
    """One trajectory from a list of events; None when it is none, or something else is among them."""
    events = items(value)
    if not events or not all(_is_event(event) for event in events):
        return None
    return (from_crewai(events),)


def from_crewai(events: Any) -> Trajectory:
    """The run that events tell of; events that say nothing of tools, tasks or the crew are passed over.

    A call stands where it was started, by time. One without start is placed by its `started_at`; one without end never
    returned. An attempt that CrewAI itself repeats is a call of its own, as each has its own events.
    """
    listed = items(events)
    uses, starts = _in_order(_uses(listed))
    every = [moment for event in listed if (moment := moment_ms(get(event, "timestamp"))) is not None]
    stamped = all(use.started is not None for use in uses)
    base = min(every if stamped and every else [start for start in starts if start is not None], default=0.0)
    steps = tuple(_step(use, start, base) for use, start in zip(uses, starts, strict=True))
    task, final = _task(listed), _final(listed)
    done = [event for event in listed if word(get(event, "type")) in _KICKOFF_DONE]
    tokens = first(number(get(event, "total_tokens")) for event in done)
    began = any(get(event, "type") == "crew_kickoff_started" for event in listed)
    return Trajectory(
        steps=steps,
        turns=(Turn(task),) if task else (),
        system=tuple(dict.fromkeys(text for event in listed for text in _instructions(event))),
        final_output=final,
        run_id=f"crewai:{_identity(listed, base)}",
        adapters=(ADAPTER,),
        agent=first([_agent(listed[0]) if listed else None, *map(_agent, listed)]),
        close_reason=CloseReason.NO_ROOT if began and not done else CloseReason.END_OF_INPUT,
        coverage=covered(
            steps, task_input=task is not None, final_output=final is not None, tools=_shows_tools(listed)
        ),
        gaps={key: gap for index, use in enumerate(uses) for key, gap in _gaps(index, use, steps[index])},
        root_status=_KICKOFF_DONE[get(done[-1], "type")] if done else Status.UNSET,
        start_ns=nanoseconds(base),
        duration=max(every) - base if done and every else None,
        tokens=int(tokens) if tokens else None,  # 0 is the field's default
    )


def _is_event(event: Any) -> bool:
    kind = word(get(event, "type"))
    if kind is None or not kind.startswith(_PREFIXES):
        return False
    return kind in _TOOL_EVENTS or get(event, "timestamp") is not None or get(event, "event_id") is not None


# ---- pairing -------------------------------------------------------------------------------------


def _uses(events: Sequence[Any]) -> list[_Use]:
    uses: list[_Use] = []
    seen: set[str] = set()
    for place, event in enumerate(events):
        kind, event_id = word(get(event, "type")), word(get(event, "event_id"))
        if kind not in _TOOL_EVENTS or kind == _NOTED or event_id in seen:
            continue  # two listeners may have recorded the same event
        seen |= {event_id} if event_id else set()
        if kind == _STARTED:
            uses.append(_Use(place, started=event))
        else:
            _end(uses, place, event)
    return uses


def _end(uses: list[_Use], place: int, event: Any) -> None:
    """Give an end to the start it names, else to the oldest open one of the same tool, arguments and agent."""
    named, wanted = word(get(event, "started_event_id")), _signature(event)
    open_uses = [i for i, use in enumerate(uses) if use.ended is None]
    ids = [i for i in open_uses if named and get(uses[i].started, "event_id") == named]
    ids = [i for i in ids if get(uses[i].started, "tool_name") == get(event, "tool_name")]
    alike = [i for i in open_uses if _signature(uses[i].started) == wanted]
    found = next(iter(ids or alike), None)
    if found is not None:
        uses[found] = replace(uses[found], ended=event)
    elif word(get(event, "tool_name")):
        uses.append(_Use(place, ended=event))


def _signature(event: Any) -> tuple[str | None, Value, str | None]:
    return word(get(event, "tool_name")), _args(event)[0], _agent(event)


def _in_order(uses: list[_Use]) -> tuple[list[_Use], list[float | None]]:
    """Uses by start time, with their starts, if every use has one; else as recorded.

    One source of times for all: `timestamp` is UTC, `started_at` naive local time, and list places are no times at all.
    """
    for event, name in (("started", "timestamp"), ("ended", "started_at"), ("either", "timestamp")):
        starts = [moment_ms(get(use, event, name)) for use in uses]
        if None not in starts:
            timed = sorted(zip(starts, uses, strict=True), key=lambda pair: (pair[0] or 0.0, pair[1].place))
            return [use for _, use in timed], [start for start, _ in timed]
    return sorted(uses, key=lambda use: use.place), [None] * len(uses)


# ---- one use -------------------------------------------------------------------------------------


def _step(use: _Use, start: float | None, base: float) -> Step:
    ok, error = _outcome(use.ended)
    return Step(
        tool=word(get(use.either, "tool_name")) or "",
        args=_args(use.either)[0],
        ok=ok,
        result=_result(use.ended),
        t=max(start - base, 0.0) if start is not None else 0.0,
        agent=_agent(use.either) or "main",
        error=error,
        duration=_duration(use),
    )


def _agent(event: Any) -> str | None:
    return first((word(get(event, "agent_role")), word(get(event, "agent", "role"))))


def _args(event: Any) -> tuple[Mapping[str, Value] | None, Gap | None]:
    given = get(event, "tool_args")
    args, gap = arguments(given)
    if gap is Gap.NOT_CAPTURED and isinstance(given, str) and not given.lstrip().startswith(("{", "[")):
        return {"input": given}, None  # a tool that takes a bare string
    return args, gap


def _outcome(ended: Any) -> tuple[bool | None, str | None]:
    """A tool fails in two ways: it raised, or it returned and reported a failure."""
    if ended is None:
        return None, NO_RETURN
    failure = get(ended, "failure")
    if word(get(ended, "type")) in _ERRORS:
        return False, _words(get(ended, "error")) or "error"
    if failure is not None and failure is not False:
        return False, word(get(failure, "message")) or _words(failure) or "failure"
    return True, None


def _words(value: Any) -> str | None:
    """An error as text: exceptions are live objects, in JSON they are texts."""
    return str(value) if isinstance(value, BaseException) else render(value)[0]


def _result(ended: Any) -> str | None:
    given = get(ended, "output")
    return _words(get(ended, "error")) if given is None else output(get(given, "raw")) or output(given)


def _duration(use: _Use) -> float | None:
    """From one clock: both ends of the finished event, or the time stamps of both events."""
    own = (moment_ms(get(use.ended, "started_at")), moment_ms(get(use.ended, "finished_at")))
    stamps = (moment_ms(get(use.started, "timestamp")), moment_ms(get(use.ended, "timestamp")))
    return first(b - a for a, b in (own, stamps) if a is not None and b is not None and b >= a)


def _gaps(index: int, use: _Use, step: Step) -> Iterator[tuple[tuple[int, str], Gap]]:
    if step.args is None:
        yield (index, "args"), _args(use.either)[1] or Gap.NOT_CAPTURED
    if step.result is None:
        yield (index, "result"), Gap.INCOMPLETE if use.ended is None else Gap.NOT_CAPTURED
    if step.ok is None:
        yield (index, "ok"), Gap.INCOMPLETE


# ---- the crew ------------------------------------------------------------------------------------


def _task(events: Sequence[Any]) -> str | None:
    """What the user gave to the crew: the inputs of the outermost kickoff, else its first task's description."""
    for event in events:
        if get(event, "type") == "crew_kickoff_started":
            given = [text for value in mapping(get(event, "inputs")).values() if (text := render(value)[0])]
            if given:
                return "\n".join(given)
            break
    return next((text for event in events for text in _instructions(event)), None)


def _instructions(event: Any) -> Iterator[str]:
    """Task descriptions: what the crew's author wrote. A task without name is named by its description."""
    if get(event, "type") == "task_started":
        text = first((word(get(event, "task", "description")), word(get(event, "task_name"))))
        if text:
            yield text


def _final(events: Sequence[Any]) -> str | None:
    """The outermost crew's output, which is the last to complete; else the last task's."""
    for kind in ("crew_kickoff_completed", "task_completed"):
        ended = [event for event in events if get(event, "type") == kind]
        if ended:
            given = get(ended[-1], "output")
            raw = get(given, "raw")
            return output(given if raw is None else raw)
    return None


def _identity(events: Sequence[Any], base: float) -> str:
    """The kickoff's event id, else the first moment."""
    started = next((event for event in events if get(event, "type") == "crew_kickoff_started"), None)
    return word(get(started, "event_id")) or f"started-{base:.0f}"


def _shows_tools(events: Sequence[Any]) -> bool:
    """Listeners choose what they record: without any event of a tool, nothing says that none was called."""
    return any(
        word(get(event, "type")) in _TOOL_EVENTS or word(get(event, "type")) in _KICKOFF_DONE for event in events
    )
