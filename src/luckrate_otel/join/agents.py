"""Which agent issued a call."""

from __future__ import annotations

from collections.abc import Iterable

from luckrate_otel.facts import Facts, Role
from luckrate_otel.join.executions import Execution
from luckrate_otel.join.issue import Issue
from luckrate_otel.join.kinds import Kinds
from luckrate_otel.join.names import plain_name
from luckrate_otel.join.tree import Tree
from luckrate_otel.telemetry import Head

MAIN = "main"


class Agents:
    """Answers for the spans of one run. top: the run's root if it is an agent, see outermost_agent()."""

    def __init__(self, kinds: Kinds, tree: Tree, top: str) -> None:
        self._tree, self._top = tree, top
        # Agents that stand beside their tools instead of above them (n8n), per parent.
        self._beside: dict[str, list[Facts]] = {}
        self._agreed: dict[str, set[str]] = {}
        # Where only steps of a workflow name an agent, and all name the same one (LlamaIndex).
        names = {f.agent for f in kinds.containers if f.role is Role.WRAPPER and f.agent and not f.log}
        self._only = next(iter(names)) if len(names) == 1 else None
        for fact in kinds.containers:
            if not fact.log and (fact.role is Role.AGENT or fact.delegate):
                self._beside.setdefault(fact.head.parent_id, []).append(fact)
        for some in (kinds.tools, kinds.models):
            for fact in some:
                if fact.delegate and not fact.log:
                    self._beside.setdefault(fact.head.parent_id, []).append(fact)
                if fact.agent:
                    for ancestor in tree.ids_above(fact.head.span_id):
                        self._agreed.setdefault(ancestor, set()).add(fact.agent)
        self._named = bool(names or self._agreed) or any(f.agent or f.delegate for f in kinds.facts)

    def of(self, execution: Execution | None, issue: Issue | None) -> str | None:
        """The name, `main` where the run names no agent; None where it cannot be told, as a span above never came.

        What the span says itself, then the nearest agent above it (or above a second span of the same call), then the
        model call's, then an agent beside it that was at work, then what all its neighbours say, then the agent that
        was given the answer, then the workflow's name.
        """
        if execution is not None and execution.fact.agent and execution.fact.role is Role.TOOL:
            return execution.fact.agent
        ids = execution.spans if execution else ()
        found = None
        for span_id in ids:
            found = self._above(span_id)
            if found:
                return found
        if found is None and issue is not None:
            source = issue.source
            found = issue.named or source.agent or self._above(source.head.span_id) or self._of_workflow((), issue)
        if found is None and execution is not None:
            found = self._at_work(execution)
        if found is None and execution is not None:
            found = self._neighbours(execution.fact)
        elif found is None and issue is not None:
            found = self._neighbours(issue.source)
        found = found or self._listener(execution, issue) or self._of_workflow(ids, issue)
        if found:
            return found
        own = execution.fact if execution else issue.source if issue else None
        if own is not None and self._named and self._is_missing(own.head):
            return None
        return self._only or MAIN

    def _is_missing(self, head: Head) -> bool:
        """Whether the span of its agent may be one that never came: above it, or beside it where that is its place."""
        return self._tree.is_cut(head.span_id, self._top) or bool(self._beside.get(head.parent_id))

    def _listener(self, execution: Execution | None, issue: Issue | None) -> str | None:
        """The agent whose model call was the first to be given the answer, if it was at work when the call was made:
        an agent that took over begins after the handoff. Only by id, as another agent may make an equal call.
        """
        if issue is None or issue.heard is None or not issue.call.call_id:
            return None
        start_ns = execution.start_ns if execution else issue.end_ns
        for fact in self._tree.above(issue.heard.head.span_id):
            if fact.role is Role.TOOL:
                return None
            if fact.role is Role.AGENT:
                return fact.agent if fact.head.start_ns <= start_ns else None
        return None

    def _above(self, span_id: str) -> str | None:
        nameless = False
        for fact in self._tree.above(span_id):
            if fact.role is Role.TOOL:
                if fact.delegate:
                    return fact.delegate
                if nameless:  # a sub-agent without a name: the agent that called it did not issue its calls
                    return None
            if fact.role is Role.AGENT:
                if fact.agent:
                    return fact.agent
                nameless = True
        return None

    def _at_work(self, execution: Execution) -> str | None:
        """The innermost agent among the siblings whose time the call falls into."""
        around = [
            f
            for f in self._beside.get(execution.fact.head.parent_id, ())
            if f.head.span_id not in execution.spans
            and f.head.start_ns <= execution.start_ns
            and execution.end_ns <= f.head.end_ns
        ]
        if not around:
            return None
        inner = min(around, key=lambda f: (f.head.end_ns - f.head.start_ns, f.head.span_id))
        return inner.delegate if inner.role is Role.TOOL else inner.agent

    def _neighbours(self, fact: Facts) -> str | None:
        """The one agent that every call under the nearest common ancestor, seen or not, says it belongs to."""
        for ancestor in self._tree.ids_above(fact.head.span_id):
            names = self._agreed.get(ancestor, set())
            if names:
                return next(iter(names)) if len(names) == 1 else None
        return None

    def _of_workflow(self, ids: tuple[str, ...], issue: Issue | None) -> str | None:
        spans = ids or ((issue.source.head.span_id,) if issue else ())
        for span_id in spans:
            for fact in self._tree.above(span_id):
                if fact.role is Role.AGENT:
                    return None
                if fact.role is Role.WRAPPER and fact.agent:
                    return fact.agent
        return None


def outermost_agent(root: Head | None, tree: Tree) -> str:
    """The run's root if it is an agent, "" if not: whatever is above it, nothing there makes calls in this run."""
    fact = tree.fact(root.span_id) if root else None
    return fact.head.span_id if fact is not None and fact.role is Role.AGENT else ""


def agent_span(issue: Issue, facts: Iterable[Facts], taken: set[str], tree: Tree) -> Facts | None:
    """The agent that a call without a tool span started (smolagents' managed agents): same name, first to start
    after it.
    """
    name = plain_name(issue.call.tool)
    for fact in facts:
        if fact.role is Role.AGENT and not fact.log and fact.agent and plain_name(fact.agent) == name:
            later = fact.head.start_ns >= issue.start_ns and fact.head.span_id not in taken
            if (
                later
                and fact.head.span_id != issue.scope[0]
                and fact.head.span_id not in tree.ids_above(issue.source.head.span_id)
            ):
                return fact
    return None


def handoff_span(issue: Issue, facts: Iterable[Facts], taken: set[str]) -> Facts | None:
    """The span of a handoff that the model asked for by a tool call: it names the target, not the tool."""
    name = plain_name(issue.call.tool)
    if "transfer" not in name and "handoff" not in name:
        return None
    for fact in facts:
        later = fact.head.start_ns >= issue.start_ns and fact.head.span_id not in taken
        if later and fact.handoff and plain_name(fact.handoff) in name:
            return fact
    return None
