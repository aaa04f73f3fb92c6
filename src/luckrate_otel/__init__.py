"""luckrate-otel grades the path an AI agent took, not just its answer."""

from luckrate_otel.check import check
from luckrate_otel.gate import gate
from luckrate_otel.luck import luck_rate
from luckrate_otel.model import Step, Turn
from luckrate_otel.spec import Spec

__all__ = ["Spec", "Step", "Turn", "check", "gate", "luck_rate"]
