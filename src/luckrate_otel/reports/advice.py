"""What to do about a finding: one line per rule on how to mend it, and how to silence it where it is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

# Rule id → how the agent, or the spec, is mended. A rule that is missing here gets `GENERAL`.
MEND: Mapping[str, str] = MappingProxyType(
    {
        "unknown_tool": "take the tool away from the agent, or add it to tools (or to aliases, if it is another name)",
        "required": "tell the agent to make this call in every run, or guard the answer on it",
        "forbidden": "take the tool away from the agent, or drop it from forbidden if it may be called",
        "before": "let the later tool refuse until the earlier one was called",
        "max_steps": "look for needless calls first; raise the budget only if good runs need more",
        "no_repeat": "let the agent keep the first result, or leave the tool out if its answers change",
        "ground": "find out where the value came from; if the user gave it in a form not seen here, record that turn",
        "taint": "have the value confirmed by the user, or looked up from a trusted tool, before the call",
        "secrets": "rotate what leaked, and pass credentials by reference instead of through the model",
        "max_retries": "let the agent change the call, or escalate, after the failures allowed",
        "max_calls": "look for a loop first; raise the limit only if good runs need more",
        "max_duration": "look for the slowest steps of the run; raise the limit only if good runs need more",
        "max_step_duration": "put a timeout on the tool, or raise its limit",
        "max_tokens": "shorten what the tools give back to the model, or raise the budget",
        "leads_to": "let the agent make the second call whenever the first one is made",
        "next": "let the agent make the second call directly after the first",
        "not_after": "let the second tool refuse once the first was called",
        "not_both": "let the agent choose one of the two tools",
        "each_before": "ask for one call of the first tool per call of the second, about the same thing",
        "starts_with": "tell the agent which call comes first",
        "ends_with": "tell the agent which call comes last",
        "exactly": "look for a repeated or missing call",
        "any_of": "let the agent make at least one of these calls",
        "args": "tell the model the argument's form in the tool's own schema, and let the tool refuse others",
        "args.from": "let the agent take the argument from the source that the spec names",
        "definitions": "give the model the tool's schema as it is, and let the tool refuse arguments it does not know",
        "relations": "let the tool compare the two values itself and refuse",
        "agents": "take the tool away from this agent, or add it to the agent's tools in the spec",
        "handoffs": "remove the handoff from the agent, or allow it in handoffs",
        "run_failed": "mend what raised; a run that did not finish certifies nothing",
    }
)

GENERAL = "look at the step and its evidence, then change the agent, or the clause if it asks for too much"


def mend(rule: str) -> str:
    """How a finding of this rule is mended, in one line."""
    return MEND.get(rule, GENERAL)


def silence(rule: str) -> str:
    """How findings of this rule are silenced, in one line."""
    if rule == "run_failed":
        return "cannot be silenced"
    return f"severity: {{{rule}: off}} in the spec (or warn: shown, never fails), or accept it with --baseline"
