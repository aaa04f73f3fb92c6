"""What keeps a value from being a JSON Schema, in the words of whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from luckrate_otel.known import suggestion
from luckrate_otel.rules.key import Place, shown
from luckrate_otel.rules.schema_parts import DRAFTS, Path, schemas, unknown_keywords
from luckrate_otel.telemetry import Value

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

# In every draft (JSON Schema Validation 2020-12, 6.1.1). Draft 3 has `any` too.
TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_OLDEST = "draft-03"
_OLD = (_OLDEST, "draft-04")

_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}


def find_problems(schema: Value, draft: type[Validator], place: Place) -> bool:
    """Note each at its place, and whether there are any; what the schema says in vain is noted as a warning.

    RecursionError: it is nested too deeply.
    """
    errors = sorted(draft(draft.META_SCHEMA).iter_errors(schema), key=lambda e: [str(p) for p in e.absolute_path])
    # The parts of a draft's own schema each say the same of one value.
    told = dict.fromkeys(found for error in errors for found in _told(error))
    name = str(draft.META_SCHEMA["$schema"])
    if _OLDEST in name:  # where any text is a type, which no call then fits
        told |= dict.fromkeys(_types_of(schema))
    for path, words in told:
        _at(place, path).problem(f"not a JSON Schema: {words}")
    if isinstance(schema, dict) and schema.get("$schema", name).rstrip("#") != name.rstrip("#"):
        hint = suggestion(schema["$schema"], DRAFTS) or f"; there are {', '.join(DRAFTS)}"
        place.at("$schema").warning(f"names no draft, so the schema is read as 2020-12{hint}")
    for path, words in unknown_keywords(schema, old=any(old in name for old in _OLD)):
        _at(place, path).warning(words)
    return bool(told)


def _at(place: Place, path: Path) -> Place:
    for part in path:
        place = place.at(part)
    return place


def _told(error: ValidationError) -> Iterator[tuple[Path, str]]:
    path = tuple(error.absolute_path)
    if "simpleTypes" in str(error.validator_value):
        yield from _bad_types(error.instance, path)
    elif error.context and (meant := _meant(error.context)):
        yield from (found for inner in meant for found in _told(inner))
    else:
        yield path, _words(error)


def _meant(context: Iterable[ValidationError]) -> list[ValidationError]:
    """Of what a value may be, a schema or a list of schemas, that which it is, and what is wrong with it as such."""
    branches: dict[str | int, list[ValidationError]] = {}
    for error in context:
        branches.setdefault(error.relative_schema_path[0], []).append(error)
    return next((errors for errors in branches.values() if not any(map(_another_kind, errors))), [])


def _another_kind(error: ValidationError) -> bool:
    return error.validator == "type" and not error.relative_path


def _bad_types(value: Value, path: Path) -> Iterator[tuple[Path, str]]:
    """Of the keyword `type`: a type, or a list of types, each once."""
    if not isinstance(value, list):
        yield path, _no_type(value, TYPES)
        return
    if not value:
        yield path, "names no type"
    for index, item in enumerate(value):
        if item not in TYPES:
            yield (*path, index), _no_type(item, TYPES)
        elif item in value[:index]:
            yield (*path, index), f"names {item} twice"


def _no_type(value: Value, types: Sequence[str]) -> str:
    if value is None:
        return 'expected a type, got nothing; the type is "null", in quotes'
    hint = suggestion(value, types) or f"; there are {', '.join(types)}"
    return f"{shown(value)} is no type{hint}"


def _types_of(schema: Value) -> Iterator[tuple[Path, str]]:
    for path, part in schemas(schema):
        given = part.get("type")
        for item in given if isinstance(given, list) else [given]:
            if isinstance(item, str) and item not in (*TYPES, "any"):
                yield (*path, "type"), _no_type(item, (*TYPES, "any"))


def _words(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    got = shown(error.instance)
    match error.validator:
        case "anyOf" if error.context:
            kinds = [kind for inner in error.context for kind in _kinds(inner.validator_value)]
            return f"expected {_expected(kinds)}, got {got}{_as_schema(error.instance, kinds)}"
        case "type":
            return f"expected {_expected(wanted)}, got {got}{_as_schema(error.instance, wanted)}"
        case "minimum":
            return f"expected a number from {wanted} on, got {got}"
        case "exclusiveMinimum":
            return f"expected a number above {wanted}, got {got}"
        case "minItems":
            return "expected a list that is not empty"
        case "uniqueItems":
            return "expected a list that names nothing twice"
    return error.message if len(error.message) <= 200 else f"{error.message[:200]}…"


def _kinds(types: Any) -> list[str]:
    """In draft 3 a schema may stand among them."""
    return [types] if isinstance(types, str) else [one if isinstance(one, str) else "object" for one in types]


def _expected(types: Any) -> str:
    """`object` and `boolean` together are what a schema is."""
    names = dict.fromkeys(_kinds(types))
    words = [_KINDS.get(name, name) for name in names]
    if {"boolean", "object"} <= set(names):
        others = [_KINDS.get(name, name) for name in names if name not in {"boolean", "object"}]
        return ", ".join(["a schema", *others, "true or false"])
    return " or ".join(words)


def _as_schema(value: Value, types: Any) -> str:
    return f"; write {{type: {value}}}" if value in TYPES and "object" in types else ""
