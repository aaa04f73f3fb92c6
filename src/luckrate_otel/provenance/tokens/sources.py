"""Every text an argument may come from, in the order the agent got to see it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from luckrate_otel.model import Trajectory
from luckrate_otel.provenance.tokens.leaves import MAX_DEPTH, TooMuch
from luckrate_otel.record import record
from luckrate_otel.rules.finding import named

# Reading costs about 25 ms and, for a moment, 10 MB of words per million characters.
MAX_TEXT = 4_000_000
MAX_CHARS = 16_000_000  # of all texts of one run; 500 steps with 8 kB results are 4 million


class Origin(StrEnum):
    USER = "user"
    SYSTEM = "system"
    EARLIER_USER = "earlier user"
    EARLIER_RESULT = "earlier result"
    RESULT = "result"


@record(frozen=True, slots=True)
class Source:
    """One text. since: index of the first step that could use it. step: of the call a result belongs to."""

    origin: Origin
    text: str
    since: int
    step: int | None = None
    tool: str | None = None

    @property
    def from_user(self) -> bool:
        return self.origin in (Origin.USER, Origin.EARLIER_USER)

    def __str__(self) -> str:
        """How findings name it: `fetch_page #2`, `user`, `earlier lookup_order`."""
        if self.origin is Origin.RESULT:
            return f"{named(self.tool or '')} #{self.step}"
        return f"earlier {named(self.tool or '')}" if self.origin is Origin.EARLIER_RESULT else str(self.origin)


def sources(trajectory: Trajectory) -> tuple[Source, ...]:
    """The texts of one run.

    TooMuch: a text over MAX_TEXT, or more than MAX_CHARS in all.
    """
    found = [Source(Origin.SYSTEM, text, 0) for text in trajectory.system]
    found += [Source(Origin.EARLIER_USER, text, 0) for text in trajectory.history.turns]
    for step in trajectory.history.steps:
        if step.result:
            found.append(Source(Origin.EARLIER_RESULT, step.result, 0, None, step.tool))
    found += [Source(Origin.USER, turn.text, turn.before_step) for turn in trajectory.turns]
    for number, step in enumerate(trajectory.steps):
        text = step.result if step.result is not None else step.error
        if text:
            found.append(Source(Origin.RESULT, text, number + 1, number, step.tool))
    sizes = [len(source.text) for source in found]
    if sum(sizes) > MAX_CHARS or max(sizes, default=0) > MAX_TEXT:
        raise TooMuch
    return tuple(found)


def offered(trajectory: Trajectory) -> tuple[str, ...]:
    """What the tool definitions name, and the names of tools and agents: known to the model, told by nobody.

    TooMuch: definitions nested beyond reason.
    """
    found = [text for tool in trajectory.definitions for text in (tool.name, *_offered(tool.parameters, 0))]
    return (*found, *sorted({step.agent for step in trajectory.steps} - {"main"}))


def _offered(schema: Any, depth: int) -> list[str]:
    """What a parameter schema itself names: enum values, constants, defaults, examples, and its descriptions."""
    if depth > MAX_DEPTH:
        raise TooMuch
    if isinstance(schema, (list, tuple)):
        return [text for item in schema for text in _offered(item, depth + 1)]
    if not isinstance(schema, Mapping):
        return []
    found: list[str] = []
    for key, value in schema.items():
        if key in ("enum", "const", "default", "examples", "description"):
            values = value if isinstance(value, (list, tuple)) else (value,)
            found += [str(item) for item in values if isinstance(item, (str, int, float))]
        elif isinstance(value, (Mapping, list, tuple)):
            found += _offered(value, depth + 1)
    return found
