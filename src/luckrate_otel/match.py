"""`match:` which runs a spec is for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from luckrate_otel.known import suggestion
from luckrate_otel.model import Trajectory
from luckrate_otel.rules.key import Place, entries, texts
from luckrate_otel.rules.patterns import pattern
from luckrate_otel.telemetry import Value

# Short name or attribute → patterns, any of which fits; all names must fit.
Match = Mapping[str, tuple[str, ...]]

# Short names beside attributes, which always have a dot.
SHORT_NAMES = ("agent", "service", "adapter")


def parse_match(value: Value, place: Place) -> Match:
    """`{agent: refund*, service: [shop, shop-eu], deployment.environment: prod}`; `*` stands for any text."""
    read: dict[str, tuple[str, ...]] = {}
    for name, item in entries(value, place, "a mapping from agent, service, adapter or attributes to patterns"):
        if name not in SHORT_NAMES and "." not in name:
            hint = suggestion(name, SHORT_NAMES) or ", whose name has a dot"
            place.at(name).problem(f"neither agent, service, adapter nor an attribute{hint}")
        read[name] = texts(item, place.at(name))
    return MappingProxyType(read)


def fits(match: Match, trajectory: Trajectory) -> bool:
    """Whether a run is one that the spec is for. What the run does not tell fits nothing, not even `*`."""
    return all(
        any(_like(written, told) for written in patterns for told in _told(name, trajectory))
        for name, patterns in match.items()
    )


def _told(name: str, trajectory: Trajectory) -> tuple[str, ...]:
    if name == "adapter":
        return trajectory.adapters
    value = (
        trajectory.agent
        if name == "agent"
        else trajectory.attributes.get("service.name" if name == "service" else name)
    )
    if value is None:
        return ()
    return (str(value).lower() if isinstance(value, bool) else str(value),)


def _like(written: str, value: str) -> bool:
    return pattern(rf"(?s)\A{'.*'.join(map(re.escape, written.split('*')))}\z").found_in(value)
