"""What a rule is: one row of the table in `rules/table.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.rules.key import Key
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.spec_view import SpecView


def asks_something(rule: Rule, spec: SpecView) -> bool:
    """A rule is on when any of its keys has a value that asks for something: not false, nothing or empty."""
    return any(value is not None and value is not False and value not in ((), {}) for value in map(spec.get, rule.keys))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    id: what violations and `severity:` call it. severity: of its violations, unless it says otherwise per violation.
    keys: the keys of the spec that it reads; the first is the one its docs stand under.
    evaluate: pure; called only while the rule is on; an exception becomes not_evaluated(error).
    active: whether the spec asks for it. mend: how the agent, or the spec, is mended, for whoever reads a finding.
    """

    id: str
    severity: Severity
    keys: tuple[Key[Any], ...]
    evaluate: Callable[[Trajectory, SpecView], Outcome]
    active: Callable[[Rule, SpecView], bool] = asks_something
    mend: str = field(kw_only=True)

    @property
    def default_on(self) -> bool:
        """On in a spec that does not write it; then its being not evaluated leaves the path as it is."""
        return any(key.default is True for key in self.keys)
