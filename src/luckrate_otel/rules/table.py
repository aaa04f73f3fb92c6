"""The one table of rules. A rule is one file here, one row below, its tests and its section in docs/spec.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from luckrate_otel.rules import (
    agents,
    any_of,
    args,
    args_from,
    before,
    definitions,
    each_before,
    ends_with,
    exactly,
    forbidden,
    ground,
    handoffs,
    leads_to,
    max_calls,
    max_duration,
    max_retries,
    max_step_duration,
    max_steps,
    max_tokens,
    next_call,
    no_repeat,
    not_after,
    not_both,
    relations,
    required,
    secrets,
    starts_with,
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
            each_before.RULE,
            leads_to.RULE,
            next_call.RULE,
            not_after.RULE,
            not_both.RULE,
            any_of.RULE,
            starts_with.RULE,
            ends_with.RULE,
            exactly.RULE,
            agents.RULE,
            handoffs.RULE,
            max_steps.RULE,
            max_calls.RULE,
            max_retries.RULE,
            no_repeat.RULE,
            max_duration.RULE,
            max_step_duration.RULE,
            max_tokens.RULE,
            args.RULE,
            args_from.RULE,
            relations.RULE,
            definitions.RULE,
            taint.RULE,
            ground.RULE,
            secrets.RULE,
        )
    }
)
