"""Span conventions, one row and one file each: `read(span or log record)` → Facts, or None if no adapter claims it.

The choice is made per span, as traces mix libraries: by scope name first, then by what is on the span. Whatever follows
the GenAI, OpenInference or Traceloop conventions is read, whether or not anybody here has met its scope.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from luckrate_otel.adapters import (
    crewai,
    genai,
    google_adk,
    langfuse,
    langsmith,
    mcp,
    mlflow,
    n8n,
    openai_agents,
    openinference,
    pydantic_ai,
    splunk,
    strands,
    traceloop,
    vercel_ai,
)
from luckrate_otel.facts import Facts
from luckrate_otel.telemetry import LogRecord, Span

ReadSpan = Callable[[Span], Facts | None]
ReadLog = Callable[[LogRecord], Facts | None]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A convention.

    scopes: exact scope names that are this adapter's; marker: attribute key whose presence makes a span of an unknown
    scope this adapter's, None if only the scope tells. tool_spans: every call has a span, so that a run without one
    made no call, with content captured or not.
    """

    name: str
    read: ReadSpan
    scopes: tuple[str, ...] = ()
    marker: str | None = None
    read_log: ReadLog = genai.read_log
    tool_spans: bool = True


# Order matters for the markers only: the most specific first, as a span may carry several conventions at once.
ADAPTERS: tuple[Adapter, ...] = (
    Adapter(mcp.NAME, mcp.read, ("mcp-python-sdk", "fastmcp"), mcp.METHOD),
    Adapter(openinference.NAME, openinference.read, (), openinference.KIND),
    Adapter(langsmith.NAME, langsmith.read, ("langsmith",), langsmith.KIND),
    Adapter(
        crewai.NAME,
        crewai.read,
        ("opentelemetry.instrumentation.crewai.instrumentation", "opentelemetry.instrumentation.crewai"),
        tool_spans=False,
    ),
    Adapter(crewai.NATIVE, crewai.read_native, ("crewai.telemetry",), tool_spans=False),
    Adapter(traceloop.NAME, traceloop.read, ("opentelemetry.instrumentation.langchain",), traceloop.KIND),
    Adapter(n8n.NAME, n8n.read, ("n8n-workflow", "n8n-instrumentation")),
    Adapter(vercel_ai.NAME, vercel_ai.read, ("ai", "@n8n/agents"), vercel_ai.OPERATION),
    Adapter(langfuse.NAME, langfuse.read, ("langfuse-sdk",), langfuse.TYPE),
    Adapter(mlflow.NAME, mlflow.read, ("mlflow.tracing.provider",), mlflow.TYPE),
    Adapter(splunk.NAME, splunk.read, ("opentelemetry.util.genai.handler",), read_log=splunk.read_log),
    Adapter(pydantic_ai.NAME, pydantic_ai.read, ("pydantic-ai",)),
    Adapter(google_adk.NAME, google_adk.read, ("gcp.vertex.agent",)),
    Adapter(strands.NAME, strands.read, ("strands.telemetry.tracer",)),
    Adapter(openai_agents.NAME, openai_agents.read, ("opentelemetry.instrumentation.openai_agents",)),
    Adapter(genai.NAME, genai.read),
)

SCOPES: dict[str, Adapter] = {scope: adapter for adapter in ADAPTERS for scope in adapter.scopes}

_MARKED = tuple((adapter.marker, adapter) for adapter in ADAPTERS if adapter.marker)
_MARKER_KEYS = frozenset(marker for marker, _ in _MARKED)

# What several conventions' keys hold: the generic one's, then the kinds of OpenInference, OpenLLMetry and LangSmith.
_SHARED = ("gen_ai.", ".span.kind")

# For a search in the wire bytes of a span of an unknown scope; a span with none of them is claimed by nobody. What
# conventions share is in it once, as every byte of other people's spans is searched.
MARKERS: tuple[bytes, ...] = tuple(
    text.encode() for text in (*_SHARED, *(key for key, _ in _MARKED if not any(shared in key for shared in _SHARED)))
)

_GENERIC = ADAPTERS[-1]

# What ADAPTERS knows to show every call as a span. The rest may be silent about calls that were made.
WITH_TOOL_SPANS = frozenset(a.name for a in ADAPTERS if a.tool_spans and a is not _GENERIC)


def adapter_of(source: Span | LogRecord) -> Adapter:
    """The adapter that may claim this span or log record: by scope, by marker, else the generic one."""
    scope = source.head.scope if isinstance(source, Span) else source.scope
    found = SCOPES.get(scope)
    if found is not None:
        return found
    attributes = source.attributes
    if not _MARKER_KEYS.isdisjoint(attributes):
        for marker, adapter in _MARKED:
            if marker in attributes:
                return adapter
    return _GENERIC


def read(source: Span | LogRecord) -> Facts | None:
    """Facts of a span or log record, None if it is not about an agent. Never raises on what the attributes hold."""
    adapter = adapter_of(source)
    try:
        return adapter.read(source) if isinstance(source, Span) else adapter.read_log(source)
    except RecursionError:  # content nested hundreds of levels deep is nobody's message
        return None
