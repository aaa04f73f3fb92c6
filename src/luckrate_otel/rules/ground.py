"""`ground`: arguments that trace to nothing the agent was given. On by default."""

from __future__ import annotations

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules import shapes
from luckrate_otel.rules.key import Key, flag
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView

GROUND: Key[bool] = Key("ground", flag, default=True, shape=shapes.FLAG)


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """Asked of the provenance engine that the spec chose."""
    return spec.engine.ground(trajectory, spec.policy)


RULE = Rule(
    "ground",
    Severity.WARN,
    (GROUND,),
    evaluate,
    mend="find out where the value came from; if the user gave it in a form not seen here, record that turn",
)
