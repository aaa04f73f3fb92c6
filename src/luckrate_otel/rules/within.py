"""`within:` how far apart two calls may be: in steps, or in time from issue to issue."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from luckrate_otel.plural import plural
from luckrate_otel.rules.key import Place, duration, shown
from luckrate_otel.rules.order import Order
from luckrate_otel.telemetry import Value

_STEPS = re.compile(r"([0-9]{1,9})\s*steps?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Within:
    """steps: how many calls later at most. ms: milliseconds, from one call's issue to the other's."""

    steps: float = inf
    ms: float = inf

    def holds(self, order: Order, a: int, b: int) -> bool:
        """Whether a later call b is near enough to a. Once it is not, no call after b is."""
        return b - a <= self.steps and order.issued[b] - order.issued[a] <= self.ms

    def __str__(self) -> str:
        if self.steps < inf:
            return f"within {plural(int(self.steps), 'step')}"
        return f"within {self.ms / 1000:g} s"

    @property
    def bounded(self) -> bool:
        return self.steps < inf or self.ms < inf


ANYWHERE = Within()


def parse_within(value: Value, place: Place) -> Within:
    """`3 steps`, `30s`, or a number of seconds."""
    match = _STEPS.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        if int(match[1]) == 0:
            place.problem("expected at least 1 step")
        return Within(steps=int(match[1]))
    length = duration(value)
    if length is None:
        expected = 'steps like "3 steps", seconds, or a duration like "10s" or "2m"'
        place.problem(f"expected {expected}, got {shown(value)}")
        return ANYWHERE
    return Within(ms=length * 1000)
