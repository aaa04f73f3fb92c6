"""One id per call in a model's inputs: the one under which the model asked for it.

Some emitters rebuild history from other fields than the answer: OpenLLMetry writes the item id of OpenAI's responses
API (`fc_…`) where the output had the call id (`call_…`), others leave ids out on one side. Counted by id, such a call
would be two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from luckrate_otel.content.structured import dumps
from luckrate_otel.facts import Call, Message, Part, Response
from luckrate_otel.join.names import plain_name

Kind = tuple[str, str]


def kind_of(call: Call) -> Kind:
    return plain_name(call.tool), dumps(call.args)


def under_own_ids(inputs: tuple[Message, ...], asked: Iterable[Call]) -> tuple[Message, ...]:
    """The inputs of a model call with the ids of the calls that were asked for before it, oldest first.

    A call whose id nobody asked under is taken for the oldest one of the same tool and arguments that these inputs do
    not list by its own id; without such a one it stays as it is: it was asked for elsewhere.
    """
    calls = [p for m in inputs for p in m.parts if isinstance(p, Call)]
    known = list(asked) if calls else []
    ids = {c.call_id for c in known if c.call_id}
    strange = [c for c in calls if c.call_id not in ids]
    if not strange or (not ids and not any(c.call_id for c in strange)):
        return inputs
    listed = {c.call_id for c in calls}
    unlisted: dict[Kind, list[Call]] = {}
    for call in known:
        if call.call_id is None or call.call_id not in listed:
            unlisted.setdefault(kind_of(call), []).append(call)
    own = {id(c): row.pop(0) for c in strange if (row := unlisted.get(kind_of(c)))}
    if not own:
        return inputs
    renamed: dict[str | None, str | None] = {
        c.call_id: own[id(c)].call_id for c in strange if id(c) in own and c.call_id
    }
    return tuple(replace(m, parts=tuple(_renamed(p, own, renamed) for p in m.parts)) for m in inputs)


def _renamed(part: Part, own: Mapping[int, Call], renamed: Mapping[str | None, str | None]) -> Part:
    if isinstance(part, Call) and id(part) in own:
        return replace(part, call_id=own[id(part)].call_id)
    if isinstance(part, Response) and part.call_id is not None and part.call_id in renamed:
        return replace(part, call_id=renamed[part.call_id])
    return part
