"""luckrate 0.3's provenance: top-level arguments that look like identifiers, searched as substrings.

It cannot tell a chance match from a flow of data, and it does not look inside lists, mappings or prose; the engine
`tokens` does. It is kept because specs written for luckrate 0.3 must find here what they find there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from luckrate_otel.facts import NO_RETURN, Gap
from luckrate_otel.model import Severity, Trajectory, Violation
from luckrate_otel.plural import plural
from luckrate_otel.provenance import Policy
from luckrate_otel.rules.finding import argument_of, argument_path, at_step, concluded, gap_of, named, on_run
from luckrate_otel.rules.outcome import Outcome

# What counts as an identifier: 3 to 40 characters without spaces.
_IDENTIFIER = re.compile(r"[\w.@:/+-]{3,40}$")

# Words of that shape which identify nothing.
_LITERALS = frozenset({"true", "false", "none", "null", "yes", "nan"})

# Every argument is searched in every earlier result, and results are whatever a web page says. Past this many steps
# the search stops, and says so as a hard violation: a taint check that was cut silently would look like a clean one.
MAX_STEPS = 500


@dataclass(frozen=True, slots=True)
class Source:
    """A text the agent was given. kind: user, system or tool; tool: "" unless it is a result.

    step: of this run, None for an earlier turn's. since: index of the first step that can have drawn on it.
    """

    kind: str
    text: str
    since: int = 0
    tool: str = ""
    step: int | None = None

    def shown(self) -> str:
        """A tool's result, as findings name it."""
        return f"{named(self.tool)} #{self.step}" if self.step is not None else f"{named(self.tool)} (earlier turn)"


@dataclass(frozen=True, slots=True)
class Argument:
    """An identifier-shaped argument of a step, and the sources it occurs in."""

    step: int
    path: str
    found: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Substring:
    """The engine; see provenance.Engine."""

    def ground(self, trajectory: Trajectory, policy: Policy) -> Outcome:
        """Arguments found nowhere. That can be said only where everything the agent was given is known."""
        arguments = _arguments(trajectory)
        blind = _first_blind_step(trajectory)
        violations = [_invented(trajectory, a) for a in arguments if not a.found and a.step < blind]
        if not _follows_taint(policy):
            violations = [*_cut(trajectory, "ground"), *violations]
        return concluded(violations, gap=_ground_gap(trajectory), activated=bool(arguments))

    def taint(self, trajectory: Trajectory, policy: Policy) -> Outcome:
        """Arguments of privileged calls found in an untrusted result, and in nothing the user said."""
        untrusted, privileged = frozenset(policy.untrusted), frozenset(policy.privileged)
        gap = _taint_gap(trajectory, untrusted, privileged)
        violations = list(_cut(trajectory, "taint"))
        if _user_gap(trajectory) is None:  # else nobody can say that it was not the user
            violations += _carried(trajectory, untrusted, privileged)
        return concluded(violations, gap=gap, activated=_flow_possible(trajectory, untrusted, privileged))


ENGINE = Substring()


# ---- tracing -----------------------------------------------------------------------------------


def _arguments(trajectory: Trajectory) -> tuple[Argument, ...]:
    sources = tuple(_sources(trajectory))
    return tuple(
        Argument(index, argument_path(key), tuple(s for s in sources if s.since <= index and text in s.text))
        for index, step in enumerate(trajectory.steps[:MAX_STEPS])
        for key, text in sorted((str(key), str(value)) for key, value in (step.args or {}).items())
        if _IDENTIFIER.match(text) and text.lower() not in _LITERALS
    )


def _sources(trajectory: Trajectory) -> Iterator[Source]:
    """Everything the agent was given, in the order: earlier turns, system, this run's user turns, results."""
    history = trajectory.history
    yield from (Source("user", text) for text in history.turns)
    yield from (Source("tool", step.result, tool=step.tool) for step in history.steps if step.result)
    yield from (Source("system", text) for text in trajectory.system)
    yield from (Source("user", turn.text, turn.before_step) for turn in trajectory.turns)
    for index, step in enumerate(trajectory.steps[:MAX_STEPS]):
        if step.result:
            yield Source("tool", step.result, index + 1, step.tool, index)


# ---- what could not be looked at ---------------------------------------------------------------


def _user_gap(trajectory: Trajectory) -> Gap | None:
    """Why something the user may have said is not known."""
    if trajectory.history.missing:
        return Gap.HISTORY_MISSING
    return None if trajectory.turns else Gap.NO_TASK


def _result_missing(trajectory: Trajectory, index: int) -> bool:
    step = trajectory.steps[index]
    return step.result is None and step.error != NO_RETURN


def _first_blind_step(trajectory: Trajectory) -> int:
    """Index of the first step before which something that the agent was given is not known."""
    if _user_gap(trajectory) is not None:
        return 0
    missing = (i + 1 for i in range(len(trajectory.steps)) if _result_missing(trajectory, i))
    return next(missing, len(trajectory.steps))


def _uncaptured(trajectory: Trajectory) -> Gap | None:
    """The telemetry of this run carries no arguments, or no results, at all."""
    covered = trajectory.coverage.args and trajectory.coverage.results
    return Gap.NOT_CAPTURED if trajectory.steps and not covered else None


def _ground_gap(trajectory: Trajectory) -> Gap | None:
    steps = trajectory.steps
    for index, step in enumerate(steps):
        if step.args is None:
            return gap_of(trajectory, index, "args")
        if _result_missing(trajectory, index) and index + 1 < len(steps):  # nothing draws on the last one
            return gap_of(trajectory, index, "result")
    return _uncaptured(trajectory) or (_user_gap(trajectory) if steps else None)


def _taint_gap(trajectory: Trajectory, untrusted: frozenset[str], privileged: frozenset[str]) -> Gap | None:
    """A privileged call's arguments, or what an untrusted call before it gave, are not known."""
    hidden: Gap | None = None
    for index, step in enumerate(trajectory.steps):
        if step.tool in privileged:
            if hidden is not None:
                return hidden
            if step.args is None:
                return gap_of(trajectory, index, "args")
        if step.tool in untrusted and _result_missing(trajectory, index):
            hidden = hidden or gap_of(trajectory, index, "result")
    if _flow_possible(trajectory, untrusted, privileged) and (unsaid := _user_gap(trajectory)) is not None:
        return unsaid
    return _uncaptured(trajectory)


def _flow_possible(trajectory: Trajectory, untrusted: frozenset[str], privileged: frozenset[str]) -> bool:
    """A privileged call comes after an untrusted one, of this run or of an earlier turn."""
    seen = any(step.tool in untrusted for step in trajectory.history.steps)
    for step in trajectory.steps:
        if seen and step.tool in privileged:
            return True
        seen = seen or step.tool in untrusted
    return False


def _carried(trajectory: Trajectory, untrusted: frozenset[str], privileged: frozenset[str]) -> Iterator[Violation]:
    for argument in _arguments(trajectory):
        if trajectory.steps[argument.step].tool not in privileged:
            continue
        dirty = tuple(source for source in argument.found if source.tool in untrusted)
        if dirty and all(source.kind != "user" for source in argument.found):
            yield _tainted(trajectory, argument, dirty)


# ---- findings ----------------------------------------------------------------------------------


def _follows_taint(policy: Policy) -> bool:
    return bool(policy.untrusted and policy.privileged)


def _invented(trajectory: Trajectory, argument: Argument) -> Violation:
    name = argument_of(trajectory.steps[argument.step].tool, argument.path)
    return at_step(
        trajectory,
        argument.step,
        rule="ground",
        clause="ground",
        severity=Severity.WARN,
        message=f"{name} (step {argument.step}) is found in nothing the agent was given",
        argument=argument.path,
    )


def _tainted(trajectory: Trajectory, argument: Argument, dirty: tuple[Source, ...]) -> Violation:
    name = argument_of(trajectory.steps[argument.step].tool, argument.path)
    tools = ", ".join(sorted({named(source.tool) for source in dirty}))
    return at_step(
        trajectory,
        argument.step,
        rule="taint",
        clause="taint",
        severity=Severity.HARD,
        message=f"{name} (step {argument.step}) carries data from untrusted {tools}",
        argument=argument.path,
        sources=tuple(source.shown() for source in dirty),
        evidence=tuple(source.step for source in dirty if source.step is not None),
    )


def _cut(trajectory: Trajectory, rule: str) -> tuple[Violation, ...]:
    if len(trajectory.steps) <= MAX_STEPS:
        return ()
    message = f"provenance was checked on the first {MAX_STEPS} of {plural(len(trajectory.steps), 'step')}"
    return (on_run(trajectory, rule=rule, clause=rule, severity=Severity.HARD, message=message),)
