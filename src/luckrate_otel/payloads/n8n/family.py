"""Which executions of a payload were started by which: sub-workflows run as executions of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from luckrate_otel.payloads.fields import get
from luckrate_otel.payloads.n8n.execution import Execution, NodeRun

# Sub-workflows of sub-workflows: people nest a handful. A deeper execution is a run of its own.
_MAX_LEVELS = 50


@dataclass(frozen=True, slots=True)
class Family:
    """All executions of a payload. roots: index of each that no other one started. children: by index of the parent."""

    executions: tuple[Execution, ...]
    roots: tuple[int, ...]
    children: Mapping[int, Sequence[int]]

    def descendants(self, index: int) -> tuple[int, ...]:
        """The execution itself and all that it led to."""
        found = [index]
        for each in found:
            found.extend(self.children.get(each, ()))
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
    children: dict[int, list[int]] = {}
    for child in sorted(links):
        if _rooted(child, links):
            children.setdefault(links[child], []).append(child)
    led_to = {child for members in children.values() for child in members}
    return Family(named, tuple(i for i in range(len(named)) if i not in led_to), children)


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


def _rooted(child: int, links: Mapping[int, int]) -> bool:
    """Whether the way up ends: not in a circle, and not beyond what can be followed."""
    seen, at = {child}, links.get(child)
    while at is not None and at not in seen and len(seen) <= _MAX_LEVELS:
        seen.add(at)
        at = links.get(at)
    return at is None
