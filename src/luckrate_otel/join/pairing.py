"""Which execution belongs to which call that a model asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from luckrate_otel.adapters.arguments import POSITIONAL, named
from luckrate_otel.join.executions import Execution, canonical
from luckrate_otel.join.issues import Issue
from luckrate_otel.join.tree import Tree
from luckrate_otel.telemetry import Value


def pair(found: tuple[Execution, ...], issues: tuple[Issue, ...], tree: Tree) -> dict[int, int]:
    """Index of execution → index of issue. Each issue runs once at most, and never before its model call began.

    By call id; where ids are told on one side only or are of two kinds (ADK's spans and messages), by tool and
    arguments,
    and by tool alone where the span has no arguments. Of several, the conversation's own and the latest model call win.
    """
    ids = {i.call.call_id for i in issues if i.call.call_id}
    by_tool: dict[str, list[int]] = {}
    for at, issue in enumerate(issues):
        by_tool.setdefault(canonical(issue.call.tool), []).append(at)
    free = set(range(len(issues)))
    pairs: dict[int, int] = {}
    for by_id in (True, False):  # first the certain ones, so that no guess takes what an id claims
        for n, execution in enumerate(found):
            if n in pairs:
                continue
            candidates = [i for i in by_tool.get(canonical(execution.fact.tool or ""), ()) if i in free]
            best = _best(execution, candidates, issues, tree, ids, by_id=by_id)
            if best is not None:
                pairs[n] = best
                free.discard(best)
    return pairs


def _best(
    execution: Execution,
    candidates: Iterable[int],
    issues: tuple[Issue, ...],
    tree: Tree,
    ids: set[str],
    *,
    by_id: bool,
) -> int | None:
    fact = execution.fact
    scope = tree.scope(fact)
    foreign = fact.call_id is not None and fact.call_id not in ids
    ranked = []
    for at in candidates:
        issue = issues[at]
        if issue.start_ns > execution.start_ns:
            continue
        same_id = fact.call_id is not None and fact.call_id == issue.call.call_id
        if by_id != same_id:
            continue
        if not same_id and fact.call_id and issue.call.call_id and not foreign:
            continue
        if not same_id and not _fits(execution, issue):
            continue
        own = issue.scope == scope or issue.scope[0] == scope[0]
        ranked.append((own, issue.start_ns, -issue.position, at))
    return max(ranked)[3] if ranked else None


def _fits(execution: Execution, issue: Issue) -> bool:
    args, asked = execution.fact.args, issue.call.args
    if args is not None and asked is not None and POSITIONAL in args:
        return named(args, asked) is not None
    return args is None or asked is None or args == asked or _loosely(args, asked)


def _loosely(args: Mapping[str, Value], asked: Mapping[str, Value]) -> bool:
    """Equal but for defaults that the framework filled in or left out."""
    return bool(asked) and all(k in args and args[k] == v for k, v in asked.items())
