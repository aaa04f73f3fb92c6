"""Which calls a clause speaks of: a tool, one of several tools, or those of them that `where:` lets through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from luckrate_otel.facts import Gap
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.finding import named
from luckrate_otel.rules.key import Place, block, tool
from luckrate_otel.rules.where import Where, fits, parse_where
from luckrate_otel.telemetry import Value


@dataclass(frozen=True, slots=True)
class Calls:
    """tools: canonical names, any of which is meant."""

    tools: tuple[str, ...]
    where: Where = ()

    def fit(self, trajectory: Trajectory, index: int) -> bool | Gap:
        """Whether a step is such a call, or why that cannot be told."""
        if trajectory.steps[index].tool not in self.tools:
            return False
        return fits(self.where, trajectory, index) if self.where else True

    def __str__(self) -> str:
        """`lookup_order or find_order`, for messages; the filter's own words stand in the spec."""
        names = " or ".join(map(named, self.tools))
        return f"{names} (where)" if self.where else names

    @property
    def tool(self) -> str | None:
        """The tool, where it is one."""
        return self.tools[0] if len(self.tools) == 1 else None


def parse_calls(value: Value, place: Place) -> Calls:
    """`issue_refund`, `[lookup_order, find_order]` or `{tool: issue_refund, where: {amount: {gt: 100}}}`."""
    if not isinstance(value, Mapping):
        return Calls(tool_list(value, place))
    read = block(value, place, ("tool", "where"), "a tool, tools, or a mapping with tool and where")
    if "tool" not in read:
        place.problem("tool is missing")
    return Calls(
        tool_list(read["tool"], place.at("tool")) if "tool" in read else (),
        parse_where(read["where"], place.at("where")) if "where" in read else (),
    )


def tool_list(value: Value, place: Place) -> tuple[str, ...]:
    """A tool, or a list of at least one."""
    if isinstance(value, list | tuple):
        if not value:
            place.problem("names no tool")
        return tuple(tool(item, place.at(i)) for i, item in enumerate(value))
    return (tool(value, place),)
