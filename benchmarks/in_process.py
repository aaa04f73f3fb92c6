"""What LuckrateSpanProcessor costs an application: CPU time per span, in its own thread and in all.

python benchmarks/in_process.py
"""

from __future__ import annotations

import json
import time

from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from luckrate_otel.sdk import LuckrateSpanProcessor

CALLS = 8
RUNS = 500
SPEC = {"name": "refunds", "forbidden": ["pay"], "before": [["ask", "refund"]], "max_steps": 20}
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
CALL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "look",
    "gen_ai.tool.call.arguments": json.dumps({"order_id": "88213"}),
    "gen_ai.tool.call.result": "x" * 300,
}


class Nowhere(SpanProcessor):
    """The next processor: nothing, so that only the difference is measured."""


def measure(processor: SpanProcessor) -> tuple[float, float]:
    """Microseconds of CPU per span: in the thread that ends spans, and in the process."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("shop.agent")
    thread, process = time.thread_time(), time.process_time()
    for _ in range(RUNS):
        with tracer.start_as_current_span("invoke_agent support", attributes=AGENT):
            for _ in range(CALLS):
                with tracer.start_as_current_span("execute_tool look", attributes=CALL):
                    pass
    thread = time.thread_time() - thread
    provider.force_flush()
    process = time.process_time() - process
    provider.shutdown()
    spans = RUNS * (CALLS + 1)
    return thread / spans * 1e6, process / spans * 1e6


if __name__ == "__main__":
    measure(Nowhere())  # warm up
    own, total = measure(Nowhere())
    graded_own, graded_total = measure(LuckrateSpanProcessor(Nowhere(), SPEC))
    print(f"spans alone: {own:.0f} µs in the application's thread")
    print(f"graded: {graded_own - own:+.0f} µs there, {graded_total - graded_own:.0f} µs in the processor's thread")
