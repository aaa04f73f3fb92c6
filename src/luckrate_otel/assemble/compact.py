"""Facts without their large contents, for spans whose payload is held anyway and can be read again."""

from __future__ import annotations

from luckrate_otel.facts import Facts, Role
from luckrate_otel.record import replace
from luckrate_otel.runs.handoffs import target_of
from luckrate_otel.telemetry import NOTHING


def compact(facts: Facts) -> Facts:
    """The facts that say what belongs to which run, without call id, args, result, messages and texts."""
    handoff = facts.handoff
    if handoff is None and facts.role is Role.TOOL:
        handoff = target_of(facts.tool or "", facts.args)  # its args name the agent that the run goes on with
    return replace(
        facts,
        handoff=handoff,
        call_id=None,
        args=None,
        result=None,
        error=None,
        inputs=(),
        outputs=(),
        system=(),
        task_input=None,
        final_output=None,
        definitions=(),
        evaluations=(),
        attributes=NOTHING,
    )
