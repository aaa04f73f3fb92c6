"""Which executions of a payload were started by which: sub-workflows run as executions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from luckrate_otel.payloads.fields import get
from luckrate_otel.payloads.n8n.execution import Execution, NodeRun


@dataclass(frozen=True, slots=True)
class Family:
    """All executions of a payload, and index of a child → index of its parent, without cycles."""

    executions: tuple[Execution, ...]
    parents: Mapping[int, int]

    def roots(self) -> tuple[int, ...]:
        return tuple(index for index in range(len(self.executions)) if index not in self.parents)

    def children(self, index: int) -> tuple[int, ...]:
        return tuple(child for child, parent in self.parents.items() if parent == index)

    def descendants(self, index: int) -> tuple[int, ...]:
        """The execution itself and all that it led to."""
        found = [index]
        for each in found:
            found.extend(self.children(each))
        return tuple(found)


def sub_execution_id(run: NodeRun) -> str | None:
    """The execution that a run started."""
    found = get(run.raw, "metadata", "subExecution", "executionId")
    return str(found) if isinstance(found, str | int) else None


def family(executions: Sequence[Execution]) -> Family:
    """The executions with their links, told by either side."""
    named = _identified(executions)
    by_id = {execution.id: index for index, execution in enumerate(named) if execution.id is not None}
    links: dict[int, int] = {}
    for index, execution in enumerate(named):
        if execution.parent_id in by_id:
            links[index] = by_id[execution.parent_id]
        for run in execution.runs or ():
            child = by_id.get(sub_execution_id(run) or "")
            if child is not None:
                links.setdefault(child, index)
    return Family(named, {child: parent for child, parent in links.items() if not _circular(child, links)})


def _identified(executions: Sequence[Execution]) -> tuple[Execution, ...]:
    """Flatted executions do not tell their ids, yet parent and child name each other's: give them these, if it is
    certain whose they are."""
    ids = {execution.id for execution in executions}
    wanted = {e.parent_id for e in executions if e.parent_id is not None} - ids
    nameless = [i for i, e in enumerate(executions) if e.id is None and e.parent_id is None]
    if len(wanted) != 1 or len(nameless) != 1:
        return tuple(executions)
    (parent_id,), (parent,) = wanted, nameless
    started = [each for run in executions[parent].runs or () if (each := sub_execution_id(run)) and each not in ids]
    children = [i for i, e in enumerate(executions) if e.id is None and e.parent_id == parent_id]
    children.sort(key=lambda i: min((run.start_ms or 0.0 for run in executions[i].runs or ()), default=0.0))
    found = {parent: parent_id, **(dict(zip(children, started, strict=True)) if len(children) == len(started) else {})}
    return tuple(replace(e, id=found[i]) if i in found else e for i, e in enumerate(executions))


def _circular(child: int, links: Mapping[int, int]) -> bool:
    seen, at = {child}, links.get(child)
    while at is not None and at not in seen:
        seen.add(at)
        at = links.get(at)
    return at is not None
