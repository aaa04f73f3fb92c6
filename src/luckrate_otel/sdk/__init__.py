"""Grading inside the application: a span processor for the OpenTelemetry Python SDK.

provider.add_span_processor(LuckrateSpanProcessor(BatchSpanProcessor(OTLPSpanExporter()), "refunds.yaml"))
"""

from luckrate_otel.sdk.convert import to_span
from luckrate_otel.sdk.processor import LuckrateSpanProcessor

__all__ = ["LuckrateSpanProcessor", "to_span"]
