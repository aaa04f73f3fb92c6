"""A Pydantic AI agent with its own instrumentation, against whatever OTEL_EXPORTER_OTLP_ENDPOINT (HTTP) says.

usage: agent.py SCRIPT…, each of them one run; OPENAI_ROOT is the scripted model, http://HOST:PORT
"""

import os
import sys
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

sys.path.append(str(Path(__file__).parents[1]))
from shop import CLAIM, SUMMARY, TOOLS

provider = TracerProvider(resource=Resource.create({"service.name": "pydantic-ai-shop"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
Agent.instrument_all()

for script in sys.argv[1:]:
    source = OpenAIProvider(base_url=f"{os.environ['OPENAI_ROOT']}/{script}/v1", api_key="none")
    model = OpenAIChatModel("scripted", provider=source)
    agent = Agent(model, name="order_support", instructions="You work for a small web shop.", tools=list(TOOLS))
    print(agent.run_sync(SUMMARY if script == "obedient" else CLAIM).output)
provider.shutdown()
