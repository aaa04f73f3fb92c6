"""luckrate-otel grades the path an AI agent took, not just its answer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from luckrate_otel.check import check
from luckrate_otel.gate import gate
from luckrate_otel.luck import luck_rate
from luckrate_otel.model import Step, Turn
from luckrate_otel.spec import Spec

if TYPE_CHECKING:
    from luckrate_otel.suite import evaluate, report

__all__ = ["Spec", "Step", "Turn", "check", "evaluate", "gate", "luck_rate", "report"]


def __getattr__(name: str) -> Any:
    """The suite starts threads and event loops and writes files; who only grades does not load it."""
    if name in {"evaluate", "report"}:
        return getattr(import_module("luckrate_otel.suite"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
