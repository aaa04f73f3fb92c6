"""What to do about a finding: how to mend it, which its rule says, and how to silence it where it is wrong."""

from __future__ import annotations

from luckrate_otel.rules.table import RULES

_RUN_FAILED = "run_failed"  # of a suite's runner, no rule of a spec


def mend(rule: str) -> str:
    """How a finding of this rule is mended, in one line."""
    if rule == _RUN_FAILED:
        return "mend what raised; a run that did not finish certifies nothing"
    if rule not in RULES:  # of a report that a later version wrote
        return "look at the step and its evidence, then change the agent, or the clause if it asks for too much"
    return RULES[rule].mend


def silence(rule: str) -> str:
    """How findings of this rule are silenced, in one line."""
    if rule == _RUN_FAILED:
        return "cannot be silenced"
    return f"severity: {{{rule}: off}} in the spec (or warn: shown, never fails), or accept it with --baseline"
