"""Real agents → a real Collector → luckrate-otel → the Collector → Jaeger and Prometheus; and what is true of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.programs.backends import Jaeger, Prometheus, jaeger, prometheus
from tests.programs.found import program
from tests.programs.play import play
from tests.programs.running import free_addresses, free_ports, luckrate, otelcol, scripted_model, until

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
MONITORING = EXAMPLES / "monitoring/prometheus"

# What each run really did, by the script its model played, and so what is true of it.
LANGGRAPH = {"careful": "pass", "hasty": "lucky", "inventive": "lucky", "obedient": "lucky"}
CREWAI = {"careful": "pass", "hasty": "lucky"}
# n8n's native spans carry no arguments: taint and no_repeat, which the spec names, cannot be judged.
# In s2 it never looks at the policy.
N8N = {"s1": "unverified", "s2": "lucky", "s4": "lucky"}
LUCKY = 3 + 1 + 2
UNVERIFIED = 1
GREEN = len(LANGGRAPH) + len(CREWAI) + len(N8N)


PROGRAMS = ("otelcol", "jaeger", "prometheus", "langgraph", "crewai")


@dataclass(frozen=True)
class Seen:
    jaeger: Jaeger
    prometheus: Prometheus


@contextmanager
def scene(folder: Path) -> Iterator[Seen]:
    """Everything up, every run made, every verdict counted."""
    collector, python = program("otelcol"), {name: program(name) for name in ("langgraph", "crewai")}
    with ExitStack() as stack:
        store = stack.enter_context(jaeger(folder))
        metrics = stack.enter_context(prometheus(folder, prometheus_config(folder)))
        names = ("OTLP_GRPC", "OTLP_HTTP", "LUCKRATE", "GRADED", "HEALTH", "LUCKRATE_METRICS", "LUCKRATE_ADMIN")
        env = {
            **free_addresses(*names),
            "BACKEND": store.otlp,
            "LOGS_BACKEND": "127.0.0.1:9",  # Jaeger takes no logs, and nobody else is there
            "METRICS_BACKEND": metrics.otlp,
            "SELF_METRICS_PORT": str(free_ports(1)[0]),
            "LUCKRATE_SETTLE": "5s",
            "LUCKRATE_JOURNAL": str(folder / "journal"),
            "LUCKRATE_METRICS_INTERVAL": "1s",
        }
        config = ROOT / "collector-config/sidecar"
        stack.enter_context(otelcol(collector, config / "collector.yaml", folder / "otelcol.log", env))
        stack.enter_context(luckrate(config / "luckrate.yaml", folder / "luckrate.log", env))
        with scripted_model(folder) as model:
            agents = {**env, "OPENAI_ROOT": model, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{env['OTLP_HTTP']}"}
            act(python["langgraph"], EXAMPLES / "langgraph/agent.py", LANGGRAPH, agents)
            act(python["crewai"], EXAMPLES / "crewai/crew.py", CREWAI, agents)
        play(env["OTLP_GRPC"], "n8n", N8N)
        green = 'sum(luckrate_runs_total{luckrate_output="ok"})'
        until(lambda: metrics.number(green) == GREEN, what=lambda: metrics.query("luckrate_runs_total > 0"))
        yield Seen(store, metrics)


def prometheus_config(folder: Path) -> Path:
    """The shipped recording rules, evaluated each second."""
    rules = (MONITORING / "luckrate-rules.yml").read_text("utf-8")
    (folder / "rules.yml").write_text(rules.replace("interval: 30s", "interval: 1s"), encoding="utf-8")
    config = folder / "prometheus.yml"
    config.write_text("rule_files: [rules.yml]\n", encoding="utf-8")
    return config


def act(python: str, script: Path, scripts: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Run an example's agent through these scripts in its own environment."""
    command = [python, str(script), *scripts]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
