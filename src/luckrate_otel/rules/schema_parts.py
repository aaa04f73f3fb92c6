"""Where a JSON Schema has schemas in it, and what is written there that no draft knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from luckrate_otel.known import suggestion
from luckrate_otel.telemetry import Value

Path = tuple[str | int, ...]

DRAFTS: Final = (
    *(f"https://json-schema.org/draft/{year}/schema" for year in ("2020-12", "2019-09")),
    *(f"http://json-schema.org/draft-0{number}/schema#" for number in (7, 6, 4, 3)),
)

# Keywords by what their values hold, in whatever draft.
_SCHEMAS: Final = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_LISTS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MAPS: Final = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
_OTHERS: Final = (
    *("const", "contentEncoding", "contentMediaType", "default", "dependentRequired", "deprecated", "description"),
    *("enum", "example", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems"),
    *("maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum"),
    *("multipleOf", "pattern", "readOnly", "required", "title", "type", "uniqueItems", "writeOnly"),
)
# Of drafts 3 and 4.
_OLD: Final = ("disallow", "divisibleBy", "extends", "id")
KEYWORDS: Final = (*dict.fromkeys((*_SCHEMAS, *_LISTS, *_MAPS, *_OTHERS)),)


def schemas(schema: Value, path: Path = ()) -> Iterator[tuple[Path, dict[str, Value]]]:
    """The schema and those in it, each with its path; what is no schema but true or false is passed over."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key, item in schema.items():
        if key in _SCHEMAS:
            yield from schemas(item, (*path, key))
        if key in _LISTS and isinstance(item, list):
            for index, one in enumerate(item):
                yield from schemas(one, (*path, key, index))
        if key in _MAPS and isinstance(item, dict):
            for name, one in item.items():
                yield from schemas(one, (*path, key, name))


def unknown_keywords(schema: Value, *, old: bool) -> Iterator[tuple[Path, str]]:
    """What to say of each word that a validator passes over. old: of draft 3 or 4. `x-…` and `$…` are meant so."""
    known = (*KEYWORDS, *_OLD) if old else KEYWORDS
    for path, part in schemas(schema):
        for key, value in part.items():
            if key not in known and not key.startswith(("$", "x-")):
                is_schema = isinstance(value, dict)
                hint = suggestion(key, known) or ("; arguments stand under properties" if is_schema else "")
                yield (*path, key), f"is no keyword of JSON Schema, so it asks for nothing{hint}"
