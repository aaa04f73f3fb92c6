"""Chat messages → the run they tell of, each call with its answer. Shared by every reader of messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from luckrate_otel.facts import NO_RETURN, Call, Gap, Message, Response, Text, ToolDefinition
from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.payloads.coverage import covered


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


def retold(
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
    calls = _Calls()
    turns: list[Turn] = []
    system: list[str] = []
    final: str | None = None
    for each in _once(said):
        role, parts = each.message.role, each.message.parts
        words = "\n".join(part.content for part in parts if isinstance(part, Text))
        if role == "system" and words:
            system.append(words)
        elif role == "user" and words:
            turns.append(Turn(words, before_step=len(calls.issued)))
            final = None
        elif role == "assistant":
            final = None if any(isinstance(part, Call) for part in parts) else words or final
        calls.hear(each)
    steps = tuple(map(_step, calls.issued))
    return Trajectory(
        steps=steps,
        turns=tuple(turns),
        system=tuple(dict.fromkeys(system)),
        final_output=final,
        run_id=_run_id(steps, turns),
        conversation_id=conversation_id,
        adapters=(adapter,),
        agent=next((each.agent for each in calls.issued if each.agent), None),
        coverage=covered(steps, task_input=bool(turns), final_output=final is not None),
        gaps={key: gap for index, each in enumerate(calls.issued) for key, gap in _gaps(index, each)},
        definitions=tuple(definitions),
        call_ids=tuple(each.call.call_id for each in calls.issued),
    )


def _once(said: Iterable[Said]) -> Iterable[Said]:
    seen: set[str] = set()
    for each in said:
        if each.key is None or each.key not in seen:
            yield each
        if each.key is not None:
            seen.add(each.key)


@dataclass(slots=True)
class _Calls:
    """The calls heard of so far, in order. places: call id → the calls that have it, by index."""

    issued: list[_Issued] = field(default_factory=list)
    places: dict[str, list[int]] = field(default_factory=dict)

    def hear(self, said: Said) -> None:
        for part in said.message.parts:
            if isinstance(part, Call):
                self._issue(part, said.agent)
            elif isinstance(part, Response):
                self._answer(part)

    def _issue(self, call: Call, agent: str | None) -> None:
        same_id = self.places.setdefault(call.call_id, []) if call.call_id is not None else []
        if any((self.issued[i].call.tool, self.issued[i].call.args) == (call.tool, call.args) for i in same_id):
            return
        same_id.append(len(self.issued))
        self.issued.append(_Issued(call, agent))

    def _answer(self, answer: Response) -> None:
        """Give an answer to its call; one whose call was cut from the messages proves that there was a call."""
        place = self._place_of(answer)
        if place is not None:
            self.issued[place] = replace(self.issued[place], answer=self.issued[place].answer or answer)
        elif answer.tool:
            if answer.call_id is not None:
                self.places.setdefault(answer.call_id, []).append(len(self.issued))
            self.issued.append(_Issued(Call(answer.tool, None, answer.call_id, Gap.NOT_CAPTURED), None, answer))

    def _place_of(self, answer: Response) -> int | None:
        if answer.call_id is not None:
            # latest first: some servers number their calls anew in each turn
            return next(reversed(self.places.get(answer.call_id, ())), None)
        fits = (
            i for i, each in enumerate(self.issued) if each.answer is None and answer.tool in {None, each.call.tool}
        )
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
