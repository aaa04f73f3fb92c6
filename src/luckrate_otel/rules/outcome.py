"""What one rule answers about one trajectory."""

from __future__ import annotations

from luckrate_otel.facts import Gap
from luckrate_otel.model import Violation
from luckrate_otel.record import record


@record(frozen=True, slots=True)
class Outcome:
    """A rule's answer. A run ends in one state, in this precedence:
    violated (any violations) > not evaluated (a gap) > satisfied > vacuous (the rule never had a chance to fire)."""

    violations: tuple[Violation, ...] = ()
    gap: Gap | None = None
    vacuous: bool = False


SATISFIED = Outcome()
VACUOUS = Outcome(vacuous=True)
