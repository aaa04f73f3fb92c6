"""Regular expressions in a spec: made ready, and refused where they are none or could take for ever."""

from __future__ import annotations

import re

from luckrate_otel.rules.backtracking import runs_away
from luckrate_otel.rules.key import Place, kind
from luckrate_otel.telemetry import Value


def parse_pattern(value: Value, place: Place) -> re.Pattern[str] | None:
    """A regular expression of Python's; None, with the problem noted, where it cannot be used."""
    if not isinstance(value, str):
        place.problem(f"expected a regular expression, got {kind(value)}")
        return None
    if not value:
        place.problem("expected a regular expression that is not empty")
        return None
    try:
        pattern = re.compile(value)
        endless = runs_away(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        place.problem(f"not a regular expression: {error}")
        return None
    if endless:
        place.problem(
            "can take for ever on some texts, as what it repeats can be cut in several ways, like (a+)+; "
            "let each repeat end at a character that cannot go on with it, like ([a-z]+,)+"
        )
        return None
    return pattern
