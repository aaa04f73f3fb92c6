"""The facts of one closed run → its trajectory. Decided here once, for all conventions.

Log events join their spans, spans of one call join each other, calls join the model's own words, and what only messages
tell becomes steps too. The result does not depend on the order in which anything arrived.
"""

from __future__ import annotations

from luckrate_otel.adapters import WITH_TOOL_SPANS
from luckrate_otel.facts import ClosedRun, Facts, Role, ToolDefinition
from luckrate_otel.join.agents import MAIN
from luckrate_otel.join.executions import executions
from luckrate_otel.join.issues import ModelCall, issues, model_calls
from luckrate_otel.join.logs import merge_logs
from luckrate_otel.join.pairing import pair
from luckrate_otel.join.steps import Placed, steps, timed
from luckrate_otel.join.tree import Tree
from luckrate_otel.join.words import Words, words
from luckrate_otel.model import Coverage, Trajectory
from luckrate_otel.telemetry import Status

_MS = 1e6  # nanoseconds


def join(run: ClosedRun) -> Trajectory:
    """Rebuild a run's trajectory. Pure and total: never raises on what telemetry holds, the same facts give the
    same answer.
    """
    facts = merge_logs(run.facts)
    tree = Tree(facts, run.links)
    ran = executions(facts, tree)
    models = model_calls(facts, tree)
    silent = not ran and not any(f.adapter in WITH_TOOL_SPANS for f in facts)
    asked = issues(models, facts, whole=silent)
    definitions = _definitions(facts)
    placed = steps(ran, asked, pair(ran, asked, tree), facts=facts, tree=tree, definitions=definitions)
    said = words(facts, models, placed, tree, run.root)
    starts = (*(p.issued_ns for p in placed), *(f.head.start_ns for f in facts))
    start_ns = min((*starts, run.root.start_ns) if run.root else starts, default=0)
    root = next((f for f in facts if run.root and f.head.span_id == run.root.span_id), None)
    return Trajectory(
        steps=timed(placed, start_ns),
        turns=said.turns,
        system=said.system,
        final_output=said.final_output,
        run_id=run.run_id,
        trace_ids=run.trace_ids,
        conversation_id=_conversation(facts, tree),
        adapters=tuple(sorted({f.adapter for f in facts})),
        agent=_agent(facts, placed, tree),
        close_reason=run.close_reason,
        complete=run.complete,
        coverage=_coverage(facts, models, placed, said),
        gaps={(n, name): gap for n, p in enumerate(placed) for name, gap in p.gaps.items()},
        history=said.history,
        definitions=definitions,
        evaluations=tuple(e for f in facts for e in f.evaluations),
        call_ids=tuple(p.call_id for p in placed),
        root=run.root.span_id if run.root else None,
        root_status=run.root.status if run.root else Status.UNSET,
        finish_reasons=_finish_reasons(root, models),
        start_ns=start_ns,
        duration=_duration(run, facts),
        tokens=_tokens(models),
        case=next((f.case for f in facts if f.case), None),
        has_agent=any(f.role in (Role.AGENT, Role.MODEL) for f in facts),
        attributes=run.attributes or (root.attributes if root else {}),
    )


def _duration(run: ClosedRun, facts: tuple[Facts, ...]) -> float | None:
    heads = [run.root] if run.root and run.root.end_ns else [f.head for f in facts if not f.log]
    if not heads:
        return None
    return max(max(h.end_ns for h in heads) - min(h.start_ns for h in heads), 0) / _MS


def _conversation(facts: tuple[Facts, ...], tree: Tree) -> str | None:
    """The outermost span's: an agent called as a tool may open a conversation of its own (ADK, Pydantic AI)."""
    told = [f for f in facts if f.conversation_id]
    outer = [f for f in told if not tree.in_a_call(f.head.span_id)]
    first = min(outer or told, key=lambda f: (tree.depth(f.head.span_id), f.head.start_ns), default=None)
    return first.conversation_id if first else None


def _agent(facts: tuple[Facts, ...], placed: tuple[Placed, ...], tree: Tree) -> str | None:
    """The outermost agent's name; failing that, of the agent that issued the first step."""
    named = [f for f in facts if f.role is Role.AGENT and f.agent]
    first = min(named, key=lambda f: (tree.depth(f.head.span_id), f.head.start_ns, f.head.span_id), default=None)
    if first is not None:
        return first.agent
    return next((p.step.agent for p in placed if p.step.agent != MAIN), None)


def _definitions(facts: tuple[Facts, ...]) -> tuple[ToolDefinition, ...]:
    found: dict[str, ToolDefinition] = {}
    for definition in (d for f in facts for d in f.definitions):
        known = found.get(definition.name)
        if known is None or (known.parameters is None and definition.parameters is not None):
            found[definition.name] = definition
    return tuple(found.values())


def _finish_reasons(root: Facts | None, models: tuple[ModelCall, ...]) -> tuple[str, ...]:
    if root is not None and root.finish_reasons:
        return root.finish_reasons
    last = max((m for m in models if m.outermost), key=lambda m: (m.end_ns, m.start_ns), default=None)
    return last.fact.finish_reasons if last else ()


def _tokens(models: tuple[ModelCall, ...]) -> int | None:
    told = [m.fact.tokens for m in models if m.fact.tokens is not None]
    return sum(told) if told else None


def _coverage(
    facts: tuple[Facts, ...], models: tuple[ModelCall, ...], placed: tuple[Placed, ...], said: Words
) -> Coverage:
    """tools: a call would have been seen, as a span or in a message."""
    found = [p.step for p in placed]
    talked = any(m.fact.outputs for m in models)
    shows = bool(found) or talked or any(f.adapter in WITH_TOOL_SPANS for f in facts)
    returned = [s for s in found if s.ok]
    return Coverage(
        tools=shows,
        args=shows and (not found or any(s.args is not None for s in found)),
        results=shows and (not found or any(s.result is not None for s in found) or not returned),
        task_input=bool(said.turns),
        final_output=said.final_output is not None,
    )
