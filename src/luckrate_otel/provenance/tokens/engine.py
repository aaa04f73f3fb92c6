"""Both provenance rules about one trajectory, and when they cannot be judged."""

from __future__ import annotations

from collections.abc import Callable

from luckrate_otel.facts import Gap
from luckrate_otel.model import Step, Trajectory
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.tokens.atoms import Kind
from luckrate_otel.provenance.tokens.ground import JUDGED, ground
from luckrate_otel.provenance.tokens.leaves import TooMuch
from luckrate_otel.provenance.tokens.run import Run, prepare
from luckrate_otel.provenance.tokens.taint import taint
from luckrate_otel.rules.outcome import VACUOUS, Outcome

_ALL = frozenset(Kind)
_Test = Callable[[Step], bool]


class TokenEngine:
    """provenance.Engine. Answers depend on the arguments alone.

    The last run read is kept, because both rules ask about the same trajectory one after the other; it is one tuple,
    replaced whole, so that threads may share the engine.
    """

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[Trajectory, bool, Run | None] | None = None

    def ground(self, trajectory: Trajectory, policy: Policy) -> Outcome:
        """Arguments that trace to nothing, as warnings. too_large: a bound of sources, leaves or index."""
        if not any(step.args is None or step.args for step in trajectory.steps):
            return VACUOUS
        gap = _untold(trajectory)
        if gap is not None:
            return Outcome(gap=gap)
        run = self._read(trajectory, traced=_applies(trajectory, policy))
        if run is None:
            return Outcome(gap=Gap.TOO_LARGE)
        end, gap = _blocked(trajectory, _missed)
        try:
            found = ground(run, end)
        except TooMuch:
            return Outcome(gap=Gap.TOO_LARGE)
        return Outcome(found, gap or _unread(trajectory, None))

    def taint(self, trajectory: Trajectory, policy: Policy) -> Outcome:
        """Privileged calls directed by untrusted values. Vacuous unless a privileged call follows an untrusted one."""
        if not _applies(trajectory, policy):
            return VACUOUS
        gap = _untold(trajectory)
        if gap is not None:
            return Outcome(gap=gap)
        run = self._read(trajectory, traced=True)
        if run is None:
            return Outcome(gap=Gap.TOO_LARGE)
        # What an untrusted call returned unseen can only add findings; what a trusted one returned could clear them.
        end, gap = _blocked(trajectory, lambda step: _missed(step) and step.tool not in policy.untrusted)
        try:
            found = taint(run, policy, end)
        except TooMuch:
            return Outcome(gap=Gap.TOO_LARGE)
        if gap is None:
            _, gap = _blocked(trajectory, lambda step: _missed(step) and step.tool in policy.untrusted)
        return Outcome(found, gap or _unread(trajectory, policy))

    def _read(self, trajectory: Trajectory, *, traced: bool) -> Run | None:
        """The run, read once for both rules; None if it is out of bounds."""
        last = self._last
        if last is not None and last[0] is trajectory and last[1] >= traced:
            return last[2]
        try:
            run = prepare(trajectory, _ALL if traced else JUDGED)
        except TooMuch:
            run = None
        self._last = (trajectory, traced, run)
        return run


def _applies(trajectory: Trajectory, policy: Policy) -> bool:
    """taint is on, and a privileged call was issued after an untrusted result could be read."""
    if not policy.untrusted or not policy.privileged:
        return False
    read = any(step.tool in policy.untrusted for step in trajectory.history.steps)
    for step in trajectory.steps:
        if read and step.tool in policy.privileged:
            return True
        read = read or step.tool in policy.untrusted
    return False


def _untold(trajectory: Trajectory) -> Gap | None:
    """Why nothing can be said of where values came from: what the user said is not known."""
    if trajectory.history.missing:
        return Gap.HISTORY_MISSING
    if not any(turn.text.strip() for turn in trajectory.turns):
        return Gap.NO_TASK
    return None


def _missed(step: Step) -> bool:
    return step.result is None and step.error is None


def _blocked(trajectory: Trajectory, missed: _Test) -> tuple[int, Gap | None]:
    """How many steps can be judged, and why not more: a value may come from a result that was not captured."""
    for number, step in enumerate(trajectory.steps[:-1]):
        if missed(step):
            return number + 1, trajectory.gaps.get((number, "result"), Gap.NOT_CAPTURED)
    return len(trajectory.steps), None


def _unread(trajectory: Trajectory, policy: Policy | None) -> Gap | None:
    """Why the arguments of a call (taint: of a privileged call) could not be looked at."""
    for number, step in enumerate(trajectory.steps):
        if step.args is None and (policy is None or step.tool in policy.privileged):
            return trajectory.gaps.get((number, "args"), Gap.NOT_CAPTURED)
    return None


ENGINE = TokenEngine()
