"""Where each argument of each call came from.

Two engines answer the rules `ground` and `taint`; a spec chooses with `provenance:`. `tokens` (default) follows values
through the run; `substring` has luckrate 0.3's exact semantics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from luckrate_otel.model import Trajectory
from luckrate_otel.rules.outcome import Outcome
from luckrate_otel.telemetry import nothing


@dataclass(frozen=True, slots=True)
class Policy:
    """The parts of a spec that provenance reads. Tool names are canonical (aliases resolved).

    untrusted, privileged: tools; taint is off unless both are given. targets: privileged tool → argument paths that
    decide where the action goes (absent tool: the engine's own judgement). fields: untrusted tool → JSON paths of its
    result that the platform writes itself and that are therefore trusted. delegates: untrusted tools the user may ask
    the agent to act on.
    """

    untrusted: tuple[str, ...] = ()
    privileged: tuple[str, ...] = ()
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=nothing)
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=nothing)
    delegates: tuple[str, ...] = ()


class Engine(Protocol):
    """Answers both rules about one trajectory; pure, deterministic, linear in the size of the run."""

    def ground(self, trajectory: Trajectory, policy: Policy) -> Outcome: ...

    def taint(self, trajectory: Trajectory, policy: Policy) -> Outcome: ...
