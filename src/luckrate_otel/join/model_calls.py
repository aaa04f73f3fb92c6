"""Model spans → model calls: each call once, however many spans show it."""

from __future__ import annotations

from operator import attrgetter

from luckrate_otel.facts import Call, Facts, Message, Role
from luckrate_otel.join.tree import Tree
from luckrate_otel.record import record, replace

# Whose conversation a call belongs to, see Tree.scope.
Scope = tuple[str, str]


@record(frozen=True, slots=True)
class ModelCall:
    """One call of a model, however many spans show it. fact: what they say together; ids: all their spans."""

    fact: Facts
    scope: Scope
    outermost: bool
    ids: tuple[str, ...] = ()

    @property
    def start_ns(self) -> int:
        return self.fact.head.start_ns

    @property
    def end_ns(self) -> int:
        return self.fact.head.end_ns


def model_calls(facts: list[Facts], tree: Tree) -> tuple[ModelCall, ...]:
    """Model calls by start; facts: those of models. A model span inside another is the same call (ADK's call_llm, two
    instrumentations at once).
    """
    if tree.are_leaves(facts):  # as in executions()
        found = [_model_call([fact], tree) for fact in facts]
    else:
        groups: dict[str, list[Facts]] = {}
        for fact in facts:
            groups.setdefault(_outermost(fact, tree), []).append(fact)
        found = [_model_call(group, tree) for group in groups.values()]
    return tuple(sorted(found, key=_BY_START))


_BY_START = attrgetter("fact.head.start_ns", "fact.head.end_ns", "ids")


def _outermost(fact: Facts, tree: Tree) -> str:
    top = fact.head.span_id or f"{fact.head.start_ns}{fact.head.name}"
    for above in tree.above(fact.head.span_id):
        if above.role in (Role.AGENT, Role.TOOL):
            break
        if above.role is Role.MODEL:
            top = above.head.span_id
    return top


def _model_call(group: list[Facts], tree: Tree) -> ModelCall:
    if len(group) == 1:
        (only,) = group
        span_id = only.head.span_id
        return ModelCall(only, tree.scope(only), not tree.in_a_call(span_id), (span_id,))
    ordered = sorted(group, key=lambda f: (f.head.start_ns, -f.head.end_ns, f.head.span_id))
    first = replace(
        ordered[0],
        agent=next((f.agent for f in ordered if f.agent), None),
        inputs=max((f.inputs for f in ordered), key=len),
        outputs=max((f.outputs for f in ordered), key=_weight),
        system=next((f.system for f in ordered if f.system), ()),
        definitions=next((f.definitions for f in ordered if f.definitions), ()),
        finish_reasons=next((f.finish_reasons for f in reversed(ordered) if f.finish_reasons), ()),
        tokens=next((f.tokens for f in ordered if f.tokens is not None), None),
    )
    ids = tuple(f.head.span_id for f in ordered)
    return ModelCall(first, tree.scope(first), not tree.in_a_call(first.head.span_id), ids)


def is_last(own: ModelCall, source: Facts, start_ns: int) -> bool:
    """Whether `own`, the last model call of its conversation, came no later than what this source asked for then."""
    return own.fact.head.start_ns < start_ns or source.head.span_id in own.ids


def _weight(messages: tuple[Message, ...]) -> tuple[int, int]:
    parts = [p for m in messages for p in m.parts]
    return sum(isinstance(p, Call) for p in parts), len(parts)
