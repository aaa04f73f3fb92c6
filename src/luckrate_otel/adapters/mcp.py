"""Model Context Protocol spans (`mcp.method.name`): client and server, of the SDKs and of FastMCP.

One call may show as up to three spans, with the agent's own tool span a fourth; join keeps the outermost. They carry no
call id, and arguments or results only where an emitter opted in.
"""

from __future__ import annotations

from luckrate_otel.adapters import genai
from luckrate_otel.content.structured import text_of
from luckrate_otel.facts import Facts
from luckrate_otel.telemetry import Span

NAME = "mcp"
METHOD = "mcp.method.name"
CALL_METHOD = "tools/call"


def read(span: Span) -> Facts | None:
    """Facts of a tools/call span; None for listing, discovery, prompts and resources."""
    if span.attributes.get(METHOD) != CALL_METHOD:
        return None
    # The Python SDK's client span has no tool name but in its own name: `MCP send tools/call lookup_order`.
    tool = text_of(span.attributes.get(genai.TOOL_NAME)) or span.head.name.partition(CALL_METHOD + " ")[2].strip()
    return genai.read_tool(span, adapter=NAME, tool=tool) if tool else None
