"""LangSmith's OpenTelemetry export (`langsmith.span.kind`, scope `langsmith`, langsmith 0.4 to 0.15).

`gen_ai.prompt` and `gen_ai.completion` mean arguments and result on tools, state on chains, messages on models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from luckrate_otel.adapters import genai, langgraph
from luckrate_otel.adapters.base import facts, name_of, tokens
from luckrate_otel.content.arguments import Arguments, arguments
from luckrate_otel.content.definitions import definitions
from luckrate_otel.content.messages import messages, text_in, texts, without_system
from luckrate_otel.content.results import Returned, returned
from luckrate_otel.content.structured import mapping, structured, text_of
from luckrate_otel.facts import Facts, Gap, Message, Role
from luckrate_otel.telemetry import Span, Value

NAME = "langsmith"

KIND = "langsmith.span.kind"
PROMPT, COMPLETION = "gen_ai.prompt", "gen_ai.completion"
METADATA = "langsmith.metadata."
LC_AGENT = METADATA + "lc_agent_name"


def read(span: Span) -> Facts | None:
    """Facts of a LangSmith span; None for retrievers, embeddings and parsers."""
    kind = span.attributes.get(KIND)
    if kind == "tool":
        return _tool(span)
    if kind == "llm":
        return _model(span)
    return _chain(span) if kind in ("chain", "agent") else None


def _tool(span: Span) -> Facts | None:
    attributes = span.attributes
    completion = attributes.get(COMPLETION)
    failed = completion == "{}"
    back = Returned(None, gap=Gap.NOT_CAPTURED) if failed else returned(completion)
    found = mapping(completion)
    if set(found) == {"output"} and not isinstance(found["output"], Mapping):
        back = returned(found["output"])
    return genai.read_tool(
        span,
        adapter=NAME,
        agent=name_of(attributes.get(LC_AGENT)),
        tool=text_of(attributes.get(genai.TOOL_NAME)) or text_of(span.head.name),
        args=_arguments(attributes.get(PROMPT)),
        back=back,
    )


def _arguments(value: Value) -> Arguments:
    found, gap = arguments(value)
    if found is not None and set(found) == {"input"} and isinstance(found["input"], str):
        return arguments(found["input"]) if found["input"][:1] == "{" else (found, gap)  # older exports: str(args)
    return found, gap


def _model(span: Span) -> Facts:
    attributes = span.attributes
    inputs, system = without_system(messages(attributes.get(PROMPT)))
    return facts(
        Role.MODEL,
        NAME,
        span,
        agent=name_of(attributes.get(LC_AGENT)),
        inputs=inputs,
        outputs=_outputs(attributes.get(COMPLETION)),
        system=system,
        definitions=definitions(attributes.get(genai.DEFINITIONS)),
        tokens=tokens(attributes, ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")),
    )


def _outputs(value: Value) -> tuple[Message, ...]:
    """`{"generations": [[{"text", "message"}]]}` of LangChain, or the provider's own answer of a wrapped client."""
    found, _ = structured(value)
    generations: Any = found.get("generations") if isinstance(found, Mapping) else None
    while isinstance(generations, (list, tuple)) and generations and isinstance(generations[0], (list, tuple)):
        generations = generations[0]
    if isinstance(generations, (list, tuple)):
        answers = [g.get("message", g.get("text")) for g in generations if isinstance(g, Mapping)]
        return tuple(m for answer in answers for m in messages([answer], "assistant"))
    if isinstance(found, Mapping) and isinstance(found.get("choices"), (list, tuple)):
        return messages(found["choices"], "assistant")
    return messages(found, "assistant")


def _chain(span: Span) -> Facts:
    attributes = span.attributes
    metadata = {k[len(METADATA) :]: v for k, v in attributes.items() if k.startswith(METADATA)}
    # The outermost graph's span carries no LangChain metadata at all; it is known by having no parent and a
    # state of messages.
    graph = langgraph.is_graph(metadata, span.head.name) or (
        not span.head.parent_id and "langgraph_node" not in metadata
    )
    prompt = mapping(attributes.get(PROMPT)) if graph else {}
    is_agent = graph and (
        "messages" in prompt or bool(metadata.get("ls_integration")) or attributes.get(KIND) == "agent"
    )
    return facts(
        Role.AGENT if is_agent else Role.WRAPPER,
        NAME,
        span,
        agent=name_of(span.head.name) if is_agent else None,
        task_input=_task(prompt) if graph else None,
        final_output=_final(attributes.get(COMPLETION)) if graph else None,
    )


def _task(state: Mapping[str, Any]) -> str | None:
    if "messages" in state:
        asked = texts(messages(state["messages"]), "user")
        return asked[-1] if asked else None
    only = [v for v in state.values() if isinstance(v, str)]
    return only[0] if len(only) == 1 else None


def _final(value: Value) -> str | None:
    state = mapping(value)
    told = [m for m in messages(state.get("messages"), "assistant") if m.role != "tool"]
    if told:
        return (text_in(told[-1]) or None) if told[-1].role == "assistant" else None
    output = state.get("output")
    return output if isinstance(output, str) and output else None
