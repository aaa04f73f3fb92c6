"""Chat messages → trajectory: each call paired with its answer. Shared by every reader of messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from luckrate_otel.facts import NO_RETURN, Call, Gap, Message, Response, Text, ToolDefinition
from luckrate_otel.model import Coverage, Step, Trajectory, Turn


@dataclass(frozen=True, slots=True)
class Said:
    """A message with who said it. key: the message's own id, equal for the same message repeated."""

    message: Message
    agent: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class _Issued:
    """A call and where it was issued; answer None: nothing came back."""

    call: Call
    agent: str | None
    answer: Response | None = None


def pair(
    said: Iterable[Said],
    adapter: str,
    *,
    conversation_id: str | None = None,
    definitions: Sequence[ToolDefinition] = (),
) -> Trajectory:
    """The run a list of messages tells of. A step stands where its call was made, wherever its answer is.

    A message, call or answer that history repeats counts once: same message id, or same call id, tool and arguments.
    Calls without id are answered in order. Messages carry no times, so every t is 0.
    """
    issued: list[_Issued] = []
    places: dict[str, list[int]] = {}  # call id → the calls that have it, by index
    turns: list[Turn] = []
    system: list[str] = []
    final: str | None = None
    for each in _once(said):
        words = "\n".join(part.content for part in each.message.parts if isinstance(part, Text))
        calls = [part for part in each.message.parts if isinstance(part, Call)]
        if each.message.role == "system" and words:
            system.append(words)
        elif each.message.role == "user" and words:
            turns.append(Turn(words, before_step=len(issued)))
            final = None
        elif each.message.role == "assistant":
            final = None if calls else words or final
        for part in each.message.parts:
            if isinstance(part, Call):
                _issue(issued, places, part, each.agent)
            elif isinstance(part, Response):
                _answer(issued, places, part)
    steps = tuple(map(_step, issued))
    return Trajectory(
        steps=steps,
        turns=tuple(turns),
        system=tuple(dict.fromkeys(system)),
        final_output=final,
        run_id=_run_id(steps, turns),
        conversation_id=conversation_id,
        adapters=(adapter,),
        agent=next((each.agent for each in issued if each.agent), None),
        coverage=Coverage(
            args=not steps or any(step.args is not None for step in steps),
            results=not steps or any(step.result is not None for step in steps),
            task_input=bool(turns),
            final_output=final is not None,
        ),
        gaps={key: gap for index, each in enumerate(issued) for key, gap in _gaps(index, each)},
        definitions=tuple(definitions),
        call_ids=tuple(each.call.call_id for each in issued),
    )


def _once(said: Iterable[Said]) -> Iterable[Said]:
    seen: set[str] = set()
    for each in said:
        if each.key is None or each.key not in seen:
            yield each
        if each.key is not None:
            seen.add(each.key)


def _issue(issued: list[_Issued], places: dict[str, list[int]], call: Call, agent: str | None) -> None:
    same_id = places.setdefault(call.call_id, []) if call.call_id is not None else []
    if any((issued[i].call.tool, issued[i].call.args) == (call.tool, call.args) for i in same_id):
        return
    same_id.append(len(issued))
    issued.append(_Issued(call, agent))


def _answer(issued: list[_Issued], places: dict[str, list[int]], answer: Response) -> None:
    """Give an answer to its call; one whose call was cut from the messages proves that there was a call."""
    place = _answered(issued, places, answer)
    if place is not None:
        issued[place] = replace(issued[place], answer=issued[place].answer or answer)
    elif answer.tool:
        if answer.call_id is not None:
            places.setdefault(answer.call_id, []).append(len(issued))
        issued.append(_Issued(Call(answer.tool, None, answer.call_id, Gap.NOT_CAPTURED), None, answer))


def _answered(issued: Sequence[_Issued], places: Mapping[str, Sequence[int]], answer: Response) -> int | None:
    if answer.call_id is not None:
        # latest first: some servers number their calls anew in each turn
        return next(reversed(places.get(answer.call_id, ())), None)
    fits = (i for i, each in enumerate(issued) if each.answer is None and answer.tool in {None, each.call.tool})
    return next(fits, None)


def _step(each: _Issued) -> Step:
    answer = each.answer
    ok = answer.ok if answer else None
    error = NO_RETURN if answer is None else (answer.result or "error") if ok is False else None
    return Step(
        tool=each.call.tool,
        args=each.call.args,
        ok=ok,
        result=answer.result if answer else None,
        agent=each.agent or "main",
        error=error,
    )


def _gaps(index: int, each: _Issued) -> Iterable[tuple[tuple[int, str], Gap]]:
    if each.call.args is None:
        yield (index, "args"), each.call.gap or Gap.NOT_CAPTURED
    if each.answer is None or each.answer.result is None:
        yield (index, "result"), Gap.NOT_CAPTURED if each.answer else Gap.INCOMPLETE
    if each.answer is None or each.answer.ok is None:
        yield (index, "ok"), Gap.NOT_CAPTURED if each.answer else Gap.INCOMPLETE


def _run_id(steps: Sequence[Step], turns: Sequence[Turn]) -> str:
    """Messages have no id of their own: their content tells runs apart, the same each time."""
    return f"messages:{sha256(repr((steps, turns)).encode(errors='replace')).hexdigest()[:16]}"
