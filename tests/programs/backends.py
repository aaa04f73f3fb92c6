"""Jaeger and Prometheus, and how tests ask them."""

from __future__ import annotations

import json
import math
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.programs.found import program
from tests.programs.running import answers, free_ports, get_json, running

# Jaeger's own all-in-one, but for the addresses.
_JAEGER = """\
service:
  extensions: [jaeger_storage, jaeger_query, healthcheckv2]
  pipelines: {{traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}}}
  telemetry: {{metrics: {{level: none}}}}
extensions:
  healthcheckv2: {{use_v2: true, http: {{endpoint: "127.0.0.1:{health}"}}}}
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: "127.0.0.1:{query}"}}
    grpc: {{endpoint: "127.0.0.1:{query_grpc}"}}
  jaeger_storage: {{backends: {{memory: {{memory: {{max_traces: 10000}}}}}}}}
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{otlp}"}}}}}}}}
exporters: {{jaeger_storage_exporter: {{trace_storage: memory}}}}
"""


@dataclass(frozen=True)
class Jaeger:
    otlp: str
    query: str

    def find(self, service: str, **tags: str) -> list[Any]:
        """Traces of a service whose spans carry all these tags; dots in names are written as double underscores."""
        wanted = json.dumps({name.replace("__", "."): value for name, value in tags.items()})
        words = urllib.parse.urlencode({"service": service, "tags": wanted, "limit": 1000, "lookback": "1h"})
        found = get_json(f"{self.query}/api/traces?{words}")
        return list(found["data"]) if found else []


def tags(span: Any) -> dict[str, Any]:
    return {tag["key"]: tag["value"] for tag in span["tags"]}


def events(span: Any, name: str) -> list[dict[str, Any]]:
    """The attributes of a span's events of one name."""
    every = [{field["key"]: field["value"] for field in log["fields"]} for log in span["logs"] or ()]
    return [event for event in every if event.get("event") == name]


@contextmanager
def jaeger(folder: Path) -> Iterator[Jaeger]:
    health, query, query_grpc, otlp = free_ports(4)
    config = folder / "jaeger.yaml"
    config.write_text(_JAEGER.format(health=health, query=query, query_grpc=query_grpc, otlp=otlp), encoding="utf-8")
    url = f"http://127.0.0.1:{query}"
    command = [program("jaeger"), "--config", str(config)]
    with running(command, lambda: answers(f"{url}/api/services"), folder / "jaeger.log"):
        yield Jaeger(f"127.0.0.1:{otlp}", url)


@dataclass(frozen=True)
class Prometheus:
    url: str

    @property
    def otlp(self) -> str:
        return f"{self.url}/api/v1/otlp"

    def query(self, expression: str) -> list[Any]:
        """The vector that an expression gives now. AssertionError if Prometheus does not understand it."""
        words = urllib.parse.urlencode({"query": expression})
        answer = get_json(f"{self.url}/api/v1/query?{words}")
        assert answer, f"refused: {expression}"
        result = answer["data"]["result"]
        return list(result) if answer["data"]["resultType"] == "vector" else [{"metric": {}, "value": result}]

    def parse(self, expression: str) -> Any:
        """The syntax tree of an expression, as Prometheus' own parser sees it; None if it does not understand it."""
        answer = get_json(f"{self.url}/api/v1/parse_query?{urllib.parse.urlencode({'query': expression})}")
        return answer["data"] if answer else None

    def number(self, expression: str) -> float | None:
        """The one value of an expression; None for no series and for NaN, which both say "no data"."""
        values = [float(row["value"][1]) for row in self.query(expression)]
        assert len(values) <= 1, expression
        return None if not values or math.isnan(values[0]) else values[0]


@contextmanager
def prometheus(folder: Path, config: Path, *arguments: str) -> Iterator[Prometheus]:
    port = free_ports(1)[0]
    url = f"http://127.0.0.1:{port}"
    command = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-otlp-receiver",
        *arguments,
    ]
    with running(command, lambda: answers(f"{url}/-/ready"), folder / "prometheus.log"):
        yield Prometheus(url)
