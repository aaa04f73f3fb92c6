"""Tools as offered to the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from luckrate_otel.content.structured import loads, mapping
from luckrate_otel.facts import ToolDefinition
from luckrate_otel.telemetry import Value

_SCHEMAS = ("parameters", "inputSchema", "input_schema", "parameters_json_schema", "schema")


def definitions(value: Value) -> tuple[ToolDefinition, ...]:
    """`gen_ai.tool.definitions`, OpenAI `tools`, Vercel's list of JSON strings. Empty for what cannot be read."""
    if value is None:
        return ()
    if isinstance(value, str):
        return _parsed(value)
    return _read(value)


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[ToolDefinition, ...]:
    # The same catalogue stands on every model call of a run; parsing it once is most of the cost of a small model span.
    try:
        return _read(loads(text))
    except ValueError:
        return ()


def _read(value: Any) -> tuple[ToolDefinition, ...]:
    if isinstance(value, dict):
        value = value.get("tools", [value])
    if not isinstance(value, (list, tuple)):
        return ()
    found: list[ToolDefinition] = []
    for item in map(mapping, value):
        inner = item.get("function_declarations", item.get("functionDeclarations"))  # Gemini groups them
        if inner is not None:
            found += _read(inner)
        elif (one := _one(item)) is not None:
            found.append(one)
    return tuple(found)


def _one(item: Mapping[str, Any]) -> ToolDefinition | None:
    body = item.get("function") if isinstance(item.get("function"), dict) else item
    if not isinstance(body, dict) or not isinstance(body.get("name"), str):
        return None
    schema = next((body[k] for k in _SCHEMAS if isinstance(body.get(k), dict)), None)
    return ToolDefinition(body["name"], schema)
