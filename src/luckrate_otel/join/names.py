"""Names of tools without the spelling that models do not see: one tool, however an instrumentation writes it."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=4096)
def plain_name(tool: str) -> str:
    """`Delegate work to coworker` → `delegate_work_to_coworker`."""
    return re.sub(r"[^a-z0-9]+", "_", tool.lower()).strip("_")
