"""The one table of provenance engines."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from luckrate_otel.provenance import Engine, substring, tokens

# Name in `provenance:` → engine. The first is the default.
ENGINES: Mapping[str, Engine] = MappingProxyType({"tokens": tokens.ENGINE, "substring": substring.ENGINE})
