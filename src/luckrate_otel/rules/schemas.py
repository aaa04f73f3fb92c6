"""JSON Schema validators that search for patterns as all else in a spec does (patterns.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from luckrate_otel.rules.patterns import pattern
from luckrate_otel.telemetry import Value

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


@lru_cache(maxsize=16)
def searching(draft: type[Validator]) -> type[Validator]:
    """A draft's validator with its three keywords exchanged that search: the library's do it by `re`."""
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    made: type[Validator] = extend(draft, keywords)  # type: ignore[no-untyped-call]
    return made


def _pattern(validator: Any, wanted: str, instance: Value, _schema: Value) -> Iterable[ValidationError]:
    if validator.is_type(instance, "string") and not pattern(wanted).found_in(instance):
        yield ValidationError("does not fit the pattern")


def _pattern_properties(
    validator: Any, wanted: Mapping[str, Value], instance: Value, _schema: Value
) -> Iterable[ValidationError]:
    if validator.is_type(instance, "object"):
        for written, schema in wanted.items():
            for name in filter(pattern(written).found_in, instance):
                yield from validator.descend(instance[name], schema, path=name, schema_path=written)


def _additional_properties(
    validator: Any, allowed: Value, instance: Value, schema: Mapping[str, Value]
) -> Iterable[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    others = list(_others(instance, schema))
    if validator.is_type(allowed, "object"):
        for name in others:
            yield from validator.descend(instance[name], allowed, path=name)
    elif others and not allowed:
        yield ValidationError("has properties that are not named")


def _others(instance: Mapping[str, Value], schema: Mapping[str, Value]) -> Iterator[str]:
    """Names that stand neither under `properties` nor fit one of `patternProperties`."""
    named = schema.get("properties", {})
    patterns = [pattern(written) for written in schema.get("patternProperties", {})]
    return (name for name in instance if name not in named and not any(one.found_in(name) for one in patterns))
