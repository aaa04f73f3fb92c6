"""What telemetry held that nobody could read: said, never guessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from luckrate_otel.adapters import ADAPTERS, Adapter
from luckrate_otel.plural import plural
from luckrate_otel.telemetry import LogRecord, Span

_SHOWN = 8  # of each kind; a file may hold thousands of scopes
_OPERATION_KEYS = (
    "gen_ai.operation.name",
    "operation.name",
    "ai.operationId",
    "rpc.method",
    "db.operation.name",
    "http.request.method",
)
# What each convention's attributes begin with, where that is not the first word of its marker.
_NAMESPACES = {
    "openinference": ("openinference.", "llm.", "input.value", "output.value"),
    "n8n": ("n8n.",),
    "genai": ("gen_ai.", "llm."),
}


def describe(spans: Iterable[Span], logs: Iterable[LogRecord] = ()) -> str:
    """A few lines: how much was seen, of which scopes and operations, and which adapter came closest and why it
    did not fit.
    """
    seen, records = tuple(spans), tuple(logs)
    if not seen and not records:
        return "no spans and no log records"
    lines = [f"{plural(len(seen), 'span')} and {plural(len(records), 'log record')}, none of an agent's run"]
    scopes = Counter(s.head.scope or "(no scope)" for s in seen) + Counter(r.scope or "(no scope)" for r in records)
    lines.append("scopes: " + _listed(scopes))
    lines.append(
        "operations: "
        + _listed(Counter(_operation(s) for s in seen) + Counter(r.event_name for r in records if r.event_name))
    )
    lines.append(_closest(seen))
    return "\n".join(lines)


def _listed(counts: Counter[str]) -> str:
    shown = [f"{name[:80]} ({n})" for name, n in counts.most_common(_SHOWN)]
    more = len(counts) - len(shown)
    return (", ".join(shown) or "none") + (f" and {more} more" if more > 0 else "")


def _operation(span: Span) -> str:
    for key in _OPERATION_KEYS:
        found = span.attributes.get(key)
        if isinstance(found, str) and found:
            return found
    return span.head.name or "(no name)"


def _namespaces(adapter: Adapter) -> tuple[str, ...]:
    if adapter.name in _NAMESPACES:
        return _NAMESPACES[adapter.name]
    return (adapter.marker.partition(".")[0] + ".",) if adapter.marker else (adapter.name + ".",)


def _closest(spans: tuple[Span, ...]) -> str:
    """The adapter whose namespace or scope words most spans share."""
    scores: Counter[str] = Counter()
    for span in spans:
        scope = span.head.scope.lower()
        for adapter in ADAPTERS:
            prefixes = _namespaces(adapter)
            if any(key.startswith(prefixes) for key in span.attributes) or adapter.name.split("_")[0] in scope:
                scores[adapter.name] += 1
    if not scores:
        return "closest adapter: none; no attribute of any GenAI convention is on these spans"
    name, n = scores.most_common(1)[0]
    shared = f"closest adapter: {name}, whose attributes or scope {plural(n, 'span')} {'has' if n == 1 else 'have'}"
    return f"{shared}; but no agent span and no tool call is among them"
