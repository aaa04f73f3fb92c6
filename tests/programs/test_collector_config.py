"""Every configuration in collector-config/ works between a real Collector and the real processor."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from luckrate_otel.demo.captured import Play
from luckrate_otel.demo.sink import Sink, listening
from luckrate_otel.telemetry import Span
from tests.programs.found import program
from tests.programs.play import VERDICTS, Sent, play
from tests.programs.running import (
    SECONDS,
    free_addresses,
    free_ports,
    get_text,
    listens,
    luckrate,
    otelcol,
    running,
    until,
)

pytestmark = pytest.mark.programs

CONFIGS = Path(__file__).parents[2] / "collector-config"
SHAPES = sorted(folder.name for folder in CONFIGS.iterdir() if folder.is_dir())


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


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


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


EXPECTED = sorted(VERDICTS.items())


def test_sidecar(site: Site) -> None:
    site.collector("sidecar/collector.yaml")
    site.processor("sidecar/luckrate.yaml")
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert_each_span_once(site, sent)
    site.sink.wait_for(lambda _, logs: len(logs) >= len(VERDICTS), SECONDS)
    assert Counter(log.event_name for log in site.sink.logs) == {"gen_ai.evaluation.result": len(VERDICTS)}


def test_agent_first(site: Site) -> None:
    site.collector("agent-first/collector.yaml")
    site.processor("agent-first/luckrate.yaml")
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert_each_span_once(site, sent)


def test_sidecar_sampled_keeps_what_matters(site: Site) -> None:
    site.collector("sidecar/collector-sampled.yaml", DECISION_WAIT="12s", KEEP_PERCENT="0")
    site.processor("sidecar/luckrate.yaml")
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    lucky = [row for row in EXPECTED if row[1] == "lucky"]
    site.wait_for_verdicts(len(lucky))
    # Decisions are made in the order in which traces began, so those of s1 and s2 are behind us too.
    assert verdicts(site, sent) == lucky
    assert {sent.scenario_of(span.head.trace_id) for span in site.sink.spans} == {scenario for scenario, _ in lucky}


def test_tap_sends_verdicts_and_leaves_the_spans_alone(site: Site) -> None:
    site.collector("tap/collector.yaml")
    site.processor("tap/luckrate.yaml")
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert {span.head.name for span in judged(site.sink.spans)} == {"luckrate.verdict"}
    roots = {span.head.span_id for span in site.sink.spans if not span.head.parent_id}
    assert {span.head.parent_id for span in judged(site.sink.spans)} == roots
    counted = Counter(len(span.events) > 0 for span in judged(site.sink.spans))
    assert counted == {True: 3, False: 2}  # the lucky ones say what was wrong
    total = sent.span_count + len(VERDICTS)
    assert site.sink.wait_for(lambda spans, logs: len(spans) >= total and len(logs) >= len(VERDICTS), SECONDS)
    assert len(site.sink.spans) == total


def test_tap_without_a_processor_hurts_nobody(site: Site) -> None:
    site.collector("tap/collector.yaml", COPY_QUEUE="1")
    plays: list[Play] = []

    def copies_are_dropped() -> bool:
        # Each request is taken, or play() would fail.
        plays.extend(play(site.env["OTLP_GRPC"], "langgraph", VERDICTS).plays)
        return counted(site, "otelcol_exporter_enqueue_failed_spans") > 0

    until(copies_are_dropped)
    assert_each_span_once(site, Sent(tuple(plays)))
    assert counted(site, "otelcol_receiver_refused_spans") == 0


def counted(site: Site, metric: str) -> float:
    """The sum of a counter of the Collector's own, over all its labels."""
    return scraped(f"127.0.0.1:{site.env['SELF_METRICS_PORT']}", metric)


def scraped(address: str, metric: str) -> float:
    lines = get_text(f"http://{address}/metrics").splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(rf"{metric}(_total)?[{{ ]", line))


def test_scaled_keeps_each_trace_on_one_replica(site: Site) -> None:
    first, second = (
        free_addresses("LUCKRATE", "LUCKRATE_METRICS", "LUCKRATE_ADMIN"),
        free_addresses("LUCKRATE", "LUCKRATE_METRICS", "LUCKRATE_ADMIN"),
    )
    site.collector("scaled/collector.yaml", LUCKRATE_1=first["LUCKRATE"], LUCKRATE_2=second["LUCKRATE"])
    site.processor("scaled/luckrate.yaml", **first)
    site.processor("scaled/luckrate.yaml", **second, LUCKRATE_JOURNAL=str(site.folder / "second"))
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS, times=3)
    site.wait_for_verdicts(3 * len(VERDICTS))
    assert verdicts(site, sent) == sorted(EXPECTED * 3)
    assert_each_span_once(site, sent)
    graded = [scraped(replica["LUCKRATE_METRICS"], "luckrate_runs") for replica in (first, second)]
    assert sum(graded) == 3 * len(VERDICTS)
    assert all(graded)


def test_kafka(site: Site) -> None:
    port = free_ports(1)[0]
    site.env |= {"KAFKA": f"127.0.0.1:{port}"}
    log = site.folder / "kafka.log"
    site.stack.enter_context(running([program("kafka"), str(port), "agent_spans", "3"], lambda: listens(port), log))
    site.collector("kafka/collector-in.yaml", "otelcol-kafka")
    out = {**free_addresses("HEALTH"), "SELF_METRICS_PORT": str(free_ports(1)[0])}
    site.collector("kafka/collector-out.yaml", "otelcol-kafka", **out)
    site.processor("kafka/luckrate.yaml")
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert_each_span_once(site, sent)


def test_ordinary_traffic_passes_untouched(site: Site) -> None:
    site.collector("sidecar/collector.yaml")
    site.processor("sidecar/luckrate.yaml")
    command = [program("telemetrygen"), "traces", "--otlp-insecure", f"--otlp-endpoint={site.env['OTLP_GRPC']}"]
    many = ["--rate=0", "--traces=200", "--child-spans=2"]
    subprocess.run([*command, *many], check=True, capture_output=True, timeout=60)
    assert site.sink.wait_for(lambda spans, _: len(spans) >= 600, SECONDS)
    ids = Counter((span.head.trace_id, span.head.span_id) for span in site.sink.spans)
    assert (len(ids), set(ids.values())) == (600, {1})
    assert judged(site.sink.spans) == []


def test_the_recipe_that_takes_content_off_is_one(tmp_path: Path) -> None:
    page = (CONFIGS.parent / "docs/privacy.md").read_text("utf-8")
    (recipe,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    config = tmp_path / "collector.yaml"
    pipeline = "{receivers: [otlp], processors: [transform/no-content], exporters: [nop]}"
    config.write_text(
        f"{recipe}receivers: {{otlp: {{protocols: {{grpc: {{}}}}}}}}\nexporters: {{nop: {{}}}}\n"
        f"service: {{pipelines: {{traces: {pipeline}}}}}\n",
        encoding="utf-8",
    )
    subprocess.run(
        [program("otelcol"), "validate", "--config", str(config)], check=True, capture_output=True, timeout=60
    )


def test_the_queue_can_be_kept_on_disk(tmp_path: Path) -> None:
    kept = {
        "extensions::file_storage::directory": str(tmp_path),
        "service::extensions": "[health_check, file_storage]",
        "exporters::otlp_grpc/luckrate::sending_queue::storage": "file_storage",
    }
    more = [argument for key, value in kept.items() for argument in ("--config", f"yaml:{key}: {value}")]
    command = [program("otelcol"), "validate", "--config", str(CONFIGS / "sidecar/collector.yaml"), *more]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_explained_and_driven(shape: str) -> None:
    assert f"## {shape}" in (CONFIGS / "README.md").read_text("utf-8")
    driven = Path(__file__).read_text("utf-8")
    assert [f.name for f in sorted((CONFIGS / shape).glob("*.yaml")) if f'"{shape}/{f.name}"' not in driven] == []
