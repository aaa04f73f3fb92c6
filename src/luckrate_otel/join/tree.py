"""Who is above whom in a closed run, whether or not every span was seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from luckrate_otel.facts import Facts, Role

# Ancestors of a span that are remembered for its siblings, as they are asked for a dozen times per span. A longer chain
# is walked anew: remembering each of its beginnings would take the square of its length.
_SHALLOW = 16


class Tree:
    """The ancestry of a run's spans. A chain that never ends (a cycle in damaged input) is cut where it repeats."""

    def __init__(self, facts: Iterable[Facts], links: Mapping[str, str]) -> None:
        self._parents = dict(links)
        self._facts: dict[str, Facts] = {}
        self._ids: dict[str, tuple[str, ...]] = {}  # parent → itself and what is above it; empty: too long, or a cycle
        self._above: dict[str, tuple[Facts, ...]] = {}
        self._calls: dict[str, bool] = {}  # parent → whether it is, or is below, a tool call
        self._scopes: dict[str, tuple[str, bool]] = {}  # parent → whose conversation, and whether it is a span's own
        for fact in facts:
            if not fact.log:
                self._parents[fact.head.span_id] = fact.head.parent_id
                self._facts.setdefault(fact.head.span_id, fact)

        self._enclosing = {"", *self._parents.values()}

    def are_leaves(self, facts: Iterable[Facts]) -> bool:
        """Whether none of these spans has another below it, so that none of them is a part of another."""
        enclosing = self._enclosing
        for fact in facts:  # noqa: SIM110 - half the price of all()
            if fact.head.span_id in enclosing:
                return False
        return True

    def fact(self, span_id: str) -> Facts | None:
        return self._facts.get(span_id)

    def ids_above(self, span_id: str) -> Iterable[str]:
        """Ids of the ancestors, nearest first; the last one may be of a span that was never seen."""
        parent = self._parents.get(span_id)
        if not parent:
            return ()
        return self._remembered(parent) or self._walk(span_id)

    def _remembered(self, parent: str) -> tuple[str, ...]:
        ids = self._ids.get(parent)
        if ids is None:
            ids = (parent,)
            if self._parents.get(parent):  # seldom: most spans of a run are right below its root
                ids = (parent, *islice(self._walk(parent), _SHALLOW))
                if self._parents.get(ids[-1]):
                    ids = ()
            self._ids[parent] = ids
        return ids

    def _walk(self, span_id: str) -> Iterator[str]:
        seen = {span_id}
        here = self._parents.get(span_id, "")
        while here and here not in seen:
            yield here
            seen.add(here)
            here = self._parents.get(here, "")

    def above(self, span_id: str) -> Iterable[Facts]:
        """Facts of the ancestors, nearest first."""
        parent = self._parents.get(span_id)
        if not parent:
            return ()
        known = self._above.get(parent)
        if known is not None:
            return known
        ids = self._remembered(parent)
        if not ids:
            return (fact for ancestor in self._walk(span_id) if (fact := self._facts.get(ancestor)) is not None)
        known = self._above[parent] = tuple([self._facts[ancestor] for ancestor in ids if ancestor in self._facts])
        return known

    def depth(self, span_id: str) -> int:
        return sum(1 for _ in self.ids_above(span_id))

    def is_cut(self, span_id: str, top: str) -> bool:
        """Whether a span above this one never came, so that nobody knows what part it played; what is above `top` plays
        none.
        """
        here = span_id
        for here in (span_id, *self.ids_above(span_id)):
            if here == top:
                return False
        return here not in self._parents

    def in_a_call(self, span_id: str) -> bool:
        """Below a tool call: what a sub-agent says and hears there was written by a model, not by the user."""
        parent = self._parents.get(span_id)
        if not parent:
            return False
        known = self._calls.get(parent)
        if known is None:
            known = any(fact.role is Role.TOOL or fact.tool for fact in self.above(span_id))
            if self._remembered(parent):
                self._calls[parent] = known
        return known

    def scope(self, fact: Facts) -> tuple[str, str]:
        """Whose conversation a span belongs to: the nearest agent or tool call above it, or the topmost ancestor."""
        parent = self._parents.get(fact.head.span_id)
        if not parent:
            return "", fact.agent or ""
        known = self._scopes.get(parent)
        if known is None:
            known = self._scope_below(fact.head.span_id)
            if self._remembered(parent):
                self._scopes[parent] = known
        owner, own = known
        return owner, "" if own else fact.agent or ""

    def _scope_below(self, span_id: str) -> tuple[str, bool]:
        top = ""
        for ancestor in self.ids_above(span_id):
            top = ancestor
            found = self._facts.get(ancestor)
            if found is not None and found.role in (Role.AGENT, Role.TOOL):
                return ancestor, True
        return top, False
