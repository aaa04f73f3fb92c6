"""What `spec test` says of a spec, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from luckrate_otel.plural import plural
from luckrate_otel.quality import Quality

MAX_FAILING = 20


def quality_text(found: Quality) -> str:
    return "\n".join(_lines(found))


def _lines(found: Quality) -> Iterator[str]:
    good = plural(found.runs, "known-good run")
    if not found.runs:
        yield "no known-good run to judge the spec by: their telemetry shows no agent, or could not show a tool call"
    elif found.failing:
        yield f"the spec is broken by {len(found.failing)} of {good}: mend it, or the runs are not good"
        for run, rules in list(found.failing.items())[:MAX_FAILING]:
            yield f"  {run}: {', '.join(rules)}"
        if len(found.failing) > MAX_FAILING:
            yield f"  and {len(found.failing) - MAX_FAILING} more"
    else:
        yield f"the spec is kept by {found.runs} of {good}"
    for words, rules in (("never had a chance to fire", found.vacuous), ("could be judged in no run", found.unjudged)):
        if rules:
            yield f"rules that {words}: {', '.join(rules)}"
    parts = ", ".join(f"{kind} {share}" for kind, share in found.mutants.items())
    yield f"mutants caught: {found.score}; {parts}"


def quality_json(found: Quality) -> Mapping[str, Any]:
    return {
        "runs": found.runs,
        "failing": {run: list(rules) for run, rules in found.failing.items()},
        "vacuous": list(found.vacuous),
        "unjudged": list(found.unjudged),
        "mutants": {kind: {"caught": share.caught, "made": share.made} for kind, share in found.mutants.items()},
        "score": found.score.caught / found.score.made if found.score.made else None,
    }
