"""`args.from`: an argument must come from the user, or from a given tool."""

from __future__ import annotations

from collections.abc import Mapping

from luckrate_otel.facts import Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.provenance.tokens import Leaf, Sighting
from luckrate_otel.rules.arguments import ARGS, Source, leads_to
from luckrate_otel.rules.finding import argument_of, at_step, concluded, gap_of, named
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.rules.path import Unreadable, follow, parts_of, result_value
from luckrate_otel.rules.rule import Rule
from luckrate_otel.rules.spec_view import SpecView
from luckrate_otel.rules.where import same_value
from luckrate_otel.telemetry import Value

# As many sources as the engine lists of one value; past them the right one may be among those left out.
LISTED = 16

# An argument that the agent wrote itself before is no source.
_ORIGINS = {"user": ("user", "earlier user"), "system": ("system",), "definition": ("definition",)}


def evaluate(trajectory: Trajectory, spec: SpecView) -> Outcome:
    """One violation per argument that is seen before the call, but in no source it may come from, or nowhere."""
    wanted = {tool: arguments.sources for tool, arguments in spec.get(ARGS).items() if arguments.sources}
    called = [index for index, step in enumerate(trajectory.steps) if step.tool in wanted]
    if not called:
        return concluded((), activated=False)
    gap = next((gap_of(trajectory, i, "args") for i in called if trajectory.steps[i].args is None), None)
    try:
        leaves = spec.trace(trajectory)
    except ValueError:
        return Outcome(gap=Gap.TOO_LARGE)
    violations: list[Violation] = []
    for leaf in leaves:
        for path, sources in wanted.get(leaf.tool, ()):
            if leaf.kind == "none" or not leads_to(path, leaf.path) or _allowed(trajectory, leaf, sources):
                continue
            missing = _untold(trajectory, leaf, sources)
            gap = gap or missing
            if missing is None:
                violations.append(_violation(trajectory, leaf, sources))
    return concluded(violations, gap=gap)


def _allowed(trajectory: Trajectory, leaf: Leaf, sources: tuple[Source, ...]) -> bool:
    return any(_comes_from(trajectory, leaf, seen, source) for source in sources for seen in leaf.sources)


def _comes_from(trajectory: Trajectory, leaf: Leaf, seen: Sighting, source: Source) -> bool:
    if source.given:
        return seen.origin in _ORIGINS[source.given]
    if seen.tool != source.tool or seen.origin not in ("result", "earlier result"):
        return False
    if leads_to(source.path, seen.path):
        return True
    # The engine names one place in a result; the value may stand at another as well.
    step = trajectory.steps[seen.step] if seen.step is not None else None
    return step is not None and step.result is not None and _stands_at(step.result, source, _value(trajectory, leaf))


def _stands_at(result: str, source: Source, value: Value) -> bool:
    try:
        found = follow(result_value(result), source.path)
    except Unreadable:
        return False
    return any(same_value(item, value) or (isinstance(item, str) and str(value) in item) for item in found)


def _value(trajectory: Trajectory, leaf: Leaf) -> Value:
    args: Mapping[str, Value] = trajectory.steps[leaf.step].args or {}
    return next(iter(follow(args, parts_of(leaf.path) or ())), None)


def _untold(trajectory: Trajectory, leaf: Leaf, sources: tuple[Source, ...]) -> Gap | None:
    """Why an argument that was not seen in its sources may come from them all the same."""
    if trajectory.history.missing:
        return Gap.HISTORY_MISSING
    if any(source.given == "user" for source in sources) and not any(turn.text.strip() for turn in trajectory.turns):
        return Gap.NO_TASK
    tools = {source.tool for source in sources if source.tool}
    for index, step in enumerate(trajectory.steps[: leaf.step]):
        if step.tool in tools and step.result is None and step.error is None:
            return gap_of(trajectory, index, "result")
    if any(seen.tool in tools and seen.path == "$" for seen in leaf.sources):
        return Gap.NOT_CAPTURED  # in a result without places, so that it cannot be told whether at the right one
    return Gap.TOO_LARGE if len(leaf.sources) >= LISTED else None


def _violation(trajectory: Trajectory, leaf: Leaf, sources: tuple[Source, ...]) -> Violation:
    wanted = " or ".join(named(source.written) for source in sources)
    seen = tuple(dict.fromkeys(_named(sighting) for sighting in leaf.sources))
    return at_step(
        trajectory,
        leaf.step,
        rule=RULE.id,
        clause=f"args.{named(leaf.tool)}.from",
        severity=RULE.severity,
        message=f"{argument_of(leaf.tool, leaf.path)} (step {leaf.step}) does not come from {wanted}",
        argument=leaf.path,
        sources=seen,
        evidence=sorted({s.step for s in leaf.sources if s.step is not None and s.origin == "result"}),
        content="\x1f".join(sorted(source.written for source in sources)),
    )


def _named(seen: Sighting) -> str:
    """As the findings of `ground` and `taint` name a source: `fetch_page #2`, `user`, `earlier lookup_order`."""
    if seen.step is not None:
        return f"{named(seen.tool or '')} #{seen.step}"
    return f"earlier {named(seen.tool or '')}" if seen.origin == "earlier result" else seen.origin


def active(_rule: Rule, spec: SpecView) -> bool:
    return any(arguments.sources for arguments in spec.get(ARGS).values())


RULE = Rule(
    "args.from",
    Severity.HARD,
    (ARGS,),
    evaluate,
    active=active,
    mend="let the agent take the argument from the source that the spec names",
)
