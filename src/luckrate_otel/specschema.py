"""The JSON Schema of spec files, made from the table of rules, for editors to complete and check by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.rules.shapes import DEFS, TEXTS, a_map
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import ALIASES, KEYS


def spec_schema() -> Mapping[str, Any]:
    """Draft 2020-12. It knows shapes; what a spec means (tools that exist, paths, patterns) is for `spec check`."""
    owners = {key.name: rule for rule in RULES.values() for key in reversed(rule.keys)}
    properties: dict[str, Any] = {ALIASES: dict(a_map(TEXTS))}
    for key in KEYS.values():
        rule = owners.get(key.name)
        told = {"description": f"rule {rule.id}, {rule.severity}"} if rule else {}
        properties[key.name] = {**key.shape, **told}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "luckrate-otel spec",
        "type": "object",
        "properties": dict(sorted(properties.items())),
        "additionalProperties": False,
        "$defs": dict(DEFS),
    }
