"""Whether a run's output was right, and who said so: the spec's `output:` block.

The sources are asked in one order, and the first that speaks decides: evaluation, attribute, check, status.
A source that speaks in words this module does not know leaves the output unknown; it is not passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from luckrate_otel.facts import Evaluation
from luckrate_otel.model import OutputSource, OutputState, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.arguments import parse_schema
from luckrate_otel.rules.key import Place, block, flag, seconds, shown, text, texts
from luckrate_otel.rules.path import number
from luckrate_otel.rules.patterns import Pattern, parse_pattern
from luckrate_otel.telemetry import Status, Value
from luckrate_otel.vocabulary import EVALUATION_NAME

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

# Labels and values that need no explanation. Evaluators are free to use others: `label:` and `equals:` name those.
GOOD = frozenset({"true", "pass", "passed", "ok", "yes", "correct", "success", "1", "1.0"})
BAD = frozenset({"false", "fail", "failed", "not_ok", "no", "incorrect", "failure", "error", "0", "0.0"})

# Finish reasons by which a model's turn ended in an error (GenAI semantic conventions; Gemini's two).
ERROR_FINISHES = frozenset({"error", "malformed_function_call", "unexpected_tool_call"})

DEFAULT_WAIT_SECONDS = 300.0

CHECKS = ("contains", "regex", "schema", "python")


@dataclass(frozen=True, slots=True)
class ByEvaluation:
    """A `gen_ai.evaluation.result` of this name. labels: those that mean right. threshold: the least right score.

    wait: seconds a verdict waits for it.
    """

    name: str
    labels: tuple[str, ...] = ()
    threshold: float | None = None
    wait: float = DEFAULT_WAIT_SECONDS


@dataclass(frozen=True, slots=True)
class ByAttribute:
    """A root span or resource attribute. equals: the values that mean right; empty = true, pass, ok, 1 …"""

    key: str
    equals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ByCheck:
    """The final output holds every one of these texts, the pattern is found in it, it is JSON that fits the schema, and
    the function, which only a Python spec can name, says so."""

    contains: tuple[str, ...] = ()
    regex: Pattern | None = None
    schema: Validator | None = None
    python: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The `output:` block. status: whether the root's status may speak as the last, weak source."""

    evaluation: ByEvaluation | None = None
    attribute: ByAttribute | None = None
    check: ByCheck | None = None
    status: bool = True

    def awaits(self, trajectory: Trajectory) -> bool:
        """Whether an evaluation is named that the run does not have yet."""
        by = self.evaluation
        return by is not None and by.wait > 0 and all(e.name != by.name for e in trajectory.evaluations)

    @property
    def wait(self) -> float:
        """Seconds that a verdict waits for an evaluation; 0 when none is named."""
        return self.evaluation.wait if self.evaluation else 0.0


_SCALAR = {"type": ["string", "number", "boolean"]}
OUTPUT_SHAPE: Final[shapes.Shape] = shapes.block(
    {
        "evaluation": shapes.either(
            shapes.TEXT,
            shapes.block(
                {
                    "name": shapes.TEXT,
                    "label": shapes.TEXTS,
                    "threshold": {"type": ["number", "string"]},
                    "wait": shapes.DURATION,
                },
                ("name",),
            ),
        ),
        "attribute": shapes.either(
            shapes.TEXT,
            shapes.block({"key": shapes.TEXT, "equals": shapes.either(_SCALAR, shapes.a_list(_SCALAR))}, ("key",)),
        ),
        "check": shapes.block(
            {"contains": shapes.TEXTS, "regex": shapes.TEXT, "schema": {"type": ["object", "boolean"]}, "python": {}}
        ),
        "status": shapes.FLAG,
    }
)


# ---- judging -----------------------------------------------------------------------------------


def judge_output(trajectory: Trajectory, output: Output) -> tuple[OutputState, OutputSource]:
    """What the first source that speaks says."""
    if (state := _evaluated(trajectory, output.evaluation)) is not None:
        return state, OutputSource.EVALUATION
    if (state := _attributed(trajectory, output.attribute)) is not None:
        return state, OutputSource.ATTRIBUTE
    if (state := _checked(trajectory, output.check)) is not None:
        return state, OutputSource.CHECK
    if output.status and (state := _ended(trajectory)) is not None:
        return state, OutputSource.STATUS
    return OutputState.UNKNOWN, OutputSource.NONE


def _evaluated(trajectory: Trajectory, by: ByEvaluation | None) -> OutputState | None:
    # Our own path verdict travels under the same event name as evaluations of the output; it says nothing of it.
    if by is None or by.name == EVALUATION_NAME:
        return None
    named = [evaluation for evaluation in trajectory.evaluations if evaluation.name == by.name]
    return _meaning(max(named, key=lambda evaluation: evaluation.time_ns), by) if named else None


def _meaning(evaluation: Evaluation, by: ByEvaluation) -> OutputState:
    if by.labels and evaluation.label is not None:
        return _state(evaluation.label in by.labels)
    score = evaluation.score if evaluation.score is not None else number(evaluation.label)
    if by.threshold is not None and score is not None:
        return _state(score >= by.threshold)
    if by.labels or by.threshold is not None:
        return OutputState.UNKNOWN
    return _plain_meaning(evaluation.label if evaluation.label is not None else evaluation.score)


def _attributed(trajectory: Trajectory, by: ByAttribute | None) -> OutputState | None:
    if by is None or trajectory.attributes.get(by.key) is None:
        return None
    value = trajectory.attributes[by.key]
    if not by.equals:
        return _plain_meaning(value)
    as_number = number(value)
    alike = as_number is not None and any(number(word) == as_number for word in by.equals)
    return _state(alike or _word(value) in by.equals)


def _checked(trajectory: Trajectory, by: ByCheck | None) -> OutputState | None:
    final = trajectory.final_output
    if by is None or final is None:
        return None
    found = by.regex is None or by.regex.found_in(final)
    if not (found and all(part in final for part in by.contains)):
        return OutputState.NOT_OK
    if by.schema is not None and not _fits(by.schema, final):
        return OutputState.NOT_OK
    return OutputState.OK if by.python is None else _called(by.python, final)


def _fits(schema: Validator, final: str) -> bool:
    try:
        return bool(schema.is_valid(json.loads(final)))
    except (ValueError, RecursionError):
        return False


def _called(function: Callable[[str], object], final: str) -> OutputState | None:
    """True and false are answers; None leaves it to the next source; anything else, or an exception, is not known."""
    try:
        answer = function(final)
    except Exception:  # noqa: BLE001 - an operator's function must not lose a run
        return OutputState.UNKNOWN
    if answer is None:
        return None
    return _state(answer) if isinstance(answer, bool) else OutputState.UNKNOWN


def _ended(trajectory: Trajectory) -> OutputState | None:
    """Weak: an agent that says it failed did; one that does not may still be wrong."""
    if trajectory.root_status is Status.ERROR:
        return OutputState.NOT_OK
    if any(reason.lower() in ERROR_FINISHES for reason in trajectory.finish_reasons[-1:]):
        return OutputState.NOT_OK
    seen_to_end = trajectory.root is not None and not trajectory.cut_short
    return OutputState.OK if seen_to_end or trajectory.root_status is Status.OK else None


def _plain_meaning(value: Value) -> OutputState:
    word = _word(value).lower()
    if word in GOOD:
        return OutputState.OK
    return OutputState.NOT_OK if word in BAD else OutputState.UNKNOWN


def _word(value: Value) -> str:
    """A value as a spec writes it: true, not True."""
    return str(value).lower() if isinstance(value, bool) else str(value).strip()


def _state(right: bool) -> OutputState:
    return OutputState.OK if right else OutputState.NOT_OK


# ---- reading the block -------------------------------------------------------------------------


def parse_output(value: Value, place: Place) -> Output:
    """Read `output:`; see docs/spec.md."""
    given = block(value, place, ("evaluation", "attribute", "check", "status"))
    return Output(
        evaluation=_parse_evaluation(given["evaluation"], place.at("evaluation")) if "evaluation" in given else None,
        attribute=_parse_attribute(given["attribute"], place.at("attribute")) if "attribute" in given else None,
        check=_parse_check(given["check"], place.at("check")) if "check" in given else None,
        status=flag(given.get("status", True), place.at("status")),
    )


def _parse_evaluation(value: Value, place: Place) -> ByEvaluation:
    if isinstance(value, str):
        value = {"name": value}
    given = block(value, place, ("name", "label", "threshold", "wait"))
    if "name" not in given:
        place.problem("name is missing: which evaluation says that the output is right?")
    name = text(given["name"], place.at("name")) if "name" in given else ""
    if name == EVALUATION_NAME:
        place.at("name").problem(f"{EVALUATION_NAME} is the verdict on the path, not on the output")
    wait = seconds(given["wait"], place.at("wait")) if "wait" in given else DEFAULT_WAIT_SECONDS
    return ByEvaluation(
        name=name,
        labels=texts(given["label"], place.at("label")) if "label" in given else (),
        threshold=_number(given["threshold"], place.at("threshold")) if "threshold" in given else None,
        wait=wait or 0.0,
    )


def _parse_attribute(value: Value, place: Place) -> ByAttribute:
    if isinstance(value, str):
        return ByAttribute(text(value, place))
    given = block(value, place, ("key", "equals"))
    if "key" not in given:
        place.problem("key is missing: which attribute says that the output is right?")
    equals = given.get("equals", ())
    members = equals if isinstance(equals, list | tuple) else (equals,)
    return ByAttribute(
        text(given["key"], place.at("key")) if "key" in given else "", tuple(_word(member) for member in members)
    )


def _parse_check(value: Value, place: Place) -> ByCheck:
    given = block(value, place, CHECKS)
    if not given:
        place.problem(f"checks nothing: give {', '.join(CHECKS[:-1])} or {CHECKS[-1]}")
    return ByCheck(
        contains=texts(given["contains"], place.at("contains")) if "contains" in given else (),
        regex=parse_pattern(given["regex"], place.at("regex")) if "regex" in given else None,
        schema=parse_schema(given["schema"], place.at("schema")) if "schema" in given else None,
        python=_function(given["python"], place.at("python")) if "python" in given else None,
    )


def _function(value: Value, place: Place) -> Callable[[str], object] | None:
    if callable(value):
        function: Callable[[str], object] = value
        return function
    place.problem(f"expected a function, which only a Python spec file can give, got {shown(value)}")
    return None


def _number(value: Value, place: Place) -> float | None:
    read = number(value)
    if read is None:
        place.problem(f"expected a number, got {shown(value)}")
        return None
    return float(read)
