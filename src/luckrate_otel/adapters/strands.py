"""Strands Agents (scope `strands.telemetry.tracer`): GenAI conventions in three forms, content as span events by
default.
"""

from __future__ import annotations

from dataclasses import replace

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import facts
from luckrate_otel.facts import Facts, Role
from luckrate_otel.telemetry import Span

NAME = "strands"
CYCLE = "execute_event_loop_cycle"  # one turn; its messages repeat those of the model and tool spans inside it


def read(span: Span) -> Facts | None:
    """Facts of a Strands span."""
    if span.attributes.get(genai.OPERATION) == CYCLE:
        return facts(Role.WRAPPER, NAME, span)
    found = genai.read(span)
    return replace(found, adapter=NAME) if found else None
