"""The one table of rules. A rule is one file here, one row below, its tests and its section in docs/spec.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from luckrate_otel.rules import (
    before,
    forbidden,
    ground,
    max_steps,
    no_repeat,
    required,
    secrets,
    taint,
    unknown_tool,
)
from luckrate_otel.rules.rule import Rule

# In the order violations are reported in.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        rule.id: rule
        for rule in (
            unknown_tool.RULE,
            required.RULE,
            forbidden.RULE,
            before.RULE,
            max_steps.RULE,
            no_repeat.RULE,
            taint.RULE,
            ground.RULE,
            secrets.RULE,
        )
    }
)
