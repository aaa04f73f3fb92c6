"""How reports say in words where a finding is and what it leans on."""

from __future__ import annotations

from luckrate_otel.model import Severity, Violation

RANK = {Severity.HARD: 0, Severity.SOFT: 1, Severity.WARN: 2}


def place(violation: Violation) -> str:
    """`step 2`, or `the run`."""
    return "the run" if violation.step is None else f"step {violation.step}"


def why(violation: Violation) -> str:
    """The finding in one sentence that begins with its clause."""
    told = violation.message
    return told if told.startswith(violation.clause) else f"{violation.clause}: {told}"


def evidence(violation: Violation) -> str:
    """`steps 0, 3` that the finding leans on, then the sources of the value; "" for none."""
    steps = [str(item.step) for item in violation.evidence]
    parts = [f"{'step' if len(steps) == 1 else 'steps'} {', '.join(steps)}"] if steps else []
    if violation.sources:
        parts.append(f"sources {', '.join(violation.sources)}")
    return "; ".join(parts)
