"""One reading of a run: what fits a clause, when it cannot be told of every call.

A clause is read twice if need be. The trusting reading accuses only what is certain: a call that may fit counts where
it clears, not where it accuses. The doubting reading turns that round. What only the doubting one finds is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from luckrate_otel.facts import Gap
from luckrate_otel.model import Trajectory
from luckrate_otel.record import record
from luckrate_otel.rules.calls import Calls
from luckrate_otel.rules.order import Order
from luckrate_otel.rules.same import About, Located, about


@record(frozen=True, slots=True)
class Hit:
    """A call that fits. about None: it may be about anything."""

    step: int
    about: About | None = ()


@dataclass(slots=True)
class Lens:
    """gap: why something could not be told, None while everything could."""

    trajectory: Trajectory
    order: Order
    doubting: bool = False
    gap: Gap | None = field(default=None)

    def accused(self, calls: Calls, same: tuple[Located, ...] = ()) -> Iterator[Hit]:
        """The calls that a clause asks something of, in order."""
        return self._hits(calls, same, maybe=self.doubting)

    def clearing(self, calls: Calls, same: tuple[Located, ...] = ()) -> Iterator[Hit]:
        """The calls that answer what a clause asks, in order."""
        return self._hits(calls, same, maybe=not self.doubting)

    def clears(self, calls: Calls, step: int) -> bool:
        """Whether one step answers."""
        return self._told(calls.fit(self.trajectory, step), maybe=not self.doubting)

    def _hits(self, calls: Calls, same: tuple[Located, ...], *, maybe: bool) -> Iterator[Hit]:
        if not calls.where and not same:  # the tool's name tells; a third of what such a clause takes
            yield from [Hit(step) for step, made in enumerate(self.trajectory.steps) if made.tool in calls.tools]
            return
        for step, made in enumerate(self.trajectory.steps):
            if made.tool not in calls.tools or not self._told(calls.fit(self.trajectory, step), maybe=maybe):
                continue
            speaks = about(same, self.trajectory, step) if same else ()
            if not isinstance(speaks, Gap):
                yield Hit(step, speaks)
            elif self._told(speaks, maybe=maybe):
                yield Hit(step, None)

    def _told(self, answer: bool | Gap, *, maybe: bool) -> bool:
        if isinstance(answer, Gap):
            self.gap = self.gap or answer
            return maybe
        return answer
