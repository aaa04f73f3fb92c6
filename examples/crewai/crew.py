"""A CrewAI crew of two, traced by OpenInference, against whatever OTEL_EXPORTER_OTLP_ENDPOINT (HTTP) says.

usage: crew.py SCRIPT…, careful or hasty, each of them one run; OPENAI_ROOT is the scripted model, http://HOST:PORT
"""

import os
import sys
from pathlib import Path

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"

from openinference.instrumentation.crewai import CrewAIInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider(resource=Resource.create({"service.name": "crewai-shop"}))
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
CrewAIInstrumentor().instrument()
OpenAIInstrumentor().instrument()

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

sys.path.append(str(Path(__file__).parents[1]))
import shop


def model(script: str) -> LLM:
    return LLM(model="openai/gpt-4o-mini", base_url=f"{os.environ['OPENAI_ROOT']}/{script}/v1", api_key="none")


tools = {function.__name__: tool(function.__name__)(function) for function in shop.TOOLS}
for script in sys.argv[1:]:
    clerk = Agent(
        role="Order Clerk",
        goal="Collect the facts",
        backstory="You know the order system.",
        llm=model("clerk"),
        tools=[tools["lookup_order"]],
    )
    officer = Agent(
        role="Refund Officer",
        goal="Settle claims by the rules",
        backstory="You know the refund rules.",
        llm=model(f"{script}-officer"),
        tools=[tools["check_policy"], tools["issue_refund"], tools["escalate_to_human"]],
    )
    facts = Task(description=f"Collect the facts of: {shop.CLAIM}", expected_output="The facts", agent=clerk)
    decision = Task(description=shop.CLAIM, expected_output="An answer", agent=officer, context=[facts])
    print(Crew(name="order_support_crew", agents=[clerk, officer], tasks=[facts, decision]).kickoff().raw)
provider.shutdown()
