"""The facts of one closed run → its trajectory. Decided here once, for all conventions.

Log events join their spans, spans of one call join each other, calls join the model's own words, and what only messages
tell becomes steps too. The result does not depend on the order in which anything arrived.
"""

from __future__ import annotations

from collections.abc import Iterable

from luckrate_otel.adapters import WITH_TOOL_SPANS
from luckrate_otel.facts import ClosedRun, Facts, Role, ToolDefinition
from luckrate_otel.join.agents import MAIN, outermost_agent
from luckrate_otel.join.executions import executions
from luckrate_otel.join.issues import issues
from luckrate_otel.join.kinds import by_kind
from luckrate_otel.join.logs import merge_logs
from luckrate_otel.join.model_calls import ModelCall, model_calls
from luckrate_otel.join.pairing import pair
from luckrate_otel.join.steps import Placed, steps, timed
from luckrate_otel.join.tree import Tree
from luckrate_otel.join.words import Words, last_of, words
from luckrate_otel.model import Coverage, Trajectory
from luckrate_otel.telemetry import Status

_MS = 1e6  # nanoseconds


def join(run: ClosedRun) -> Trajectory:
    """Rebuild a run's trajectory. Pure and total: never raises on what telemetry holds, the same facts give the
    same answer.
    """
    facts = merge_logs(run.facts)
    kinds = by_kind(facts)
    tree = Tree(facts, run.links)
    ran = executions(kinds.calls, tree)
    models = model_calls(kinds.models, tree)
    with_spans = not kinds.adapters.isdisjoint(WITH_TOOL_SPANS)
    top = outermost_agent(run.root, tree)
    asked = issues(models, kinds.containers, lambda span: tree.is_cut(span, top), whole=not ran and not with_spans)
    definitions = _definitions(kinds.defining)
    begun_ns = _begun_ns(run, facts)
    pairs = pair(ran, asked, tree)
    placed = steps(ran, asked, pairs, kinds=kinds, tree=tree, definitions=definitions, begun_ns=begun_ns, top=top)
    start_ns = min(begun_ns, placed[0].issued_ns) if placed else begun_ns
    outer = [m for m in models if m.outermost]
    last = last_of(outer)
    said = words(kinds, outer, last, placed, tree, run.root)
    root = next((f for f in facts if run.root and f.head.span_id == run.root.span_id), None)
    return Trajectory(
        steps=tuple([p.step for p in placed]) if start_ns == begun_ns else timed(placed, start_ns),
        turns=said.turns,
        system=said.system,
        final_output=said.final_output,
        run_id=run.run_id,
        trace_ids=run.trace_ids,
        conversation_id=_conversation(kinds.told, tree),
        adapters=tuple(sorted(kinds.adapters)),
        agent=_agent(kinds.containers, placed, tree, top),
        close_reason=run.close_reason,
        complete=run.complete,
        coverage=_coverage(models, placed, said, with_spans=with_spans),
        gaps={(n, name): gap for n, p in enumerate(placed) if p.gaps for name, gap in p.gaps.items()},
        history=said.history,
        definitions=definitions,
        evaluations=kinds.evaluations,
        call_ids=tuple([p.call_id for p in placed]),
        root=run.root.span_id if run.root else None,
        root_status=run.root.status if run.root else Status.UNSET,
        finish_reasons=_finish_reasons(root, last),
        start_ns=start_ns,
        duration=_duration(run, facts),
        tokens=_tokens(models),
        case=kinds.case,
        has_agent=kinds.has_agent,
        attributes=run.attributes or (root.attributes if root else {}),
    )


def _begun_ns(run: ClosedRun, facts: tuple[Facts, ...]) -> int:
    """When the first span began. A call may have been issued earlier, where a span's end lies before its start."""
    if not facts:
        return run.root.start_ns if run.root else 0
    first_ns = facts[0].head.start_ns
    return min(first_ns, run.root.start_ns) if run.root else first_ns


def _duration(run: ClosedRun, facts: tuple[Facts, ...]) -> float | None:
    if run.root and run.root.end_ns:
        return max(run.root.end_ns - run.root.start_ns, 0) / _MS
    heads = [f.head for f in facts if not f.log]
    if not heads:
        return None
    return max(max(h.end_ns for h in heads) - min(h.start_ns for h in heads), 0) / _MS


def _conversation(told: list[Facts], tree: Tree) -> str | None:
    """The outermost span's: an agent called as a tool may open a conversation of its own (ADK, Pydantic AI)."""
    if not told:
        return None
    outer = [f for f in told if not tree.in_a_call(f.head.span_id)]
    return min(outer or told, key=lambda f: (tree.depth(f.head.span_id), f.head.start_ns)).conversation_id


def _agent(containers: list[Facts], placed: tuple[Placed, ...], tree: Tree, top: str) -> str | None:
    """The outermost agent's name, the first one's of several; failing that, of the agent that issued the first step.

    Where a call was made before any agent that is known by a span, that span is of a later one, and the first one's
    never came.
    """
    named = [f for f in containers if f.role is Role.AGENT and f.agent]
    if not named:
        return next((p.step.agent for p in placed if p.step.agent != MAIN), None)
    first = named[0] if len(named) == 1 else min(named, key=lambda f: _outermost_first(f, tree, top))
    if placed and placed[0].issued_ns < first.head.start_ns:
        if "agent" in placed[0].gaps:
            return None
        if placed[0].step.agent != MAIN:
            return placed[0].step.agent
    return first.agent


def _outermost_first(fact: Facts, tree: Tree, top: str) -> tuple[bool, int, int, str]:
    span_id = fact.head.span_id
    return tree.is_cut(span_id, top), tree.depth(span_id), fact.head.start_ns, span_id


def _definitions(facts: Iterable[Facts]) -> tuple[ToolDefinition, ...]:
    found: dict[str, ToolDefinition] = {}
    for definition in (d for f in facts for d in f.definitions):
        known = found.get(definition.name)
        if known is None or (known.parameters is None and definition.parameters is not None):
            found[definition.name] = definition
    return tuple(found.values())


def _finish_reasons(root: Facts | None, last: ModelCall | None) -> tuple[str, ...]:
    if root is not None and root.finish_reasons:
        return root.finish_reasons
    return last.fact.finish_reasons if last else ()


def _tokens(models: tuple[ModelCall, ...]) -> int | None:
    told = [m.fact.tokens for m in models if m.fact.tokens is not None]
    return sum(told) if told else None


def _coverage(models: tuple[ModelCall, ...], placed: tuple[Placed, ...], said: Words, *, with_spans: bool) -> Coverage:
    """tools: a call would have been seen, as a span or in a message."""
    found = [p.step for p in placed]
    shows = with_spans or bool(found) or any(m.fact.outputs for m in models)
    return Coverage(
        tools=shows,
        args=shows and (not found or any(s.args is not None for s in found)),
        results=shows and (not found or any(s.result is not None for s in found) or not any(s.ok for s in found)),
        task_input=bool(said.turns),
        final_output=said.final_output is not None,
    )
