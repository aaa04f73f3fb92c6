"""What the fault tests measured, for docs/reliability.md: written where LUCKRATE_FIGURES says, else nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path


def note(fault: str, **figures: float) -> None:
    """One line of JSON for one fault."""
    path = os.environ.get("LUCKRATE_FIGURES")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": fault, **figures}) + "\n")
