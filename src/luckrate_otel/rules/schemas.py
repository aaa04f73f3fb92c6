"""JSON Schema validators that search for patterns as all else in a spec does: in bearable time, or raising TooLong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from luckrate_otel.rules.automaton import TooLong
from luckrate_otel.rules.search import found
from luckrate_otel.telemetry import Value

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

Keyword = Callable[[Any, Value, Value, Value], Iterable[ValidationError] | None]

# The library itself searches in the names of properties, and such a name is no argument's.
MAX_NAME: Final = 200

# What makes it search: patterns here, or behind a reference.
_SEARCHED = ("patternProperties", "$ref", "$dynamicRef", "$recursiveRef")

_OF_NAMES = ("patternProperties", "additionalProperties", "unevaluatedProperties")


@lru_cache(maxsize=16)
def bounded(draft: type[Validator]) -> type[Validator]:
    """A draft's validator, with the keywords exchanged that hold patterns."""
    known: Mapping[str, Keyword] = draft.VALIDATORS
    keywords: dict[str, Keyword] = {"pattern": _pattern}
    keywords |= {name: partial(_of_names, known[name]) for name in _OF_NAMES if name in known}
    made: type[Validator] = extend(draft, keywords)  # type: ignore[no-untyped-call]
    return made


def _pattern(validator: Any, pattern: Value, instance: Value, _schema: Value) -> Iterable[ValidationError]:
    if validator.is_type(instance, "string") and not found(re.compile(pattern), instance):
        yield ValidationError("does not fit the pattern")


def _of_names(
    keyword: Keyword, validator: Any, value: Value, instance: Value, schema: Value
) -> Iterable[ValidationError]:
    long = isinstance(instance, dict) and any(len(name) > MAX_NAME for name in instance)
    if long and any(word in str(schema) for word in _SEARCHED):
        raise TooLong
    yield from keyword(validator, value, instance, schema) or ()
