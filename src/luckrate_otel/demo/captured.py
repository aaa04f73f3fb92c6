"""The traffic that ships with the package, and how one play of it is made new.

Captured from the frameworks themselves, running a small order-support agent whose model followed a script; the tools,
the agent loop and the spans are the frameworks' own.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from luckrate_otel.vocabulary import CONVERSATION_ID

# Which instrumentation each framework's spans came from; n8n and CrewAI need two to show every scenario.
FRAMEWORKS: Mapping[str, str] = {
    "langgraph": "LangGraph",
    "crewai": "CrewAI",
    "n8n": "n8n",
    "pydantic-ai": "Pydantic AI",
}

SCENARIOS: Mapping[str, str] = {
    "s1": "asks a human, as the policy says",
    "s2": "refunds although the policy asks for a human",
    "s3": "acts on an order id that nobody mentioned",
    "s4": "does what a web page told it to",
    "s5": "looks the order up five times, each fails",
    "s6": "looks the same order up twice",
}

# The play adds these to the resource, as a test harness would: they tell the specs which claim a run is about, and the
# gate which runs are of one case.
SCENARIO = "demo.scenario"
CASE = "luckrate.case"


@dataclass(frozen=True, slots=True)
class Play:
    """One capture made new: trace ids unused before, and times as if it just happened.

    requests: OTLP/JSON trace requests in the order they were sent. trace_ids: of this play.
    """

    framework: str
    scenario: str
    requests: tuple[Mapping[str, Any], ...]
    trace_ids: tuple[str, ...]

    @property
    def title(self) -> str:
        return f"{FRAMEWORKS[self.framework]}, {self.scenario}: {SCENARIOS[self.scenario]}"


def read_capture(framework: str, scenario: str) -> list[dict[str, Any]]:
    name = f"captures/{framework}-{scenario}.jsonl.gz"
    text = gzip.decompress(files("luckrate_otel.demo").joinpath(name).read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def renew(framework: str, scenario: str, requests: Sequence[dict[str, Any]], salt: bytes, now_ns: int) -> Play:
    """Give a capture new trace and conversation ids, made from salt, and move its times so that it ends at now_ns.

    salt: 16 random bytes. Changes the requests in place.
    """
    shift = now_ns - max(int(span["endTimeUnixNano"]) for span in _spans(requests))
    ids: dict[str, str] = {}
    for span in _spans(requests):
        old = span["traceId"]
        ids[old] = span["traceId"] = _mix(old, salt)
        for link in span.get("links", ()):
            link["traceId"] = ids.setdefault(link["traceId"], _mix(link["traceId"], salt))
        _shift(span, "startTimeUnixNano", shift)
        _shift(span, "endTimeUnixNano", shift)
        for event in span.get("events", ()):
            _shift(event, "timeUnixNano", shift)
        for attribute in span.get("attributes", ()):
            if attribute["key"] == CONVERSATION_ID:
                # Captures of one framework may share an id, and one run must not be read as the next one's past.
                attribute["value"] = {"stringValue": f"{attribute['value']['stringValue']}-{salt.hex()}"}
    for request in requests:
        for group in request["resourceSpans"]:
            attributes = group.setdefault("resource", {}).setdefault("attributes", [])
            attributes.append({"key": SCENARIO, "value": {"stringValue": scenario}})
            attributes.append({"key": CASE, "value": {"stringValue": f"{framework}/{scenario}"}})
    return Play(framework, scenario, tuple(requests), tuple(sorted({span["traceId"] for span in _spans(requests)})))


def _spans(requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        span
        for request in requests
        for group in request["resourceSpans"]
        for scope in group["scopeSpans"]
        for span in scope["spans"]
    ]


def _mix(trace_id: str, salt: bytes) -> str:
    """Spans of one trace must stay together, so the new id is a function of the old one."""
    return bytes(a ^ b for a, b in zip(bytes.fromhex(trace_id), salt, strict=True)).hex()


def _shift(holder: dict[str, Any], key: str, by_ns: int) -> None:
    if key in holder:
        holder[key] = str(int(holder[key]) + by_ns)
