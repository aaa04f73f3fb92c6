"""What LangGraph's metadata tells, whichever instrumentation carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters.base import name_of
from luckrate_otel.content.structured import text_of

# Set by LangChain on everything inside a graph: `langchain_create_agent` for create_agent, `langgraph` for other
# graphs.
_GRAPHS = frozenset({"langgraph", "langchain_create_agent"})


def is_graph(metadata: Mapping[str, Any], name: str) -> bool:
    """The span of that name is a graph itself (an agent), not one of its nodes.

    The outermost graph has no node of its own; a nested one inherits its host's node and is known by its agent name.
    """
    if text_of(metadata.get("ls_integration")) not in _GRAPHS:
        return False
    return "langgraph_node" not in metadata or (
        metadata.get("lc_agent_name") == name and metadata["langgraph_node"] != name
    )


def agent_of(metadata: Mapping[str, Any]) -> str | None:
    """The agent that the span belongs to, right for nested agents and handoffs alike; create_agent(name=…) only."""
    return name_of(metadata.get("lc_agent_name"))
