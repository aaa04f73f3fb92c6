"""Who is above whom in a closed run, whether or not every span was seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from luckrate_otel.facts import Facts, Role


class Tree:
    """The ancestry of a run's spans. A chain that never ends (a cycle in damaged input) is cut where it repeats."""

    def __init__(self, facts: Iterable[Facts], links: Mapping[str, str]) -> None:
        self._parents = dict(links)
        self._facts: dict[str, Facts] = {}
        for fact in facts:
            if not fact.log:
                self._parents[fact.head.span_id] = fact.head.parent_id
                self._facts.setdefault(fact.head.span_id, fact)

    def fact(self, span_id: str) -> Facts | None:
        return self._facts.get(span_id)

    def ids_above(self, span_id: str) -> Iterator[str]:
        """Ids of the ancestors, nearest first; the last one may be of a span that was never seen."""
        seen = {span_id}
        here = self._parents.get(span_id, "")
        while here and here not in seen:
            yield here
            seen.add(here)
            here = self._parents.get(here, "")

    def above(self, span_id: str) -> Iterator[Facts]:
        """Facts of the ancestors, nearest first."""
        for ancestor in self.ids_above(span_id):
            fact = self._facts.get(ancestor)
            if fact is not None:
                yield fact

    def depth(self, span_id: str) -> int:
        return sum(1 for _ in self.ids_above(span_id))

    def in_a_call(self, span_id: str) -> bool:
        """Below a tool call: what a sub-agent says and hears there was written by a model, not by the user."""
        return any(fact.role is Role.TOOL or fact.tool for fact in self.above(span_id))

    def scope(self, fact: Facts) -> tuple[str, str]:
        """Whose conversation a span belongs to: nearest agent or tool call above it, or the topmost ancestor
        there is.
        """
        top = fact.head.span_id
        for ancestor in self.ids_above(fact.head.span_id):
            top = ancestor
            found = self._facts.get(ancestor)
            if found is not None and found.role in (Role.AGENT, Role.TOOL):
                return ancestor, ""
        return ("" if top == fact.head.span_id else top), fact.agent or ""
