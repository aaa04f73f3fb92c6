"""An agent without a framework, traced by hand with the OpenTelemetry SDK: all that luckrate-otel needs to see.

One span for the run, one for each tool call, named as the GenAI conventions say. The model's answers need no span.

usage: agent.py SCRIPT…, each of them one run; OPENAI_ROOT is the scripted model, http://HOST:PORT
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

sys.path.append(str(Path(__file__).parents[1]))
import shop

provider = TracerProvider(resource=Resource.create({"service.name": "sdk-shop"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
tracer = provider.get_tracer("shop")
TOOLS = {tool.__name__: tool for tool in shop.TOOLS}


def run(script: str, task: str) -> str:
    """One run: ask the model, do what it says, until it answers in words."""
    told = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "order_support",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": task}]}]),
    }
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    with tracer.start_as_current_span("invoke_agent order_support", attributes=told):
        while True:
            said = ask(script, messages)
            messages.append(said)
            if not said.get("tool_calls"):
                return str(said["content"])
            for call in said["tool_calls"]:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": use(call)})


def use(call: dict[str, Any]) -> str:
    """One tool call, and its span. Arguments and result are what most rules need."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    told = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call["id"],
        "gen_ai.tool.call.arguments": arguments,
    }
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=told) as span:
        result = TOOLS[name](**json.loads(arguments))
        span.set_attribute("gen_ai.tool.call.result", result)
        return result


def ask(script: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    url = f"{os.environ['OPENAI_ROOT']}/{script}/v1/chat/completions"
    body = json.dumps({"model": "scripted", "messages": messages}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:
        message: dict[str, Any] = json.load(answer)["choices"][0]["message"]
    return message


for name in sys.argv[1:]:
    print(run(name, shop.SUMMARY if name == "obedient" else shop.CLAIM))
provider.shutdown()
