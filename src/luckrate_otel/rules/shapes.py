"""The shapes of spec values as JSON Schema, for editors. The parsers stay the judges: they know more than shapes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Shape = Mapping[str, Any]


def ref(name: str) -> Shape:
    return {"$ref": f"#/$defs/{name}"}


def a_list(of: Shape) -> Shape:
    return {"type": "array", "items": of}


def a_map(to: Shape) -> Shape:
    return {"type": "object", "additionalProperties": to}


def block(properties: Mapping[str, Shape], required: tuple[str, ...] = ()) -> Shape:
    """A mapping with these keys and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **({"required": list(required)} if required else {}),
    }


def either(*shapes: Shape) -> Shape:
    return {"anyOf": list(shapes)}


TEXT: Final[Shape] = {"type": "string", "minLength": 1}
FLAG: Final[Shape] = {"type": ["boolean", "null"]}
COUNT: Final[Shape] = {"type": "integer", "minimum": 0}
BUDGET: Final[Shape] = {"type": ["integer", "null"], "minimum": 0}
TEXTS: Final[Shape] = either(TEXT, a_list(TEXT))
TOOLS: Final[Shape] = a_list(TEXT)
TWO: Final[Shape] = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}
NUMBER: Final[Shape] = {"type": ["number", "string"]}
ANY: Final[Shape] = {}

# Shapes that others refer to by name.
DEFS: Final[Mapping[str, Shape]] = {
    "duration": either(
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d)?\s*$"},
    ),
    "within": either(ref("duration"), {"type": "string", "pattern": r"^\s*[1-9][0-9]*\s*steps?\s*$"}),
    "where": {
        "type": "object",
        "description": "argument, result part, ok, error or agent: a value, a list of values, or tests",
        "additionalProperties": either(
            {"type": ["string", "number", "boolean", "null", "array"]},
            block(
                {
                    **dict.fromkeys(("eq", "ne", "contains"), ANY),
                    **dict.fromkeys(("gt", "ge", "lt", "le"), NUMBER),
                    "in": {"type": "array"},
                    "matches": TEXT,
                    "exists": {"type": "boolean"},
                }
            ),
        ),
    },
    "calls": either(
        TEXT,
        {"type": "array", "items": TEXT, "minItems": 1},
        block(
            {"tool": either(TEXT, {"type": "array", "items": TEXT, "minItems": 1}), "where": ref("where")}, ("tool",)
        ),
    ),
    "same": either(TEXTS, a_map(TEXTS)),
    "pair": either(
        {"type": "array", "items": ref("calls"), "minItems": 2, "maxItems": 2},
        block(
            {"first": ref("calls"), "then": ref("calls"), "same": ref("same"), "within": ref("within")},
            ("first", "then"),
        ),
    ),
}
DURATION: Final[Shape] = either(ref("duration"), {"type": "null"})
PAIRS: Final[Shape] = a_list(ref("pair"))
SEQUENCE: Final[Shape] = either(ref("calls"), a_list(ref("calls")))
