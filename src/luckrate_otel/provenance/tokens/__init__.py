"""Provenance by words: where each leaf of each call's arguments came from.

`ENGINE` answers the rules `ground` and `taint`; `trace` gives the sources of every leaf. How it decides, in which forms
values are recognised and how often it is right is written down in docs/provenance.md.
"""

from luckrate_otel.provenance.tokens.engine import ENGINE, TokenEngine
from luckrate_otel.provenance.tokens.tracing import Leaf, Sighting, trace

__all__ = ["ENGINE", "Leaf", "Sighting", "TokenEngine", "trace"]
