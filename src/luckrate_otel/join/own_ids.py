"""One id per call in a model's inputs: the one under which the model asked for it.

Some emitters rebuild history from other fields than the answer: OpenLLMetry writes the item id of OpenAI's responses
API (`fc_…`) where the output had the call id (`call_…`), others leave ids out on one side. Counted by id, such a call
would be two.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import count

from luckrate_otel.content.messages import calls_in
from luckrate_otel.content.structured import dumps
from luckrate_otel.facts import Call, Message, Part, Response
from luckrate_otel.join.names import plain_name
from luckrate_otel.record import replace

Kind = tuple[str, str]


def kind_of(call: Call) -> Kind:
    return plain_name(call.tool), dumps(call.args)


class Listed:
    """The calls that a model's inputs list, oldest first: what had been asked for before it."""

    def __init__(self, inputs: Iterable[Message]) -> None:
        self.calls = calls_in(inputs)

    @cached_property
    def ids(self) -> frozenset[str | None]:
        return frozenset([c.call_id for c in self.calls])

    @cached_property
    def kinds(self) -> Counter[Kind]:
        return Counter([kind_of(c) for c in self.calls])


class Asked:
    """A call that a model call asked for. start_ns: of that model call; before: what it had listed."""

    def __init__(self, call: Call, before: Listed, start_ns: int = 0) -> None:
        self.call, self.before, self.start_ns = call, before, start_ns

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.call)


def under_own_ids(
    inputs: tuple[Message, ...], listed: Listed, asked: Iterable[Asked], others: Iterable[Asked] = ()
) -> tuple[Message, ...]:
    """The inputs of a model call with the ids of the calls that were asked for before it.

    listed: what they list. asked: by the same conversation, oldest first. others: by those that it may be a part of.
    A call whose id nobody asked under is taken for the oldest one of the same tool and arguments that these inputs do
    not list by its own id. Without such a one it stays as it is, and so does one that was listed before that oldest one
    was asked for: the span of the model call that asked for it never came.
    """
    if not listed.calls:
        return inputs
    known = list(asked), list(others)
    ids = {a.call.call_id for some in known for a in some if a.call.call_id}
    strange = [c for c in listed.calls if c.call_id not in ids]
    if not strange or (not ids and not any(c.call_id for c in strange)):
        return inputs
    own = _own(listed, ids, [_unlisted(listed, some) for some in known if some])
    if not own:
        return inputs
    renamed = {listed.calls[at].call_id: call.call_id for at, call in own.items() if listed.calls[at].call_id}
    places = count()
    return tuple(replace(m, parts=tuple(_renamed(p, places, own, renamed) for p in m.parts)) for m in inputs)


def _unlisted(listed: Listed, asked: Iterable[Asked]) -> dict[Kind, deque[Asked]]:
    found: dict[Kind, deque[Asked]] = {}
    for each in asked:
        if each.call.call_id is None or each.call.call_id not in listed.ids:
            found.setdefault(each.kind, deque()).append(each)
    return found


def _own(listed: Listed, ids: AbstractSet[str], known: list[dict[Kind, deque[Asked]]]) -> dict[int, Call]:
    """By place of a listed call, the call that was asked for: of the first of `known` that has it."""
    own: dict[int, Call] = {}
    made: Counter[Kind] = Counter()
    for at, call in enumerate(listed.calls):
        kind = kind_of(call)
        made[kind] += 1
        if call.call_id in ids:
            continue
        for unlisted in known:
            waiting = unlisted.get(kind)
            if not waiting:
                continue
            before = waiting[0].before
            earlier = call.call_id in before.ids if call.call_id else made[kind] <= before.kinds[kind]
            if not earlier:
                own[at] = waiting.popleft().call
                break
    return own


def _renamed(
    part: Part, places: Iterator[int], own: Mapping[int, Call], renamed: Mapping[str | None, str | None]
) -> Part:
    if isinstance(part, Call):
        call = own.get(next(places))
        return part if call is None else replace(part, call_id=call.call_id)
    if isinstance(part, Response) and part.call_id is not None and part.call_id in renamed:
        return replace(part, call_id=renamed[part.call_id])
    return part
