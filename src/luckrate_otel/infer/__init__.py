"""Known-good runs → a proposed spec, each line with its support: a start to edit, not a verdict."""

from luckrate_otel.infer.propose import Proposal, infer, proposed

__all__ = ["Proposal", "infer", "proposed"]
