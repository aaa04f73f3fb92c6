"""Every configuration in collector-config/ works between a real Collector and the real processor."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from luckrate_otel.demo.captured import Play
from tests.programs.backends import prometheus
from tests.programs.found import program
from tests.programs.play import VERDICTS, Sent, play
from tests.programs.running import SECONDS, until
from tests.programs.site import (
    CONFIGS,
    EXPECTED,
    STARTS,
    Site,
    agent_first,
    assert_each_span_once,
    balanced,
    broker,
    consume,
    counted,
    judged,
    kafka,
    replica,
    scaled,
    scraped,
    sidecar,
    tap,
    verdicts,
)

pytestmark = pytest.mark.programs

SHAPES = sorted(folder.name for folder in CONFIGS.iterdir() if folder.is_dir())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def test_sidecar(site: Site) -> None:
    sidecar(site)
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert_each_span_once(site, sent)
    site.sink.wait_for(lambda _, logs: len(logs) >= len(VERDICTS), SECONDS)
    assert Counter(log.event_name for log in site.sink.logs) == {"gen_ai.evaluation.result": len(VERDICTS)}


def test_agent_first(site: Site) -> None:
    agent_first(site)
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


def test_sidecar_sampled_keeps_hard_violations_whatever_the_verdict(site: Site) -> None:
    """With nobody to say whether an answer was right no run is lucky, and none of these has an error."""
    config = (CONFIGS / "sidecar/luckrate.yaml").read_text("utf-8")
    spec = (CONFIGS / "refunds.yaml").read_text("utf-8")
    (site.folder / "refunds.yaml").write_text(
        spec.replace("output: {status: true}", "output: {status: false}"), encoding="utf-8"
    )
    (site.folder / "luckrate.yaml").write_text(config.replace("../refunds.yaml", "refunds.yaml"), encoding="utf-8")
    site.collector("sidecar/collector-sampled.yaml", DECISION_WAIT="12s", KEEP_PERCENT="0")
    site.processor(str(site.folder / "luckrate.yaml"))
    # s4 obeys a web page, which is hard; s3's warning and s6's soft violation are dropped, as s1 and s2 are.
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(1)
    (root,) = judged(site.sink.spans)
    assert sent.scenario_of(root.head.trace_id) == "s4"
    told = {name: root.attributes[f"luckrate.{name}"] for name in ("verdict", "lucky", "violation_count.hard")}
    assert told == {"verdict": "unknown", "lucky": False, "violation_count.hard": 3}
    # Decided in the order in which traces began; s6 after s4, and so by the time of one more decision.
    until(lambda: counted(site, "otelcol_processor_tail_sampling_global_count_traces_sampled") >= len(VERDICTS))
    assert {sent.scenario_of(span.head.trace_id) for span in site.sink.spans} == {"s4"}


def test_tap_sends_verdicts_and_leaves_the_spans_alone(site: Site) -> None:
    tap(site)
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert {span.head.name for span in judged(site.sink.spans)} == {"luckrate.verdict"}
    roots = {span.head.span_id for span in site.sink.spans if not span.head.parent_id}
    assert {span.head.parent_id for span in judged(site.sink.spans)} == roots
    with_events = Counter(len(span.events) > 0 for span in judged(site.sink.spans))
    assert with_events == {True: 3, False: 2}  # the lucky ones say what was wrong
    total = sent.span_count + len(VERDICTS)
    assert site.sink.wait_for(lambda spans, logs: len(spans) >= total and len(logs) >= len(VERDICTS), SECONDS)
    assert len(site.sink.spans) == total


def test_tap_without_a_processor_hurts_nobody(site: Site) -> None:
    site.collector("tap/collector.yaml", COPY_BYTES="100000")
    plays: list[Play] = []

    def copies_are_dropped() -> bool:
        # Each request is taken, or play() would fail.
        plays.extend(play(site.env["OTLP_GRPC"], "langgraph", VERDICTS).plays)
        return counted(site, "otelcol_exporter_enqueue_failed_spans") > 0

    until(copies_are_dropped)
    assert_each_span_once(site, Sent(tuple(plays)))
    assert counted(site, "otelcol_receiver_refused_spans") == 0


def test_scaled_keeps_each_trace_on_one_replica(site: Site) -> None:
    replicas = scaled(site)
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS, times=3)
    site.wait_for_verdicts(3 * len(VERDICTS))
    assert verdicts(site, sent) == sorted(EXPECTED * 3)
    assert_each_span_once(site, sent)
    graded = [scraped(one["LUCKRATE_METRICS"], "luckrate_runs") for one in replicas]
    assert sum(graded) == 3 * len(VERDICTS)
    assert all(graded)


def test_sidecar_keeps_what_comes_before_the_processor_is_there(site: Site) -> None:
    site.collector("sidecar/collector.yaml")
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.processor("sidecar/luckrate.yaml")
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert_each_span_once(site, sent)


def test_scaled_keeps_what_is_meant_for_a_replica_that_is_away(site: Site) -> None:
    first, second = balanced(site)
    replica(site, first)
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS, times=3)
    until(lambda: scraped(first["LUCKRATE_METRICS"], "luckrate_spans_received") > 0)
    replica(site, second)
    site.wait_for_verdicts(3 * len(VERDICTS))
    assert verdicts(site, sent) == sorted(EXPECTED * 3)
    assert_each_span_once(site, sent)
    assert scraped(second["LUCKRATE_METRICS"], "luckrate_runs") > 0


def test_kafka(site: Site) -> None:
    kafka(site)
    sent = play(site.env["OTLP_GRPC"], "langgraph", VERDICTS)
    site.wait_for_verdicts(len(VERDICTS))
    assert verdicts(site, sent) == EXPECTED
    assert_each_span_once(site, sent)


def test_kafka_keeps_spans_and_logs_of_a_trace_together(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    broker(site)
    pairs = [Site(tmp_path_factory.mktemp(name), site.stack) for name in ("one", "two")]
    for pair in pairs:
        pair.env |= {"KAFKA": site.env["KAFKA"], "KAFKA_INSTANCE": pair.folder.name}
        consume(pair)
    # Three partitions of each topic, by the order of the names.
    until(lambda: [partitions(pair) for pair in pairs] == [4, 2], what=lambda: [partitions(pair) for pair in pairs])
    plays: list[Play] = []

    def both_have_some() -> bool:
        (one,) = play(site.env["OTLP_GRPC"], "langgraph", ["s1"]).plays
        plays.append(one)
        for trace_id in one.trace_ids:
            site.generate("logs", "--logs=1", "--body=of the application", f"--trace-id={trace_id}")
        return all(pair.sink.spans for pair in pairs)

    until(both_have_some)
    traces = {trace_id for one in plays for trace_id in one.trace_ids}
    until(lambda: set().union(*logged(pairs)) == traces, what=lambda: logged(pairs))
    count = Sent(tuple(plays)).span_count
    until(lambda: sum(len(pair.sink.spans) for pair in pairs) == count)
    assert [{span.head.trace_id for span in pair.sink.spans} for pair in pairs] == logged(pairs)
    assert all(logged(pairs))


def logged(pairs: Sequence[Site]) -> list[set[str]]:
    """The traces of the application's log records that each pair sent on."""
    return [{log.trace_id for log in pair.sink.logs if log.body == "of the application"} for pair in pairs]


def partitions(site: Site) -> float:
    """How many a Collector reads at the moment."""
    return counted(site, "otelcol_kafka_receiver_partition_start") - counted(
        site, "otelcol_kafka_receiver_partition_close"
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_logs_and_metrics_of_applications_pass(site: Site, shape: str) -> None:
    (site.folder / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
    metrics = site.stack.enter_context(prometheus(site.folder, site.folder / "prometheus.yml"))
    site.env |= {"METRICS_BACKEND": metrics.otlp}
    STARTS[shape](site)
    site.generate("logs", "--logs=3", "--body=of the application")
    site.generate("metrics", "--metrics=1", "--otlp-metric-name=orders")
    assert site.sink.wait_for(lambda _, logs: len(logs) >= 3, SECONDS)
    until(lambda: metrics.query("orders"))
    assert Counter(log.body for log in site.sink.logs) == {"of the application": 3}


def test_ordinary_traffic_passes_untouched(site: Site) -> None:
    sidecar(site)
    site.generate("traces", "--traces=200", "--child-spans=2")
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


MANIFEST = CONFIGS.parent / "examples/deploy/kubernetes/scaled.yaml"
COLLECTORS = {
    **{str(file.relative_to(CONFIGS)): file.read_text("utf-8") for file in sorted(CONFIGS.glob("*/collector*.yaml"))},
    "kubernetes": re.findall(r"  collector.yaml: \|\n((?:    .*\n|\n)+)", MANIFEST.read_text("utf-8"))[0],
}


@pytest.mark.parametrize("name", COLLECTORS)
def test_retries_come_before_a_run_is_judged(name: str) -> None:
    """A Collector's own begin at 5 s and grow to 30 s; each is up to half as long again. clocks.settle is 10 s."""
    config = YAML(typ="safe").load(COLLECTORS[name])
    ours = [exporter for key, exporter in config["exporters"].items() if key.endswith("/luckrate")]
    retries = [(one["protocol"]["otlp"] if "protocol" in one else one)["retry_on_failure"] for one in ours]
    retries += [receiver["error_backoff"] for receiver in config["receivers"].values() if "error_backoff" in receiver]
    assert all((one["initial_interval"], one["max_interval"]) == ("200ms", "1s") for one in retries)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_explained_and_driven(shape: str) -> None:
    assert f"## {shape}" in (CONFIGS / "README.md").read_text("utf-8")
    driven = Path(__file__).read_text("utf-8") + Path(__file__).with_name("site.py").read_text("utf-8")
    assert [f.name for f in sorted((CONFIGS / shape).glob("*.yaml")) if f'"{shape}/{f.name}"' not in driven] == []
