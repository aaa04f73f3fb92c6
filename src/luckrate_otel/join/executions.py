"""Tool spans → executions: each call once, however many spans show it.

The same call is shown twice by two instrumentations at once, and up to four times by an agent's own span with MCP
client, transport and server below it. Real repeats, and an agent's call of a tool of its own name, stay apart.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from operator import attrgetter

from luckrate_otel.content.arguments import POSITIONAL, named
from luckrate_otel.facts import Facts, Role
from luckrate_otel.join.names import plain_name
from luckrate_otel.join.tree import Tree
from luckrate_otel.record import record, replace

# By how much one span of a call may stick out of the other: rounding (LangSmith: 256 ns, n8n: 1 ms) and two clocks'
# reading order.
SLACK_NS = 2_000_000

# Calls of one tool among which a twin is looked for. The two spans of a call start within microseconds of each other,
# so only a burst of more at once could part them; without a bound ten thousand overlapping calls took half a minute.
MAX_PARALLEL = 64


@record(frozen=True, slots=True)
class Execution:
    """One call that ran. fact: what its spans say together, ids and times of the outermost; spans, scopes: of all
    of them. A scope is one instrumentation in one service: client and server may use the same library (FastMCP).
    """

    fact: Facts
    spans: tuple[str, ...]
    scopes: frozenset[tuple[str, str]]

    @property
    def start_ns(self) -> int:
        return self.fact.head.start_ns

    @property
    def end_ns(self) -> int:
        return self.fact.head.end_ns


def executions(facts: list[Facts], tree: Tree) -> tuple[Execution, ...]:
    """Every call that has a span, by start. facts: those of tools, and of agents that are called as one."""
    if tree.are_leaves(facts):  # nothing to merge: saves 0.3 µs per span
        nested = [_merged([fact]) for fact in facts]
    else:
        groups: dict[str, list[Facts]] = {}
        for fact in facts:
            groups.setdefault(_outermost(fact, tree).head.span_id, []).append(fact)
        nested = [_merged(sorted(group, key=_outer_first)) for group in groups.values()]
    return tuple(sorted(_without_twins(nested, tree), key=_BY_START))


_BY_START = attrgetter("fact.head.start_ns", "fact.head.end_ns", "spans")


def _outer_first(fact: Facts) -> tuple[int, int, str]:
    return fact.head.start_ns, -fact.head.end_ns, fact.head.span_id


def _outermost(fact: Facts, tree: Tree) -> Facts:
    """The topmost span of the same call: tool spans of one name with no agent or model between them."""
    found = fact
    if fact.role is Role.AGENT:
        return fact
    for above in tree.above(fact.head.span_id):
        if above.role in (Role.AGENT, Role.MODEL):
            break
        if above.role is Role.TOOL:
            if not _same_call(found, above):
                break
            found = above
    return found


def _same_call(one: Facts, other: Facts) -> bool:
    if plain_name(one.tool or "") != plain_name(other.tool or ""):
        return False
    if one.call_id and other.call_id and one.call_id != other.call_id and one.head.scope == other.head.scope:
        return False
    return agree(one, other)


def agree(one: Facts, other: Facts) -> bool:
    """Arguments are equal as far as both tell them."""
    if one.args is None or other.args is None or one.args == other.args:
        return True
    if POSITIONAL in one.args:
        return POSITIONAL in other.args or named(one.args, other.args) is not None
    return POSITIONAL in other.args and named(other.args, one.args) is not None


def _without_twins(found: list[Execution], tree: Tree) -> list[Execution]:
    """Merge executions that two instrumentations show side by side: other scope, same tool and arguments, one
    enclosing the other.
    """
    if len({execution.scopes for execution in found}) < 2:  # one instrumentation, no twins: saves 0.8 µs per span
        return found
    kept: list[Execution] = []
    going: dict[str, deque[int]] = {}  # by tool: places in kept of its latest calls
    for execution in sorted(found, key=lambda e: (e.start_ns, -e.end_ns, e.spans)):
        latest = going.setdefault(plain_name(execution.fact.tool or ""), deque(maxlen=MAX_PARALLEL))
        twin = next((at for at in reversed(latest) if _are_twins(kept[at], execution, tree)), None)
        if twin is None:
            latest.append(len(kept))
            kept.append(execution)
        else:
            # The pair stays for a third instrumentation, but takes no second span of a scope it has: a real repeat.
            first = kept[twin]
            both = _merged([first.fact, execution.fact])
            spans, scopes = (*first.spans, *execution.spans), first.scopes | execution.scopes
            kept[twin] = replace(both, spans=spans, scopes=scopes)
    return kept


def _are_twins(one: Execution, other: Execution, tree: Tree) -> bool:
    a, b = one.fact, other.fact
    if a.head.span_id in tree.ids_above(b.head.span_id) or b.head.span_id in tree.ids_above(a.head.span_id):
        return False  # nested with an agent or model between them: a sub-agent's call of the same tool
    if one.scopes & other.scopes or a.head.trace_id != b.head.trace_id or not _same_call(a, b):
        return False
    inside = one.start_ns - SLACK_NS <= other.start_ns and other.end_ns <= one.end_ns + SLACK_NS
    around = other.start_ns - SLACK_NS <= one.start_ns and one.end_ns <= other.end_ns + SLACK_NS
    return inside or around


def _merged(spans: list[Facts]) -> Execution:
    """The outermost span, completed by the others."""
    first = spans[0]
    if len(spans) == 1:
        return Execution(first, (first.head.span_id,), _one_scope(first.head.service, first.head.scope))
    ids = tuple(f.head.span_id for f in spans)
    scopes = frozenset((f.head.service, f.head.scope) for f in spans)
    ok, error = _outcome(spans)
    named = next((f for f in spans if f.args is not None and POSITIONAL not in f.args), None)
    args = named or next((f for f in spans if f.args is not None), first)
    result = next((f for f in spans if f.result is not None), first)
    fact = replace(
        first,
        agent=next((f.agent for f in spans if f.agent), None),
        delegate=next((f.delegate for f in spans if f.delegate), None),
        call_id=next((f.call_id for f in spans if f.call_id), None),
        args=args.args,
        args_gap=args.args_gap,
        result=result.result,
        result_gap=result.result_gap,
        ok=ok,
        error=error,
    )
    return Execution(fact, ids, scopes)


@lru_cache(maxsize=256)
def _one_scope(service: str, scope: str) -> frozenset[tuple[str, str]]:
    return frozenset([(service, scope)])


def _outcome(spans: list[Facts]) -> tuple[bool | None, str | None]:
    """(ok, error). A failure of any span is the call's failure; only where none tells, nobody knows."""
    failed = next((f for f in reversed(spans) if f.ok is False), None)
    if failed is not None:
        return False, _error(spans, failed)
    if all(f.ok is None for f in spans):
        return None, spans[0].error
    return True, None


def _error(spans: list[Facts], failed: Facts) -> str | None:
    """The outermost span's own words; an inner span's `tool_error` says less than the text the agent was given."""
    told = [f.error for f in spans if f.ok is False and f.error and f.error != "tool_error"]
    text = next((f.result for f in spans if f.result), None)
    return told[0] if told else text or failed.error
