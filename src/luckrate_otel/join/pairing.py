"""Which execution belongs to which call that a model asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from luckrate_otel.content.arguments import POSITIONAL, named
from luckrate_otel.join.executions import Execution
from luckrate_otel.join.issue import Issue
from luckrate_otel.join.names import plain_name
from luckrate_otel.join.tree import Tree
from luckrate_otel.telemetry import Value

# Calls of one tool that wait for their span at the same time; a bound against quadratic cost, not met in practice.
MAX_LOOK_BACK = 512


def pair(found: tuple[Execution, ...], issues: tuple[Issue, ...], tree: Tree) -> dict[int, int]:
    """Index of execution → index of issue. Each issue runs once at most, and never before its model call began.

    By call id; where ids are told on one side only or are of two kinds (ADK's spans and messages), by tool and
    arguments, and by tool alone where the span has no arguments. Of several, the conversation's own and the latest
    model call win. What is left over pairs with what only history tells of.
    """
    pairs = _by_id(found, issues, tree)
    if len(pairs) == len(found):
        return pairs
    ids = {i.call.call_id for i in issues if i.call.call_id}
    used = set(pairs.values())
    free: dict[str, list[int]] = {}
    for at in sorted(range(len(issues)), key=lambda n: (issues[n].start_ns, -issues[n].position)):
        if at not in used and not issues[at].old:
            free.setdefault(plain_name(issues[at].call.tool), []).append(at)
    for n, execution in enumerate(found):
        row = free.get(plain_name(execution.fact.tool or ""))
        if n not in pairs and row:
            best = _latest_fit(execution, row, issues, tree.scope(execution.fact), ids)
            if best is not None:
                pairs[n] = best
                row.remove(best)
    if len(pairs) < len(found) and any(issues[at].retold for row in free.values() for at in row):
        _with_retold(found, issues, free, pairs)
    return pairs


def _with_retold(
    found: tuple[Execution, ...], issues: tuple[Issue, ...], free: Mapping[str, list[int]], pairs: dict[int, int]
) -> None:
    """Pair what is left over with calls that only history tells of, whenever that seems to have been asked for: where
    other spans of the same turn are missing too, an earlier input may have been shown without its calls.
    """
    for n, execution in enumerate(found):
        if n in pairs or execution.fact.args is None:
            continue
        row = free.get(plain_name(execution.fact.tool or ""), [])
        for at in row[:MAX_LOOK_BACK]:
            issue = issues[at]
            told_ns = issue.heard.head.start_ns if issue.heard else execution.end_ns
            if issue.retold and issue.call.args == execution.fact.args and execution.start_ns <= told_ns:
                pairs[n] = at
                row.remove(at)
                break


def _by_id(found: tuple[Execution, ...], issues: tuple[Issue, ...], tree: Tree) -> dict[int, int]:
    """The certain ones first, so that no guess takes what an id claims. Ids are unique within a conversation only."""
    rows: dict[tuple[str, str], list[int]] = {}
    for at, issue in enumerate(issues):
        if issue.call.call_id:
            rows.setdefault((plain_name(issue.call.tool), issue.call.call_id), []).append(at)
    pairs: dict[int, int] = {}
    for n, execution in enumerate(found):
        row = rows.get((plain_name(execution.fact.tool or ""), execution.fact.call_id or ""), [])
        if not row:
            continue
        start_ns = execution.fact.head.start_ns
        only = issues[row[0]]
        if len(row) == 1 and only.start_ns <= start_ns and not only.old:  # an id asked for once: saves 1 µs per span
            pairs[n] = row.pop()
            continue
        scope = tree.scope(execution.fact)
        begun = [
            at
            for at in row
            if issues[at].start_ns <= start_ns and not (issues[at].old and not _is_own(issues[at], scope))
        ]
        if begun:
            best = max(begun, key=lambda at: (_is_own(issues[at], scope), issues[at].start_ns, -issues[at].position))
            pairs[n] = best
            row.remove(best)
    return pairs


def _is_own(issue: Issue, scope: tuple[str, str]) -> bool:
    return issue.scope[0] == scope[0]


def _latest_fit(
    execution: Execution, row: list[int], issues: tuple[Issue, ...], scope: tuple[str, str], ids: set[str]
) -> int | None:
    """The latest of these issues (by start) that the execution can belong to, of its own conversation if possible."""
    call_id = execution.fact.call_id
    other: int | None = None
    upto = bisect_right(row, execution.start_ns, key=lambda at: issues[at].start_ns)
    for at in reversed(row[max(upto - MAX_LOOK_BACK, 0) : upto]):
        issue = issues[at]
        if call_id and issue.call.call_id and call_id in ids:
            continue  # ids of one kind, and this is not the one
        if not _fits(execution, issue):
            continue
        if _is_own(issue, scope):
            return at
        other = at if other is None else other
    return other


def _fits(execution: Execution, issue: Issue) -> bool:
    args, asked = execution.fact.args, issue.call.args
    if args is not None and asked is not None and POSITIONAL in args:
        return named(args, asked) is not None
    return args is None or asked is None or args == asked or _loosely(args, asked)


def _loosely(args: Mapping[str, Value], asked: Mapping[str, Value]) -> bool:
    """Equal but for defaults that the framework filled in or left out."""
    return bool(asked) and all(k in args and args[k] == v for k, v in asked.items())
