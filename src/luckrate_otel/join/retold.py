"""Tool calls that only the history of a later model call tells of.

Either the output of the model call that asked for them was not captured, or its span never came: a full queue or a
process that died took it. Each such call counts once, however many inputs repeat it, and in its own place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from luckrate_otel.content.messages import calls_in
from luckrate_otel.facts import Call, Message, Response
from luckrate_otel.join.history import split_history
from luckrate_otel.join.issue import Issue, Key, key_of
from luckrate_otel.join.model_calls import ModelCall, Scope, is_last
from luckrate_otel.record import replace


def with_retold(
    asked: Iterable[tuple[ModelCall, list[Issue]]],
    ends: Mapping[Scope, ModelCall],
    heard: AbstractSet[Scope],
    *,
    whole: bool,
) -> list[Issue]:
    """All issues of a run's model calls, in the order in which they were asked for.

    asked: by start, each model call with what its output asks for. ends: the last call of each conversation. heard:
    the conversations of which any input is shown. whole: nothing but messages tells of calls in this run, so what a
    first input already holds of the present turn counts too.
    """
    models = list(asked)
    reading = _Reading([i for _, own in models for i in own], ends, heard, whole=whole)
    return [issue for model, own in models for issue in reading.of(model, own)]


class _Reading:
    """What was told so far, model call by model call."""

    def __init__(
        self, known: Iterable[Issue], ends: Mapping[Scope, ModelCall], heard: AbstractSet[Scope], *, whole: bool
    ) -> None:
        self._ends, self._heard, self._whole = ends, heard, whole
        # An id that is asked for once is one call's, whichever was read first, as the clocks of two conversations may
        # differ. Else only those calls count that were asked for before: a repeat to come is not what an input lists.
        keys = Counter([key_of(i.call) for i in known if i.call.call_id])
        self._once = {key for key, n in keys.items() if n == 1}
        self._counts = Counter(self._once)
        self._coming = {(i.scope, key) for i in known if (key := key_of(i.call)) in self._once}
        self._old: Counter[Key] = Counter()  # made before this run
        self._earlier: dict[Scope, ModelCall] = {}
        self._since: dict[Scope, int] = {}  # start of the last model call whose inputs are shown

    def of(self, model: ModelCall, own: list[Issue]) -> list[Issue]:
        """What this model call's inputs tell and nothing did before, then its own."""
        found = list(self._retold(model)) if calls_in(model.fact.inputs) else []
        self._earlier[model.scope] = model
        if model.fact.inputs:
            self._since[model.scope] = model.start_ns
        keys = [key_of(i.call) for i in own]
        self._counts.update([key for key in keys if key not in self._once])
        self._coming.difference_update([(model.scope, key) for key in keys])
        return [*found, *own] if found else own

    def _known(self, scope: Scope, key: Key) -> int:
        """How many such calls had been asked for when this conversation's present model call began."""
        return self._counts[key] - ((scope, key) in self._coming)

    def _retold(self, model: ModelCall) -> Iterator[Issue]:
        before = self._earlier.get(model.scope)
        if self._since.get(model.scope):
            return self._new(model, before, (), model.fact.inputs)
        past, present = split_history(model.fact.inputs)
        # What a conversation starts with happened before this run; what the present turn holds too, unless calls of a
        # model came before this one whose inputs are not shown.
        if self._whole or before is not None:
            self._make_old(model.scope, past)
            return self._new(model, before, past, present)
        self._make_old(model.scope, model.fact.inputs)
        return self._perhaps_old(model, present)

    def _make_old(self, scope: Scope, messages: Iterable[Message]) -> None:
        listed = Counter([key_of(call) for call in calls_in(messages)])
        self._old |= Counter({key: n - self._known(scope, key) for key, n in listed.items()})

    def _new(
        self, model: ModelCall, before: ModelCall | None, past: Iterable[Message], present: Iterable[Message]
    ) -> Iterator[Issue]:
        """Calls made after the model call before; where there is none, since the present turn began."""
        listed = Counter([key_of(call) for call in calls_in(past)])
        begun_ns = self._since.get(model.scope, 0)
        turns = _by_turn(present)
        first: int | None = None  # the first turn that is new
        for position, (turn, call) in enumerate(turns):
            key = key_of(call)
            listed[key] += 1
            if listed[key] <= self._known(model.scope, key) + self._old[key]:
                continue
            self._counts[key] += 1
            first = turn if first is None else first
            if before is None:
                yield self._issue(call, model, position, model.start_ns, model.start_ns, turn - turns[-1][0] - 1)
            else:  # if its output is not shown, it asked for the first of them itself
                number = turn - first + bool(before.fact.outputs)
                yield self._issue(call, before, position, begun_ns, before.end_ns, number)

    def _perhaps_old(self, model: ModelCall, present: Iterable[Message]) -> Iterator[Issue]:
        """Calls of the present turn that no model call of this run asked for: its span may be the one that never came.

        Only an id of its own can tell that a span is such a call's; another may repeat it.
        """
        turns = _by_turn(present)
        listed = Counter([key_of(call) for call in calls_in(model.fact.inputs)])
        for position, (turn, call) in enumerate(turns):
            key = key_of(call)
            if call.call_id and listed[key] == 1 and not self._known(model.scope, key):
                number = turn - turns[-1][0] - 1
                yield replace(self._issue(call, model, position, 0, model.start_ns, number), old=True)

    def _issue(self, call: Call, source: ModelCall, position: int, start_ns: int, end_ns: int, turn: int) -> Issue:
        last = is_last(self._ends[source.scope], source.fact, start_ns)
        shown = not last and source.scope in self._heard
        place = (source.scope, position, start_ns, end_ns)
        return Issue(call, source.fact, *place, last=last, shown=shown, turn=turn, retold=True)


def _by_turn(messages: Iterable[Message]) -> list[tuple[int, Call]]:
    """Each call with the number of its turn, from 0: an answer, or what a user says, ends a turn."""
    found: list[tuple[int, Call]] = []
    turn, ended = 0, False
    for message in messages:
        for part in message.parts:
            if isinstance(part, Call):
                turn += ended and bool(found)
                ended = False
                found.append((turn, part))
            elif isinstance(part, Response) or message.role == "user":
                ended = True
    return found
