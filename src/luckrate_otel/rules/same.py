"""`same:` which calls belong together, because they speak of the same order, user or file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from luckrate_otel.canonical import canonical
from luckrate_otel.facts import Gap
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.finding import gap_of
from luckrate_otel.rules.key import Place, entries, texts
from luckrate_otel.rules.path import Path, Unreadable, follow, number, parse_path, result_value
from luckrate_otel.telemetry import Value

# What a call speaks of: one text per correlated path.
About = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Located:
    """A value of a call: at a path of its arguments, or of its result."""

    path: Path
    in_result: bool = False

    def read(self, trajectory: Trajectory, index: int) -> str | Gap:
        """The value as text, "" where there is none; 40 and "40" are one text."""
        step = trajectory.steps[index]
        part = "result" if self.in_result else "args"
        if (step.result if self.in_result else step.args) is None:
            return gap_of(trajectory, index, part)
        try:
            found = follow(result_value(step.result or "") if self.in_result else step.args, self.path)
        except Unreadable:
            return ""
        return "\x1f".join(map(_text, found))


@dataclass(frozen=True, slots=True)
class Same:
    """Where each correlated value stands, in the first and in the second call of a clause. Empty: all calls are one."""

    first: tuple[Located, ...] = ()
    then: tuple[Located, ...] = ()


def about(where: tuple[Located, ...], trajectory: Trajectory, index: int) -> About | Gap:
    """What a call speaks of, or why that cannot be told. Calls that lack the value are about nothing, together."""
    read = [located.read(trajectory, index) for located in where]
    gap = next((item for item in read if isinstance(item, Gap)), None)
    return tuple(read) if gap is None else gap


def parse_same(value: Value, place: Place) -> Same:
    """`order_id`, `[order_id, line]`, or `{result.order.id: order_id}`: the path in the first call → in the second."""
    if isinstance(value, Mapping):
        pairs = [
            (parse_located(key, place.at(key)), parse_located(text, place.at(key)))
            for key, item in entries(value, place, "paths")
            for text in texts(item, place.at(key))[:1]
        ]
        return Same(tuple(a for a, _ in pairs), tuple(b for _, b in pairs))
    both = tuple(parse_located(text, place) for text in texts(value, place))
    return Same(both, both)


def parse_located(value: str, place: Place) -> Located:
    """`order_id`, `args.order_id`, `result.order.id`, or `result` for the whole of it."""
    if value == "result" or value.startswith(("result.", "result[")):
        return Located(parse_path(value.removeprefix("result"), place), in_result=True)
    return Located(parse_path(value.removeprefix("args."), place))


def _text(value: Value) -> str:
    """A text as it is, since 007 and 7 may be two orders; a number as a model would write it in a text."""
    if isinstance(value, str):
        return value
    as_number = number(value)
    return canonical(value) if as_number is None else str(as_number)


# No correlation: every call is about the same.
ALL = Same()
