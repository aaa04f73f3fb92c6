"""What the user asked and what the agent answered, in an n8n execution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from re import Match
from re import compile as pattern
from typing import Any

from luckrate_otel.payloads.fields import get, items, output, parse, word
from luckrate_otel.payloads.n8n.content import entries, gap_of
from luckrate_otel.payloads.n8n.execution import Execution, NodeRun

_EXPRESSION = pattern(r"\{\{(.*?)\}\}", 16)  # re.DOTALL
_PATH = pattern(r"""\s*(?:\$json|\$\(\s*["']([^"']+)["']\s*\)\.(?:item|first\(\)|last\(\))\.json)"""
                r"""((?:\??\.[A-Za-z_$][\w$]*|\??\.?\[\s*(?:\d+|"[^"]*"|'[^']*')\s*\])*)\s*""")  # fmt: skip
_KEY = pattern(r"""\.([A-Za-z_$][\w$]*)|\[\s*(?:(\d+)|"([^"]*)"|'([^']*)')\s*\]""")
# How LangChain prints a prompt into one text; a line break before the role is its only sign of a new message.
_SPOKEN = pattern(r"(?:\A|\n)(System|Human|AI|Tool): ")
# Where triggers put what the user wrote, when neither the agent's settings nor its model tell.
_TRIGGER_KEYS = ("chatInput", "message", "text", "input", "query", "question", "prompt")


def agent_name(execution: Execution, node: str) -> str:
    """What the agent is called: its node, for the Agents feature the agent that is messaged."""
    parameters = get(execution.nodes, node, "parameters")
    inline = get(parameters, "inlineAgent", "config", "name")
    chosen = [get(parameters, key, "cachedResultName") for key in ("agentId", "agent")]
    return next((name for value in (inline, *chosen) if (name := word(value))), node)


def task_texts(execution: Execution, agent: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what the user asked this agent, one text per input item; what the user said in earlier turns).

    First source that speaks: the agent's own prompt setting evaluated on its input, the prompt its model was given,
    the trigger.
    """
    earlier, last = _from_model(execution, agent)
    asked = _from_settings(execution, agent) or ((last,) if last else ()) or _from_trigger(execution)
    return asked, earlier


def final_output(execution: Execution, agent: NodeRun | None, name: str | None) -> str | None:
    """The answer in an agent run's items, one per line; else what the workflow noted of it."""
    given = entries(get(agent, "raw", "data"), "main")
    found = [get(item, "json", key) for item in given if gap_of(item) is None for key in ("output", "text")]
    answers = [text for value in found if (text := output(value)) is not None]
    if answers:
        return "\n".join(answers)
    noted = get(execution.raw, "customData", f"response_{(name or '').lower().replace(' ', '_')}")
    return word(noted) if not given else None


def system_texts(execution: Execution, agents: tuple[str, ...]) -> tuple[str, ...]:
    """The agents' instructions, those that are plain text; without a workflow, what their models were told."""
    if not execution.nodes:
        told = [_spoken(prompt, "System") for agent in agents for prompt in _first_prompts(execution, agent)]
        return tuple(dict.fromkeys(text for texts in told for text in texts))
    parameters = [get(execution.nodes, agent, "parameters") for agent in agents]
    found = [get(each, "options", "systemMessage") for each in parameters]
    found += [get(each, "inlineAgent", "config", "instructions") for each in parameters]
    return tuple(text for value in found if (text := word(value)) and not text.startswith("="))


def conversation_id(execution: Execution) -> str | None:
    """The chat session, as the trigger names it."""
    for item in entries(get(_trigger(execution), "raw", "data"), "main"):
        for path in (("json", "sessionId"), ("json", "body", "sessionId")):
            if gap_of(item) is None and (found := word(get(item, *path))):
                return found
    return None


# ---- the agent's settings -------------------------------------------------------------------------


def _from_settings(execution: Execution, agent: str) -> tuple[str, ...]:
    parameters = get(execution.nodes, agent, "parameters")
    if parameters is None:
        return ()
    template = word(get(parameters, "text")) or word(get(parameters, "message"))
    if template is None or word(get(parameters, "promptType")) in {"auto", "guardrails"}:
        template = "={{ $json.chatInput }}"
    if not template.startswith("="):
        return (template,)
    found = [_evaluated(execution, template[1:], item) for item in _agent_input(execution, agent)]
    return tuple(text for text in found if text)


def _evaluated(execution: Execution, template: str, item: Any) -> str | None:
    """The template with each expression replaced, None if any does more than name a field."""
    missing = False

    def value(match: Match[str]) -> str:
        nonlocal missing
        path = _PATH.fullmatch(match[1])
        found = None
        if path:
            source = next(iter(_items_of(execution, path[1])), None) if path[1] else item
            found = None if gap_of(source) else _follow(get(source, "json"), path[2])
        text = output(found)
        missing = missing or text is None
        return text or ""

    filled = _EXPRESSION.sub(value, template)
    return None if missing else filled.strip() or None


def _follow(value: Any, path: str) -> Any:
    for name, index, double, single in _KEY.findall(path):
        if index:
            members = items(value)
            value = members[int(index)] if len(index) < 9 and int(index) < len(members) else None
        else:
            value = get(value, name or double or single) if isinstance(value, Mapping) else None
    return value


def _agent_input(execution: Execution, agent: str) -> tuple[Any, ...]:
    """The items the agent's first run worked on: what its predecessor gave. The agent's own run does not store them."""
    run = next((run for run in execution.runs or () if run.node == agent), None)
    source = next(iter(items(get(run, "raw", "source"))), None)
    wanted, output_index = get(source, "previousNodeRun") or 0, get(source, "previousNodeOutput") or 0
    for before in _every(execution):
        if run and before.node == run.caller and before.index == wanted:
            lanes = items(get(before.raw, "data", "main"))
            return (
                items(lanes[output_index]) if isinstance(output_index, int) and -1 < output_index < len(lanes) else ()
            )
    return entries(get(_trigger(execution), "raw", "data"), "main") if run is None else ()


def _items_of(execution: Execution, node: str) -> tuple[Any, ...]:
    found = [run for run in _every(execution) if run.node == node]
    return entries(get(found[-1].raw, "data"), "main") if found else ()


def _every(execution: Execution) -> tuple[NodeRun, ...]:
    return (*execution.carried, *(execution.runs or ()))


# ---- model and trigger ----------------------------------------------------------------------------


def _from_model(execution: Execution, agent: str) -> tuple[tuple[str, ...], str | None]:
    """What the user said in the prompt of the agent's first model run: (in earlier turns, last)."""
    said = [text for prompt in _first_prompts(execution, agent) for text in _spoken(prompt, "Human")]
    return tuple(said[:-1]), said[-1] if said else None


def _first_prompts(execution: Execution, agent: str) -> tuple[str, ...]:
    """The prompt texts of an agent's first model run."""
    for run in execution.runs or ():
        if run.caller == agent and get(run.raw, "inputOverride", "ai_languageModel") is not None:
            item = next(iter(entries(run.raw.get("inputOverride"), "ai_languageModel")), None)
            prompts = items(get(item, "json", "messages")) if gap_of(item) is None else ()
            return tuple(prompt for prompt in prompts if isinstance(prompt, str))
    return ()


def _spoken(prompt: str, role: str) -> Iterator[str]:
    marks = list(_SPOKEN.finditer(prompt))
    ends = [mark.start() for mark in marks[1:]] + [len(prompt)] if marks else []
    for mark, end in zip(marks, ends, strict=True):
        if mark[1] == role and (text := prompt[mark.end() : end].strip()):
            parts = parse(text) if text.startswith("[{") else None
            spoken = [get(part, "text") for part in items(parts) if word(get(part, "text"))]
            yield "\n".join(spoken) if spoken else text


def _trigger(execution: Execution) -> NodeRun | None:
    """The node that started it: the first run that has no source."""
    return next((run for run in _every(execution) if run.caller is None and not run.raw.get("inputOverride")), None)


def _from_trigger(execution: Execution) -> tuple[str, ...]:
    found = []
    for item in entries(get(_trigger(execution), "raw", "data"), "main"):
        if gap_of(item) is None:
            fields = [get(item, *path, key) for path in (("json", "body"), ("json",)) for key in _TRIGGER_KEYS]
            found.append(next((text for value in fields if (text := word(value))), None))
    return tuple(text for text in found if text)
