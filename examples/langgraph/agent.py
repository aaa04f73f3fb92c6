"""A LangGraph agent, traced by OpenInference, against whatever OTEL_EXPORTER_OTLP_ENDPOINT (HTTP) says.

usage: agent.py SCRIPT…, each of them one run; OPENAI_ROOT is the scripted model, http://HOST:PORT
"""

import os
import sys
from pathlib import Path

from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider(resource=Resource.create({"service.name": "langgraph-shop"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
LangChainInstrumentor().instrument()

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

sys.path.append(str(Path(__file__).parents[1]))
from shop import CLAIM, SUMMARY, TOOLS

for script in sys.argv[1:]:
    model = ChatOpenAI(model="scripted", base_url=f"{os.environ['OPENAI_ROOT']}/{script}/v1", api_key="none")
    agent = create_agent(model, list(TOOLS), name="order_support", system_prompt="You work for a small web shop.")
    task = SUMMARY if script == "obedient" else CLAIM
    print(agent.invoke({"messages": [("user", task)]})["messages"][-1].content)
provider.shutdown()
