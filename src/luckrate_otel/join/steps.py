"""Executions and issues → steps in the order in which they were issued."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from luckrate_otel.content.arguments import POSITIONAL, named
from luckrate_otel.content.results import may_tell_failure
from luckrate_otel.facts import MAX_ERROR_CHARS, NO_RETURN, Facts, Gap, Response, ToolDefinition
from luckrate_otel.join.agents import MAIN, Agents, agent_span, handoff_span
from luckrate_otel.join.executions import Execution
from luckrate_otel.join.issue import Issue, TurnId
from luckrate_otel.join.kinds import Kinds
from luckrate_otel.join.names import plain_name
from luckrate_otel.join.tree import Tree
from luckrate_otel.model import Step
from luckrate_otel.record import record
from luckrate_otel.telemetry import NOTHING, Status, Value

_MS = 1e6  # nanoseconds

Turns = Mapping[TurnId, int]


@record(frozen=True, slots=True)
class Placed:
    """A step with what the trajectory keeps beside it. issued_ns: when the model asked for it, or it started."""

    step: Step
    issued_ns: int
    order: tuple[int, int, str, int, int, int, str]
    gaps: Mapping[str, Gap]
    call_id: str | None


def steps(
    found: tuple[Execution, ...],
    asked: tuple[Issue, ...],
    pairs: Mapping[int, int],
    *,
    kinds: Kinds,
    tree: Tree,
    definitions: tuple[ToolDefinition, ...],
    begun_ns: int,
    top: str,
) -> tuple[Placed, ...]:
    """All steps of a run, in issue order; `t` counts from begun_ns and is never negative. top: as in Agents."""
    agents = Agents(kinds, tree, top)
    turns = _turn_starts(found, asked, pairs)
    names = _spellings(asked, definitions) if len(pairs) < len(found) else NOTHING
    done = [
        _ran(execution, asked[pairs[n]] if n in pairs else None, agents, definitions, turns, begun_ns, names)
        for n, execution in enumerate(found)
    ]
    if len(pairs) < len(asked):
        taken = {span for execution in found for span in execution.spans}
        used = set(pairs.values())
        spanned = {plain_name(execution.fact.tool or "") for execution in found}
        for issue in (issue for at, issue in enumerate(asked) if at not in used and not issue.old):
            span = agent_span(issue, kinds.facts, taken, tree) or handoff_span(issue, kinds.facts, taken)
            lost = plain_name(issue.call.tool) in spanned
            done.append(_told(issue, span, agents.of(None, issue), turns, begun_ns, lost=lost))
            taken |= {span.head.span_id} if span else set()
    return tuple(sorted(done, key=attrgetter("order")))


def _turn_starts(found: tuple[Execution, ...], asked: tuple[Issue, ...], pairs: Mapping[int, int]) -> Turns:
    """Per turn, when its calls were issued: the end of its model call, or the first of them to start where tools run
    while it streams. When a model call ended that never came nobody knows, so that its calls' own starts tell more.
    """
    turns: dict[TurnId, int] = {}
    for n, at in pairs.items():
        issue = asked[at]
        if not issue.container:
            turn, start_ns = issue.turn_id, found[n].fact.head.start_ns
            turns[turn] = min(turns.get(turn, start_ns), start_ns)
    for issue in asked:
        if not issue.container and not issue.turn:
            turns[issue.turn_id] = min(turns.get(issue.turn_id, issue.end_ns), issue.end_ns)
    return turns


def _spellings(asked: Iterable[Issue], definitions: Iterable[ToolDefinition]) -> Mapping[str, str]:
    """The names of tools as models see them, for calls of which no model call is left."""
    names = {plain_name(d.name): d.name for d in definitions}
    return names | {plain_name(issue.call.tool): issue.call.tool for issue in asked}


# ---- calls that have a span --------------------------------------------------------------------


def _ran(
    execution: Execution,
    issue: Issue | None,
    agents: Agents,
    definitions: tuple[ToolDefinition, ...],
    turns: Turns,
    begun_ns: int,
    names: Mapping[str, str],
) -> Placed:
    fact, head = execution.fact, execution.fact.head
    args, args_gap = fact.args, None
    if args is None or POSITIONAL in args:
        args, args_gap = _arguments(fact, issue, definitions)
    answer = issue.answer if issue else None
    ok, error = fact.ok, fact.error
    if ok and answer is not None and answer.ok is False:  # the agent was told of a failure that the span does not show
        ok, error = False, answer.result or "error"
    result, result_gap = fact.result, fact.result_gap
    if result is None and answer is not None and answer.result is not None:
        result, result_gap = answer.result, None
    if ok is None:
        result = None
    elif ok:
        error = None
    else:
        error = error or "error"
    tool = fact.tool or ""
    if issue is None:
        tool = names.get(plain_name(tool), tool) if names else tool
    elif issue.call.tool != tool and plain_name(issue.call.tool) == plain_name(tool):
        tool = issue.call.tool  # as the model sees it
    agent = agents.of(execution, issue)
    timed = issue is not None and not issue.container
    issued = turns[issue.turn_id] if timed and issue else head.start_ns
    step = Step(  # by position, for a third of the price
        tool,
        args,
        ok,
        result,
        _since(begun_ns, issued),
        agent or MAIN,
        error,
        _since(head.start_ns, head.end_ns),
        execution.spans[0],
    )
    complete = ok is not None and args is not None and result is not None and agent
    gaps = NOTHING if complete else _gaps(step, agent, args_gap, result_gap)
    call_id = fact.call_id or (issue.call.call_id if issue else None)
    return Placed(
        step, issued, _order(issue if timed else None, issued, head.end_ns, execution.spans[0]), gaps, call_id
    )


def _order(issue: Issue | None, issued: int, end: int = 0, span: str = "") -> tuple[int, int, str, int, int, int, str]:
    """Issue time, then the turn, then the place within it; calls that no turn shows by start, end and id."""
    if issue is None:
        return issued, 1, "", 0, 0, end, span
    return issued, 0 if issue.container else 1, issue.source.head.span_id, issue.turn, issue.position, end, span


def _arguments(
    fact: Facts, issue: Issue | None, definitions: tuple[ToolDefinition, ...]
) -> tuple[Mapping[str, Value] | None, Gap | None]:
    asked = issue.call.args if issue else None
    if fact.args is None:
        return (
            (asked, None)
            if asked is not None
            else (None, fact.args_gap or (issue.call.gap if issue else None) or Gap.NOT_CAPTURED)
        )
    if asked is not None and (full := named(fact.args, asked)) is not None:
        return full, None
    full = _by_schema(fact, definitions)
    return (full, None) if full is not None else (None, Gap.NOT_CAPTURED)


def _by_schema(fact: Facts, definitions: tuple[ToolDefinition, ...]) -> Mapping[str, Value] | None:
    """Names from the tool's schema, only if there is just one way to give them."""
    args = fact.args or {}
    schema = next((d.parameters for d in definitions if plain_name(d.name) == plain_name(fact.tool or "")), None)
    properties = schema.get("properties") if schema else None
    values = args.get(POSITIONAL)
    if not isinstance(properties, Mapping) or not isinstance(values, (list, tuple)):
        return None
    names = [str(k) for k in properties if k not in args]
    if len(values) != 1 or len(names) != 1:
        return None
    return {names[0]: values[0]} | {k: v for k, v in args.items() if k != POSITIONAL}


def _gaps(step: Step, agent: str | None, args_gap: Gap | None, result_gap: Gap | None) -> Mapping[str, Gap]:
    found = {} if agent else {"agent": Gap.INCOMPLETE}
    if step.args is None:
        found["args"] = args_gap or Gap.NOT_CAPTURED
    if step.result is None and step.ok is not None:
        found["result"] = result_gap or Gap.NOT_CAPTURED
    if step.ok is None and step.error != NO_RETURN:
        found["ok"] = Gap.NOT_CAPTURED
    return found


# ---- calls that only messages tell of ----------------------------------------------------------


def _told(issue: Issue, span: Facts | None, agent: str | None, turns: Turns, begun_ns: int, *, lost: bool) -> Placed:
    """A step from messages. span: where an agent ran instead of a tool, or a handoff was recorded. lost: other calls of
    the tool have a span, so that this one's never came.
    """
    answer = issue.answer
    ok: bool | None = None
    error = result = None
    if answer is not None:
        ok, result = _outcome(answer, lost=lost), answer.result
        error = (result or "error")[:MAX_ERROR_CHARS] if ok is False else None
    elif span is not None:
        ok = span.head.status is not Status.ERROR
        error, result = (None, span.final_output) if ok else ("error", None)
    elif issue.last or issue.shown:
        # Never answered: the process died, or the run ended at this call. Where later calls of the conversation show no
        # input at all, an answer could not have been seen.
        error = NO_RETURN
    issued = issue.end_ns if issue.container else turns.get(issue.turn_id, issue.end_ns)
    if span is not None:
        issued = min(issued, span.head.start_ns)
    step = Step(
        tool=issue.call.tool,
        args=issue.call.args,
        ok=ok,
        result=result,
        t=_since(begun_ns, issued),
        agent=agent or MAIN,
        error=error,
        duration=_since(span.head.start_ns, span.head.end_ns) if span is not None else None,
        span=span.head.span_id if span is not None else None,
    )
    return Placed(step, issued, _order(issue, issued), _gaps(step, agent, issue.call.gap, None), issue.call.call_id)


def _outcome(answer: Response, *, lost: bool) -> bool | None:
    """Only the text can tell where nothing flags it. LangGraph's ToolNode and most hand-written loops begin a failure
    with `Error:`; what merely reads like an error may be the tool's own data, and is neither success nor failure.
    Where a span would have told, its absence does not.
    """
    if answer.ok is not None:
        return answer.ok
    if (answer.result or "").startswith("Error:"):
        return False
    return None if lost or may_tell_failure(answer.result) else True


def timed(placed: tuple[Placed, ...], start_ns: int) -> tuple[Step, ...]:
    """The steps with `t`, milliseconds from the run's start, never decreasing."""
    return tuple([_at(p.step, _since(start_ns, p.issued_ns)) for p in placed])


def _since(start_ns: int, at_ns: int) -> float:
    return (at_ns - start_ns) / _MS if at_ns > start_ns else 0.0


def _at(step: Step, t: float) -> Step:
    return Step(step.tool, step.args, step.ok, step.result, t, step.agent, step.error, step.duration, step.span)
