"""The shapes of collector-config/, started whole on free ports, and what is true of all of them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from luckrate_otel.demo.sink import Sink, listening
from luckrate_otel.telemetry import Span
from tests.programs.found import program
from tests.programs.play import VERDICTS, Sent
from tests.programs.running import SECONDS, free_addresses, free_ports, get_text, listens, luckrate, otelcol, running

CONFIGS = Path(__file__).parents[2] / "collector-config"


@dataclass
class Site:
    """A Collector, processors and the backend behind them. env: the addresses that all of them were given."""

    folder: Path
    stack: ExitStack
    sink: Sink = field(default_factory=Sink)
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = ("OTLP_GRPC", "OTLP_HTTP", "LUCKRATE", "GRADED", "HEALTH", "LUCKRATE_METRICS", "LUCKRATE_ADMIN")
        backend = self.stack.enter_context(listening(self.sink))
        self.env = {
            **free_addresses(*names),
            "BACKEND": backend,
            "LOGS_BACKEND": backend,
            "METRICS_BACKEND": "http://127.0.0.1:9",  # nobody listens: metrics have tests of their own
            "SELF_METRICS_PORT": str(free_ports(1)[0]),
            # A Collector's sending queue has several consumers, so that requests overtake each other.
            "LUCKRATE_SETTLE": "3s",
            "LUCKRATE_JOURNAL": str(self.folder / "journal"),
        }

    def collector(self, config: str, binary: str = "otelcol", **env: str) -> None:
        log = self.folder / f"{config.replace('/', '-')}.log"
        self.stack.enter_context(otelcol(program(binary), CONFIGS / config, log, {**self.env, **env}))

    def processor(self, config: str, **env: str) -> None:
        log = self.folder / f"luckrate-{len(list(self.folder.iterdir()))}.log"
        self.stack.enter_context(luckrate(CONFIGS / config, log, {**self.env, **env}))

    def wait_for_verdicts(self, count: int) -> None:
        arrived = self.sink.wait_for(lambda spans, _: len(judged(spans)) >= count, SECONDS)
        assert arrived, f"{len(judged(self.sink.spans))} verdicts of {count}; {self.folder}"

    def generate(self, signal: str, *arguments: str) -> None:
        """telemetrygen, as an application that sends one signal to the front of the shape."""
        command = [program("telemetrygen"), signal, "--otlp-insecure", f"--otlp-endpoint={self.env['OTLP_GRPC']}"]
        subprocess.run([*command, "--rate=0", *arguments], check=True, capture_output=True, timeout=60)


# ---- the shapes --------------------------------------------------------------------------------


def sidecar(site: Site) -> None:
    site.collector("sidecar/collector.yaml")
    site.processor("sidecar/luckrate.yaml")


def agent_first(site: Site) -> None:
    site.collector("agent-first/collector.yaml")
    site.processor("agent-first/luckrate.yaml")


def tap(site: Site) -> None:
    site.collector("tap/collector.yaml")
    site.processor("tap/luckrate.yaml")


def scaled(site: Site) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Gives the addresses of the two replicas."""
    first, second = balanced(site)
    replica(site, first)
    replica(site, second)
    return first, second


def balanced(site: Site) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The Collector of the scaled shape alone, and the addresses of the replicas that it knows."""
    first, second = (free_addresses("LUCKRATE", "LUCKRATE_METRICS", "LUCKRATE_ADMIN") for _ in range(2))
    site.collector("scaled/collector.yaml", LUCKRATE_1=first["LUCKRATE"], LUCKRATE_2=second["LUCKRATE"])
    return first, second


def replica(site: Site, addresses: Mapping[str, str]) -> None:
    journal = site.folder / f"journal-{addresses['LUCKRATE'].rpartition(':')[2]}"
    site.processor("scaled/luckrate.yaml", **addresses, LUCKRATE_JOURNAL=str(journal))


def kafka(site: Site) -> None:
    broker(site)
    consume(site, **free_addresses("HEALTH"), SELF_METRICS_PORT=str(free_ports(1)[0]))


def broker(site: Site) -> None:
    """Kafka, and the Collector in front of it."""
    port = free_ports(1)[0]
    site.env |= {"KAFKA": f"127.0.0.1:{port}"}
    command = [program("kafka"), str(port), "3", "agent_spans", "agent_logs"]
    site.stack.enter_context(running(command, lambda: listens(port), site.folder / "kafka.log"))
    site.collector("kafka/collector-in.yaml", "otelcol-kafka")


def consume(site: Site, **env: str) -> None:
    """One pair of Collector and processor behind Kafka."""
    site.collector("kafka/collector-out.yaml", "otelcol-kafka", **env)
    site.processor("kafka/luckrate.yaml", **env)


STARTS: Mapping[str, Callable[[Site], object]] = {
    "sidecar": sidecar,
    "agent-first": agent_first,
    "tap": tap,
    "scaled": scaled,
    "kafka": kafka,
}


# ---- what arrived ------------------------------------------------------------------------------

EXPECTED = sorted(VERDICTS.items())


def judged(spans: Sequence[Span]) -> list[Span]:
    return [span for span in spans if "luckrate.verdict" in span.attributes]


def verdicts(site: Site, sent: Sent) -> list[tuple[str | None, str]]:
    found = [
        (sent.scenario_of(span.head.trace_id), span.attributes["luckrate.verdict"]) for span in judged(site.sink.spans)
    ]
    return sorted(found, key=str)


def assert_each_span_once(site: Site, sent: Sent) -> None:
    site.sink.wait_for(lambda spans, _: len(spans) >= sent.span_count, SECONDS)
    ids = Counter((span.head.trace_id, span.head.span_id) for span in site.sink.spans)
    assert (len(ids), set(ids.values())) == (sent.span_count, {1})


def counted(site: Site, metric: str) -> float:
    """The sum of a counter of the Collector's own, over all its labels."""
    return scraped(f"127.0.0.1:{site.env['SELF_METRICS_PORT']}", metric)


def scraped(address: str, metric: str) -> float:
    lines = get_text(f"http://{address}/metrics").splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{metric}(_total)?[{{ ]", line))
