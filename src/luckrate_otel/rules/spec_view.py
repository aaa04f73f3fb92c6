"""What rules see of the spec that they are asked under. `Spec` itself is made from the table of rules, above them."""

from __future__ import annotations

from typing import Protocol, TypeVar

from luckrate_otel.model import Trajectory
from luckrate_otel.provenance import Engine, Policy
from luckrate_otel.provenance.tokens import Leaf
from luckrate_otel.rules.key import Key

T = TypeVar("T")


class SpecView(Protocol):
    """See `Spec` for what each of them says."""

    def get(self, key: Key[T]) -> T: ...

    @property
    def order(self) -> str: ...

    @property
    def writes_order(self) -> bool: ...

    @property
    def engine(self) -> Engine: ...

    @property
    def policy(self) -> Policy: ...

    def trace(self, trajectory: Trajectory) -> tuple[Leaf, ...]: ...
