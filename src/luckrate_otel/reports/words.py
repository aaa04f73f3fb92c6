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


def evidence(violation: Violation, *, shown: int = 0) -> str:
    """`steps 0, 3` that the finding leans on, then the sources of the value; "" for none.

    shown: characters of the sentence that stand beside it; a source on which that ends is not said again.
    """
    steps = [str(item.step) for item in violation.evidence]
    parts = [f"{'step' if len(steps) == 1 else 'steps'} {', '.join(steps)}"] if steps else []
    sentence = why(violation)
    said = sentence if len(sentence) <= shown else ""
    sources = [source for source in violation.sources if not said.endswith(f"← {source}")]
    if sources:
        parts.append(f"sources {', '.join(sources)}")
    return "; ".join(parts)
