"""`untrusted` + `privileged` → `taint`: untrusted data, never from the user, in a privileged call."""

from __future__ import annotations

from collections.abc import Mapping

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.key import Key, texts_by_tool, tool_names
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.telemetry import NOTHING

UNTRUSTED: Key[tuple[str, ...]] = Key("untrusted", tool_names, (), shapes.TOOLS)
PRIVILEGED: Key[tuple[str, ...]] = Key("privileged", tool_names, (), shapes.TOOLS)
TARGETS: Key[Mapping[str, tuple[str, ...]]] = Key("targets", texts_by_tool, NOTHING, shapes.a_map(shapes.TEXTS))
FIELDS: Key[Mapping[str, tuple[str, ...]]] = Key("fields", texts_by_tool, NOTHING, shapes.a_map(shapes.TEXTS))
DELEGATES: Key[tuple[str, ...]] = Key("delegates", tool_names, (), shapes.TOOLS)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """Asked of the provenance engine that the spec chose.

    A run whose contents were not carried is not cleared by the names of its calls alone: what came in with the task,
    the system text or earlier turns of the conversation was not seen either.
    """
    outcome = spec.engine.taint(trajectory, spec.policy)
    told = trajectory.coverage.args and trajectory.coverage.results
    return outcome if told or not outcome.vacuous or not trajectory.steps else Outcome(gap=Gap.NOT_CAPTURED)


def active(_rule: Rule, spec: SpecView) -> bool:
    """Off unless both lists are given: one alone names no flow."""
    return bool(spec.get(UNTRUSTED) and spec.get(PRIVILEGED))


RULE = Rule(
    "taint",
    Severity.HARD,
    (UNTRUSTED, PRIVILEGED, TARGETS, FIELDS, DELEGATES),
    evaluate,
    active=active,
    mend="have the value confirmed by the user, or looked up from a trusted tool, before the call",
)
