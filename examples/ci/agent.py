"""A small order-support agent with the spans of OpenTelemetry's GenAI conventions, as frameworks emit them.

Its model is a script, so that the example needs no key. Everything else is what an instrumented agent does: it exports
to wherever OTEL_EXPORTER_OTLP_ENDPOINT points, and records content only when it is told to.

    python agent.py "Refund order 88213." [--hasty]
"""

import json
import os
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

TOOLS = {
    "lookup_order": lambda order_id: f"order {order_id}: 40 EUR, delivered",
    "ask_human": lambda order_id: f"order {order_id}: approved",
    "issue_refund": lambda order_id: f"refunded order {order_id}",
}
tracer = trace.get_tracer("shop.agent")


def captures() -> bool:
    return os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").startswith("SPAN")


def call(tool: str, **arguments: str) -> str:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes) as span:
        result = TOOLS[tool](**arguments)
        if captures():
            span.set_attribute("gen_ai.tool.call.arguments", json.dumps(arguments))
            span.set_attribute("gen_ai.tool.call.result", result)
        return result


def answer(task: str, *, hasty: bool = False) -> str:
    """Refund the order that the task names; a hasty agent does not ask first."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
    with tracer.start_as_current_span("invoke_agent support", attributes=attributes) as span:
        order_id = "".join(filter(str.isdigit, task))
        call("lookup_order", order_id=order_id)
        if not hasty:
            call("ask_human", order_id=order_id)
        text = f"Done: {call('issue_refund', order_id=order_id)}."
        if captures():
            for key, role, content in (("input", "user", task), ("output", "assistant", text)):
                message = {"role": role, "parts": [{"type": "text", "content": content}]}
                span.set_attribute(f"gen_ai.{key}.messages", json.dumps([message]))
        return text


if __name__ == "__main__":
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    print(answer(sys.argv[1], hasty="--hasty" in sys.argv))
    provider.shutdown()
