"""`args`: a JSON Schema per tool, for the arguments of its calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from luckrate_otel.canonical import plain
from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.rules.arguments import ARGS
from luckrate_otel.rules.finding import argument_of, at_step, call, concluded, gap_of, inner_path, named
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import Value

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

# Of one call. A value of the wrong shape altogether breaks many keywords, and the first few say it.
MAX_ERRORS = 16


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation per argument and keyword. Neither the value nor a key that may be data is shown."""
    wanted = spec.get(ARGS)
    violations: list[Violation] = []
    gap: Gap | None = None
    activated = False
    for index, step in enumerate(trajectory.steps):
        validator = wanted[step.tool].validator if step.tool in wanted else None
        if validator is None:
            continue
        activated = True
        if step.args is None:
            gap = gap or gap_of(trajectory, index, "args")
        else:
            errors = islice(validator.iter_errors(plain(step.args)), MAX_ERRORS)
            violations += _violations(trajectory, index, errors)
    return concluded(violations, gap=gap, activated=activated)


def _violations(trajectory: Trajectory, index: int, errors: Iterator[ValidationError]) -> list[Violation]:
    told = {(inner_path(error.absolute_path), str(error.validator)): error for error in errors}
    return [_violation(trajectory, index, path, told[path, keyword]) for path, keyword in sorted(told)]


def _violation(trajectory: Trajectory, index: int, path: str, error: ValidationError) -> Violation:
    tool = trajectory.steps[index].tool
    where = f"{argument_of(tool, path)} (step {index})" if path else call(trajectory, index)
    return at_step(
        trajectory,
        index,
        rule=RULE.id,
        clause=f"{RULE.id}.{named(tool)}",
        severity=RULE.severity,
        message=f"{where} {_words(error)}",
        argument=path or None,
        content=str(error.validator),
    )


def _words(error: ValidationError) -> str:
    """What the schema asked for, where it is short."""
    asked: Value = error.validator_value
    if error.validator == "required" and isinstance(error.instance, dict):
        return f"lacks {', '.join(named(str(name)) for name in asked if name not in error.instance)}"
    if error.validator == "additionalProperties":
        return "has arguments that its schema does not name"
    shown = f" {asked}" if isinstance(asked, int | float) or (isinstance(asked, str) and len(asked) < 40) else ""
    return f"does not fit {error.validator}{shown}"


def active(_rule: Rule, spec: SpecView) -> bool:
    """A spec may ask for sources alone, see args_from."""
    return any(arguments.validator is not None for arguments in spec.get(ARGS).values())


RULE = Rule(
    "args",
    Severity.SOFT,
    (ARGS,),
    evaluate,
    active=active,
    mend="tell the model the argument's form in the tool's own schema, and let the tool refuse others",
)
