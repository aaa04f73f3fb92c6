"""MLflow tracing over OTLP (scope `mlflow.tracing.provider`, 3.x): `mlflow.*`, every value JSON, the strings in quotes.

With MLFLOW_ENABLE_OTEL_GENAI_SEMCONV=true the same scope follows the GenAI conventions.
"""

from __future__ import annotations

from collections.abc import Mapping

from luckrate_otel.adapters import genai
from luckrate_otel.adapters.base import call_facts, facts, name_of
from luckrate_otel.adapters.failure import failure
from luckrate_otel.content.arguments import arguments
from luckrate_otel.content.messages import messages, texts, without_system
from luckrate_otel.content.results import returned
from luckrate_otel.content.structured import as_text, structured
from luckrate_otel.facts import Facts, Role
from luckrate_otel.telemetry import Span, Status, Value

NAME = "mlflow"

TYPE, INPUT, OUTPUT = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_ROLES = {
    "AGENT": Role.AGENT,
    "TOOL": Role.TOOL,
    "CHAT_MODEL": Role.MODEL,
    "LLM": Role.MODEL,
    "CHAIN": Role.WRAPPER,
    "WORKFLOW": Role.WRAPPER,
    "TASK": Role.WRAPPER,
    "UNKNOWN": Role.WRAPPER,
}


def read(span: Span) -> Facts | None:
    """Facts of an MLflow span in either form."""
    if TYPE not in span.attributes:
        return genai.read(span)
    kind, _ = structured(span.attributes[TYPE])
    role = _ROLES.get(kind) if isinstance(kind, str) else None
    if role is Role.TOOL:
        return _tool(span)
    if role is Role.MODEL:
        return _model(span)
    return _container(span, role) if role else None


def _tool(span: Span) -> Facts:
    args, back = arguments(span.attributes.get(INPUT)), returned(span.attributes.get(OUTPUT))
    return call_facts(NAME, span, span.head.name, args, back, failure(span))


def _model(span: Span) -> Facts:
    inputs, system = without_system(messages(span.attributes.get(INPUT)))
    answer, _ = structured(span.attributes.get(OUTPUT))
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    return facts(
        Role.MODEL,
        NAME,
        span,
        inputs=inputs,
        outputs=messages(choices if choices is not None else answer, "assistant"),
        system=system,
    )


def _container(span: Span, role: Role) -> Facts:
    answer, _ = structured(span.attributes.get(OUTPUT))
    return facts(
        role,
        NAME,
        span,
        agent=name_of(span.head.name) if role is Role.AGENT else None,
        task_input=_question(span.attributes.get(INPUT)),
        final_output=None if span.head.status is Status.ERROR else as_text(answer),
    )


def _question(value: Value) -> str | None:
    found, _ = structured(value)
    if isinstance(found, str):
        return found or None
    if not isinstance(found, Mapping):
        return None
    if "messages" in found:
        asked = texts(messages(found["messages"]), "user")
        return asked[-1] if asked else None
    only = [v for v in found.values() if isinstance(v, str)]
    return only[0] if only else None
