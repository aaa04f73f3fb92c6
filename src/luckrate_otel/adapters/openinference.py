"""OpenInference (`openinference.span.kind`): LangChain, CrewAI, OpenAI Agents SDK, smolagents and every other of its
emitters.

openinference-semantic-conventions 0.1.x. Messages are flattened into indexed attributes, arguments and results are
`input.value` and `output.value`, whose meaning depends on the kind of span.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from luckrate_otel.adapters import langgraph
from luckrate_otel.adapters.base import call_facts, facts, name_of, tokens
from luckrate_otel.adapters.failure import failure, first_line
from luckrate_otel.content.arguments import POSITIONAL, Arguments, arguments, from_signature, is_signature
from luckrate_otel.content.definitions import definitions
from luckrate_otel.content.messages import message, messages, text_in, texts, without_system
from luckrate_otel.content.results import returned, tells_failure
from luckrate_otel.content.structured import is_redacted, mapping, structured, text_of
from luckrate_otel.facts import NO_RETURN, Call, Facts, Gap, Message, Role, ToolDefinition
from luckrate_otel.telemetry import Span, Status, Value

NAME = "openinference"

KIND = "openinference.span.kind"
INPUT, OUTPUT, METADATA = "input.value", "output.value", "metadata"
TOOL_NAME, TOOL_PARAMETERS, TOOL_ID = "tool.name", "tool.parameters", "tool.id"
AGENT_NAME, NODE = "agent.name", "graph.node.id"
AGENT_ROLE = "tool.agent_role"  # CrewAI's event listener
# smolagents ends its loop with a tool span, and a message, of this name: the answer, not a call.
FINAL_ANSWER = "final_answer"

_MESSAGE = re.compile(r"llm\.(input|output)_messages\.(\d+)\.message\.(.+)")
_HANDOFF = re.compile(r"handoff to (.+)")
# smolagents' prompt template for a managed agent, around the task that the manager's model wrote.
_MANAGED = re.compile(
    r"You're a helpful agent named '(?P<name>[^']+)'\.\s*\n(?:.*?---\s*\nTask:\s*\n(?P<task>.*?)\n\s*---)?", re.DOTALL
)
_ROLE_OF = {"TOOL": Role.TOOL, "LLM": Role.MODEL, "AGENT": Role.AGENT, "CHAIN": Role.WRAPPER}
# repr() of an object, often cut (LlamaIndex): no answer in the agent's words.
_OBJECT = re.compile(r"[A-Z]\w+\(\w+=")
_RUN_SUFFIXES = (".run", ".stream", ".arun", ".__call__", ".acall")
# LlamaIndex's workflow steps name their agent only inside the repr of the event that they were given.
_CURRENT_AGENT = re.compile(r"current_agent_name='([^'\\]+)'")
_DSPY_END = "finish"  # DSPy's ReAct ends its loop with a tool of this name


def read(span: Span) -> Facts | None:
    """Facts of an OpenInference span; None for retrievers, embeddings, guardrails and spans without a kind."""
    kind = span.attributes.get(KIND)
    role = _ROLE_OF.get(kind.upper()) if isinstance(kind, str) else None
    if role is Role.TOOL:
        return _tool(span)
    if role is Role.MODEL:
        return _model(span)
    return _container(span, role) if role else None


# ---- tools -------------------------------------------------------------------------------------


def _tool(span: Span) -> Facts | None:
    attributes = span.attributes
    name = text_of(attributes.get(TOOL_NAME))
    handoff = _HANDOFF.fullmatch(span.head.name)
    if name is None and handoff:
        return _handoff(span, handoff[1])
    tool = name or _without_suffix(span.head.name)
    args = _arguments(span)
    if tool == FINAL_ANSWER and "smolagents" in span.head.scope:
        return facts(Role.WRAPPER, NAME, span, final_output=_answer(args[0]))
    if tool == _DSPY_END and span.head.scope.endswith(".dspy"):
        return facts(Role.WRAPPER, NAME, span)
    back = returned(attributes.get(OUTPUT))
    ok, error = failure(span)
    if ok and back.text is None and span.head.status is Status.UNSET and "crewai" in span.head.scope:
        ok, error = None, NO_RETURN  # a wrapped method left by KeyboardInterrupt: only then is no status set
    if ok and (back.ok is False or (back.ok is None and tells_failure(back.text))):
        ok, error = False, first_line(back.text) or "error"
    metadata = mapping(attributes.get(METADATA)) if METADATA in attributes else {}
    return call_facts(
        NAME,
        span,
        tool,
        args,
        back,
        (ok, error),
        agent=langgraph.agent_of(metadata) or name_of(attributes.get(AGENT_ROLE)),
        delegate=_coworker(tool, args[0]),
        call_id=text_of(attributes.get(TOOL_ID)) or text_of(attributes.get("tool_call.id")) or back.call_id,
    )


def _handoff(span: Span, target: str) -> Facts:
    """OpenAI Agents SDK: a handoff is a TOOL span without a tool; the call itself is in the model's output."""
    return facts(Role.WRAPPER, NAME, span, handoff=target)


def _arguments(span: Span) -> Arguments:
    value = span.attributes.get(INPUT)
    if value is None:
        has_none = span.attributes.get(OUTPUT) is not None or span.head.status is not Status.UNSET
        # LangChain leaves the attribute out for a call without arguments; with input hidden it says __REDACTED__.
        return ({}, None) if has_none and "langchain" in span.head.scope else (None, Gap.NOT_CAPTURED)
    if is_redacted(value):
        return None, Gap.REDACTED
    bare = isinstance(value, str) and span.attributes.get("input.mime_type") != "application/json"
    if bare and value[:1] != "{":
        # LangChain, one string argument: the bare value, not to be parsed ("88213" would become a number).
        return {POSITIONAL: (value,)}, None
    found, gap = arguments(value)
    if found is not None and is_signature(found):
        return from_signature(found, _parameter_names(span))
    return found, gap


def _parameter_names(span: Span) -> tuple[str, ...]:
    schema = mapping(span.attributes.get(TOOL_PARAMETERS))
    inner = schema.get("properties")
    return tuple(str(k) for k in (inner if isinstance(inner, Mapping) else schema))


def _answer(args: Mapping[str, Value] | None) -> str | None:
    first = next(iter((args or {}).values()), None)
    if isinstance(first, tuple):  # without its name
        first = first[0] if first else None
    return first if isinstance(first, str) else None


def _coworker(tool: str, args: Mapping[str, Value] | None) -> str | None:
    """CrewAI delegates through a tool; without the event listener the delegated agent has no span of its own."""
    if args and tool.lower().replace(" ", "_") in ("delegate_work_to_coworker", "ask_question_to_coworker"):
        return text_of(args.get("coworker"))
    return None


def _without_suffix(name: str) -> str:
    return next((name[: -len(s)] for s in _RUN_SUFFIXES if name.endswith(s) and len(name) > len(s)), name)


# ---- models ------------------------------------------------------------------------------------


def _model(span: Span) -> Facts:
    attributes = span.attributes
    inputs, outputs = _flattened(attributes)
    if not inputs:
        inputs = messages(attributes.get(INPUT)) if isinstance(attributes.get(INPUT), str) else ()
    inputs, system = without_system(inputs)
    if not outputs:
        outputs = _outputs_of_value(attributes.get(OUTPUT))
    metadata = mapping(attributes.get(METADATA)) if METADATA in attributes else {}
    finish = text_of(attributes.get("llm.finish_reason"))
    return facts(
        Role.MODEL,
        NAME,
        span,
        agent=langgraph.agent_of(metadata),
        inputs=inputs,
        outputs=tuple(_without_answer(outputs)),
        system=system,
        definitions=_definitions(attributes),
        finish_reasons=(finish,) if finish else (),
        tokens=tokens(attributes, ("llm.token_count.prompt", "llm.token_count.completion")),
    )


def _without_answer(outputs: Iterable[Message]) -> Iterable[Message]:
    for found in outputs:
        kept = tuple(p for p in found.parts if not (isinstance(p, Call) and p.tool == FINAL_ANSWER))
        if kept:
            yield Message(found.role, kept)


def _outputs_of_value(value: Value) -> tuple[Message, ...]:
    """The raw answer, used where no flattened messages are: CrewAI's event listener puts OpenAI tool calls there."""
    found, _ = structured(value)
    if isinstance(found, (list, tuple)) and found and all(isinstance(v, Mapping) and "function" in v for v in found):
        one = message({"role": "assistant", "tool_calls": found}, "assistant")
        return (one,) if one else ()
    if isinstance(found, str) and found:
        return messages(found, "assistant")
    if isinstance(found, Mapping) and isinstance(found.get("choices"), (list, tuple)):
        return messages(found["choices"], "assistant")
    if isinstance(found, Mapping) and ("role" in found or "content" in found):
        return messages(found, "assistant")
    return ()


def _flattened(attributes: Mapping[str, Value]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """`llm.input_messages.N.message.…` and outputs, gathered in one pass over the attributes."""
    gathered: dict[str, dict[int, dict[str, Value]]] = {"input": {}, "output": {}}
    for key, value in attributes.items():
        if key.startswith("llm.") and (found := _MESSAGE.fullmatch(key)):
            gathered[found[1]].setdefault(int(found[2][:6]), {})[found[3]] = value
    return (
        tuple(_unflatten(gathered["input"][n], "user") for n in sorted(gathered["input"])),
        tuple(_unflatten(gathered["output"][n], "assistant") for n in sorted(gathered["output"])),
    )


def _unflatten(fields: Mapping[str, Value], role: str) -> Message:
    calls: dict[str, dict[str, Value]] = {}
    contents = []
    for key, value in fields.items():
        head, _, rest = key.partition(".")
        if head == "tool_calls":
            at, _, name = rest.partition(".")
            calls.setdefault(at, {})[name.removeprefix("tool_call.")] = value
        elif head == "contents" and key.endswith("message_content.text"):
            contents.append(value)
    found = message(
        {
            "role": fields.get("role", role),
            "content": fields.get("content") if fields.get("content") is not None else "\n".join(map(str, contents)),
            "tool_calls": [_unquoted(calls[at]) for at in sorted(calls, key=lambda a: (len(a), a))],
            "tool_call_id": fields.get("tool_call_id"),
            "name": fields.get("name"),
        },
        role,
    )
    return found or Message(role, ())


def _unquoted(call: Mapping[str, Value]) -> dict[str, Value]:
    return {
        "id": call.get("id"),
        "name": _bare(call.get("function.name")),
        "arguments": call.get("function.arguments"),
    }


def _bare(name: Value) -> Value:
    """CrewAI's event listener writes repr(name): 'lookup_order' with its quotes."""
    return name[1:-1] if isinstance(name, str) and len(name) > 2 and name[0] == name[-1] == "'" else name


def _definitions(attributes: Mapping[str, Value]) -> tuple[ToolDefinition, ...]:
    if "llm.tools" in attributes:
        return tuple(map(_with_bare_names, definitions(attributes["llm.tools"])))
    found: list[ToolDefinition] = []
    while (schema := attributes.get(f"llm.tools.{len(found)}.tool.json_schema")) is not None:
        one = definitions(schema)
        if not one:
            break
        found += one[:1]
    return tuple(found)


def _with_bare_names(definition: ToolDefinition) -> ToolDefinition:
    """The same listener cuts at a depth, below which it writes repr: the names of the required arguments, too."""
    required = definition.parameters.get("required") if definition.parameters is not None else None
    if definition.parameters is None or not isinstance(required, list):
        return definition
    return replace(definition, parameters={**definition.parameters, "required": [_bare(name) for name in required]})


# ---- agents and chains -------------------------------------------------------------------------


def _container(span: Span, role: Role) -> Facts:
    attributes = span.attributes
    metadata = mapping(attributes.get(METADATA)) if METADATA in attributes else {}
    name = _agent_name(span, role)
    if "langchain" in span.head.scope:
        # create_react_agent's `agent` node says AGENT, create_agent's graph says CHAIN: only the metadata is right.
        graph = langgraph.is_graph(metadata, span.head.name) if metadata else role is Role.AGENT
        role = Role.AGENT if graph else Role.WRAPPER
        name = name_of(span.head.name) if graph else None
    elif role is Role.AGENT and name is None:
        role = Role.WRAPPER  # OpenAI Agents SDK: the trace itself, no agent
    if role is Role.WRAPPER and span.head.scope.endswith(".llama_index"):
        name = _current_agent(attributes)
    if role is Role.WRAPPER and "langgraph_node" in metadata:
        return facts(role, NAME, span)  # a node: what it was given is state, and often large
    task, final = _task(attributes.get(INPUT)), _final(attributes.get(OUTPUT))
    if role is Role.AGENT and task and (managed := _MANAGED.match(task)):
        return _managed(span, managed["name"], managed["task"], final)
    return facts(
        role,
        NAME,
        span,
        agent=name,
        task_input=task,
        final_output=None if span.head.status is Status.ERROR else final,
    )


def _managed(span: Span, name: str, task: str | None, final: str | None) -> Facts:
    """smolagents calls a managed agent like a tool, without a tool span: its own span is the call, its prompt the
    argument. task None: the prompt was cut before its end.
    """
    ok, error = failure(span)
    return facts(
        Role.AGENT,
        NAME,
        span,
        agent=name_of(name),
        tool=name,
        args=None if task is None else {"task": task.strip()},
        args_gap=Gap.TRUNCATED if task is None else None,
        result=final if ok else None,
        ok=ok,
        error=error,
        final_output=final,
    )


def _agent_name(span: Span, role: Role) -> str | None:
    attributes = span.attributes
    found = name_of(attributes.get(AGENT_NAME)) or name_of(attributes.get(NODE))
    if found is None and role is Role.AGENT and "openai_agents" not in span.head.scope:
        found = name_of(_without_suffix(span.head.name))
    return found if role is Role.AGENT else None


def _current_agent(attributes: Mapping[str, Value]) -> str | None:
    for key in (INPUT, OUTPUT):
        value = attributes.get(key)
        if isinstance(value, str) and (found := _CURRENT_AGENT.search(value)):
            return name_of(found[1])
    return None


def _task(value: Value) -> str | None:
    """What a chain or agent was asked: its last user message, or the one text among its inputs."""
    found, _ = structured(value)
    if isinstance(found, str):
        return found if found and not is_redacted(found) else None
    if not isinstance(found, Mapping):
        return None
    if isinstance(found.get("messages"), (list, tuple, str)):
        asked = texts(messages(found["messages"]), "user")
        return asked[-1] if asked else None
    for key in ("task", "request", "input", "query", "question", "user_input", "prompt", "message"):
        if isinstance(found.get(key), str):
            return str(found[key])
    only = [v for v in found.values() if isinstance(v, str)]
    return only[0] if len(only) == 1 and len(found) == 1 else None


def _final(value: Value) -> str | None:
    """What a chain or agent answered: its last message that is not a tool's, or the one text of its output."""
    found, _ = structured(value)
    if isinstance(found, str):
        return found if found and not is_redacted(found) and not _OBJECT.match(found) else None
    if not isinstance(found, Mapping):
        return None
    if isinstance(found.get("messages"), (list, tuple)):
        told = [m for m in messages(found["messages"], "assistant") if m.role != "tool"]
        last = told[-1] if told else None
        return text_in(last) or None if last is not None and last.role == "assistant" else None
    for key in ("raw", "output", "answer", "response", "result", "content", "text"):
        if isinstance(found.get(key), str):
            return str(found[key])
    return None
