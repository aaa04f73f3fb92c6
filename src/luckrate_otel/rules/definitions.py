"""`definitions`: a call has only arguments that its tool was offered with, and all that it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules import shapes
from luckrate_otel.rules.finding import argument_of, argument_path, at_step, call, concluded, gap_of, named
from luckrate_otel.rules.key import Key, flag
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import Value

DEFINITIONS: Key[bool] = Key("definitions", flag, default=False, shape=shapes.FLAG)

# Keywords by which a schema may allow arguments that `properties` does not name.
_MORE = ("patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas")


def evaluate(trajectory: Trajectory, _spec: SpecView) -> Outcome:
    """One violation per argument that was made up, and one for those that are missing.

    Only names are compared. The schema comes with the telemetry, and running patterns of strangers on other strangers'
    texts is no way to judge: types and limits are for `args`.
    """
    offered = {definition.name: definition.parameters for definition in trajectory.definitions}
    violations: list[Violation] = []
    gap: Gap | None = None
    for index, step in enumerate(trajectory.steps):
        schema = offered.get(step.tool)
        if schema is None:
            gap = gap or Gap.NOT_CAPTURED
        elif step.args is None:
            gap = gap or gap_of(trajectory, index, "args")
        else:
            violations += _of_call(trajectory, index, step.args, schema)
    return concluded(violations, gap=gap, activated=bool(trajectory.steps))


def _of_call(
    trajectory: Trajectory, index: int, args: Mapping[str, Value], schema: Mapping[str, Value]
) -> Iterator[Violation]:
    properties = schema.get("properties")
    closed = (
        isinstance(properties, Mapping)
        and not schema.get("additionalProperties")
        and not any(key in schema for key in _MORE)
    )
    if closed:
        assert isinstance(properties, Mapping)
        for path in sorted({argument_path(str(key)) for key in args if key not in properties}):
            shown = argument_of(trajectory.steps[index].tool, path)
            yield _violation(trajectory, index, path, f"{shown} (step {index}) is no argument of the tool")
    required = schema.get("required")
    if isinstance(required, list | tuple):
        missing = [named(name) for name in required if isinstance(name, str) and name not in args]
        if missing:
            yield _violation(trajectory, index, None, f"{call(trajectory, index)} lacks {', '.join(missing)}")


def _violation(trajectory: Trajectory, index: int, path: str | None, message: str) -> Violation:
    return at_step(
        trajectory,
        index,
        rule=RULE.id,
        clause=RULE.id,
        severity=RULE.severity,
        message=message,
        argument=path,
    )


RULE = Rule(
    "definitions",
    Severity.SOFT,
    (DEFINITIONS,),
    evaluate,
    mend="give the model the tool's schema as it is, and let the tool refuse arguments it does not know",
)
