"""The key `args`: what a tool's arguments must look like, and where they must come from."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from luckrate_otel.canonical import plain
from luckrate_otel.rules import shapes
from luckrate_otel.rules.finding import named
from luckrate_otel.rules.key import Aliases, Clause, Key, Place, entries, shown, text, texts, tool
from luckrate_otel.rules.path import EVERY, Path, parse_path
from luckrate_otel.rules.patterns import parse_pattern
from luckrate_otel.rules.schema_problems import find_problems
from luckrate_otel.telemetry import NOTHING, Value

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

# Sources that are no tool.
GIVEN = ("user", "system", "definition")

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

# Keywords whose values are no schemas, whatever they look like.
_DATA = frozenset({"enum", "const", "default", "examples"})


@dataclass(frozen=True, slots=True)
class Source:
    """`user`, `system`, `definition`, or the result of a tool, in whole or at a path. written: as the spec has it."""

    written: str
    given: str = ""
    tool: str = ""
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Arguments:
    """schema: as JSON, None where only sources are asked. sources: argument path → where it may come from."""

    schema: Value
    sources: tuple[tuple[Path, tuple[Source, ...]], ...] = ()
    validator: Validator | None = dataclasses.field(default=None, compare=False)


def _parse(value: Value, place: Place) -> Mapping[str, Arguments]:
    """Tool → a JSON Schema of its arguments, with `from` beside the schema's own keywords."""
    expected = "a mapping from tools to JSON Schemas"
    return {
        tool(name, place.at(name)): _of_tool(item, place.at(name)) for name, item in entries(value, place, expected)
    }


def _of_tool(value: Value, place: Place) -> Arguments:
    read = dict(entries(value, place, "a JSON Schema, with or without from"))
    wanted = (
        entries(read.pop("from"), place.at("from"), "a mapping from arguments to sources") if "from" in read else ()
    )
    sources = tuple(
        (parse_path(path, place.at("from").at(path)), _sources(item, place.at("from").at(path)))
        for path, item in wanted
    )
    validator = parse_schema(read, place) if read else None
    return Arguments(validator.schema if validator else None, sources, validator)


_SHAPE = shapes.a_map({"type": "object", "properties": {"from": shapes.a_map(shapes.TEXTS)}})


def _clauses(key: str, value: Value, aliases: Aliases) -> Iterator[Clause]:
    """`from` is no part of them: the rule that reads it tells its findings apart by argument and sources."""
    for name, item in value.items():
        clause = f"{key}.{named(aliases.get(name, name))}"
        yield clause, clause, {word: part for word, part in item.items() if word != "from"}


ARGS: Key[Mapping[str, Arguments]] = Key("args", _parse, NOTHING, _SHAPE, _clauses)


# ---- sources -----------------------------------------------------------------------------------


def _sources(value: Value, place: Place) -> tuple[Source, ...]:
    if isinstance(value, str):
        return (_source(text(value, place), place),)
    return tuple(_source(item, place.at(i)) for i, item in enumerate(texts(value, place)))


def _source(written: str, place: Place) -> Source:
    """`user`, `lookup_order`, or `lookup_order.$.order.id`."""
    if written in GIVEN:
        return Source(written, given=written)
    name, _, path = written.partition(".$")
    return Source(written, tool=tool(name, place, GIVEN), path=parse_path(path, place))


def leads_to(path: Path, text: str) -> bool:
    """Whether a path as findings name it is this one, or lies below it: `lines[2].sku` for `lines[*].sku`."""
    return _pattern(path).match(text.removeprefix("$").removeprefix(".")) is not None


@lru_cache(maxsize=256)
def _pattern(path: Path) -> re.Pattern[str]:
    pattern = ""
    for part in path:
        if isinstance(part, str):
            pattern += (r"\." if pattern else "") + re.escape(part)
        else:
            pattern += r"\[\d+\]" if part == EVERY else rf"\[{part}\]"
    return re.compile(rf"{pattern}(?=[.\[]|$)" if path else "")


# ---- schemas -----------------------------------------------------------------------------------


def parse_schema(value: Value, place: Place) -> Validator | None:
    """A JSON Schema, 2020-12 unless it says otherwise, made ready. Nothing is ever fetched for it."""
    # Only here: it loads threads and a tenth of a second of modules, which most specs have no use for.
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415

    from luckrate_otel.rules.schemas import searching  # noqa: PLC0415

    if not isinstance(value, Mapping | bool):
        place.problem(f"expected a JSON Schema, got {shown(value)}")
        return None
    if isinstance(value, Mapping) and not _is_uri(value.get("$schema", "")):
        place.at("$schema").problem(f"not a JSON Schema: expected the URI of a draft, got {shown(value['$schema'])}")
        return None
    try:
        schema = plain(value)
        draft = validator_for(schema, default=Draft202012Validator)
        faulty = find_problems(schema, draft, place)
    except RecursionError:
        place.problem("not a JSON Schema: nested too deeply")
        return None
    bad = []
    for reference, at in _references(schema, place):
        if not _leads_somewhere(schema, reference):
            bad.append(reference)
            at.problem(f"refers to {reference!r}: only a part of the same schema can be referred to")
    bad += list(_unsupported(schema, draft, place))
    usable = [parse_pattern(pattern, at) is not None for pattern, at in _patterns(schema, place)]
    return None if faulty or bad or not all(usable) else searching(draft)(_without_dialect(schema, draft))


def _is_uri(value: Value) -> bool:
    """Whether the library can take it apart."""
    try:
        return isinstance(value, str) and urlsplit(value) is not None
    except ValueError:
        return False


def _without_dialect(schema: Value, draft: type[Validator]) -> Value:
    """Where a schema names its draft again, the library goes on with its own validator of that draft."""
    if isinstance(schema, list):
        return [_without_dialect(item, draft) for item in schema]
    if not isinstance(schema, dict):
        return schema
    name = str(draft.META_SCHEMA["$schema"]).rstrip("#")
    return {
        key: item if key in _DATA else _without_dialect(item, draft)
        for key, item in schema.items()
        if not (key == "$schema" and isinstance(item, str) and item.rstrip("#") == name)
    }


def _patterns(schema: Value, place: Place) -> Iterator[tuple[str, Place]]:
    """Every regular expression in a schema, with its place."""
    if isinstance(schema, list):
        for i, item in enumerate(schema):
            yield from _patterns(item, place.at(i))
    if not isinstance(schema, dict):
        return
    for key, item in schema.items():
        if key == "pattern" and isinstance(item, str) and item:
            yield item, place.at(key)
        if key == "patternProperties" and isinstance(item, dict):
            yield from ((pattern, place.at(key).at(pattern)) for pattern in item if pattern)
        if key not in _DATA:
            yield from _patterns(item, place.at(key))


def _unsupported(schema: Value, draft: type[Validator], place: Place) -> Iterator[str]:
    """What the library judges by validators of its own, and so by `re`; each is noted as a problem."""
    parts = list(_parts(schema))
    others = {str(part["$schema"]).rstrip("#") for part in parts[1:] if "$schema" in part}
    if others - {str(draft.META_SCHEMA["$schema"]).rstrip("#")}:
        place.problem("a part of a schema cannot be of another draft than the whole")
        yield "$schema"
    if all(any(word in part for part in parts) for word in ("unevaluatedProperties", "patternProperties")):
        place.problem("unevaluatedProperties cannot stand beside patternProperties: name the properties")
        yield "unevaluatedProperties"


def _parts(schema: Value) -> Iterator[Mapping[str, Value]]:
    """A schema and all schemas within it, outermost first."""
    if isinstance(schema, list):
        for item in schema:
            yield from _parts(item)
    if isinstance(schema, dict):
        yield schema
        for key, item in schema.items():
            if key not in _DATA:
                yield from _parts(item)


def _references(schema: Value, place: Place) -> Iterator[tuple[str, Place]]:
    """Every reference, with its place; also where it only looks like one, as nothing may ever be fetched."""
    if isinstance(schema, dict):
        for key, item in schema.items():
            if key in _REFERENCES and isinstance(item, str):
                yield item, place.at(key)
            yield from _references(item, place.at(key))
    elif isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _references(item, place.at(index))


def _leads_somewhere(schema: Value, reference: str) -> bool:
    if not reference.startswith("#"):
        return False
    here = schema
    for part in reference[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, list) and key.isdecimal() and int(key) < len(here):
            here = here[int(key)]
        elif isinstance(here, dict) and key in here:
            here = here[key]
        else:
            return False
    return reference == "#" or reference.startswith("#/")
