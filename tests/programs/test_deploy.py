"""What can be checked of the deployment files without a container engine: each with the tool that knows it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from luckrate_otel.config import parse
from luckrate_otel.spec import Spec
from luckrate_otel.vocabulary import ATTRIBUTES
from tests.programs.found import program

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "examples/deploy"
HONEYCOMB = ROOT / "examples/monitoring/honeycomb"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def check(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def tool(name: str) -> str:
    return str(Path(program("tools")).with_name(name))


@pytest.mark.programs
@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_kubernetes_takes_the_manifests(file: Path) -> None:
    check(tool("kubernetes-validate"), "--strict", str(file))


@pytest.mark.programs
def test_hadolint_takes_the_dockerfile() -> None:
    check(tool("hadolint"), str(DEPLOY / "Dockerfile"))


@pytest.mark.programs
def test_yaml_is_tidy() -> None:
    check(tool("yamllint"), "-c", ".yamllint.yaml", "-s", "collector-config", "examples", "tests/programs")


@pytest.mark.programs
def test_prometheus_takes_its_configuration() -> None:
    check(program("promtool"), "check", "config", "--syntax-only", str(DEPLOY / "compose/prometheus.yml"))


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze on this machine")
    unit = (DEPLOY / "luckrate-otel.service").read_text("utf-8")
    file = tmp_path / "luckrate-otel.service"
    # The one thing it cannot find here is the program.
    file.write_text(re.sub(r"/opt/luckrate/bin/luckrate-otel", "/bin/true", unit), encoding="utf-8")
    check(analyze, "verify", "--man=no", "--recursive-errors=no", str(file))


def documents(file: Path) -> Iterator[Any]:
    yield from YAML(typ="safe").load_all(file.read_text("utf-8"))


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda file: file.name)
def test_configuration_inside_manifests_loads(file: Path) -> None:
    (held,) = [data for data in held_by(file) if "luckrate.yaml" in data]
    config = parse(held["luckrate.yaml"], "luckrate.yaml", {})
    assert [str(path) for path in config.specs] == ["refunds.yaml"]
    assert Spec.from_mapping(YAML(typ="safe").load(held["refunds.yaml"])).name == "refunds"


def held_by(file: Path) -> list[Any]:
    return [one["data"] for one in documents(file) if one["kind"] == "ConfigMap"]


def collector_config() -> str:
    (text,) = [data["collector.yaml"] for file in MANIFESTS for data in held_by(file) if "collector.yaml" in data]
    return str(text)


def test_collector_inside_manifests_takes_every_signal() -> None:
    """From applications all three; from the replicas spans and verdict log events, as their metrics are scraped."""
    pipelines = YAML(typ="safe").load(collector_config())["service"]["pipelines"]
    taken = {(receiver, name.split("/")[0]) for name, one in pipelines.items() for receiver in one["receivers"]}
    assert taken == {
        *(("otlp", signal) for signal in ("traces", "logs", "metrics")),
        *(("otlp/graded", signal) for signal in ("traces", "logs")),
    }


def test_collector_inside_manifests_knows_every_replica() -> None:
    exporter = YAML(typ="safe").load(collector_config())["exporters"]["load_balancing/luckrate"]
    (replicas,) = [one for file in MANIFESTS for one in documents(file) if one["kind"] == "StatefulSet"]
    name, spec, where = replicas["metadata"]["name"], replicas["spec"], replicas["metadata"]["namespace"]
    assert exporter["resolver"]["static"]["hostnames"] == [
        f"{name}-{i}.{spec['serviceName']}.{where}.svc.cluster.local:4317" for i in range(spec["replicas"])
    ]


@pytest.mark.programs
def test_collector_takes_the_configuration_inside_manifests(tmp_path: Path) -> None:
    config = tmp_path / "collector.yaml"
    config.write_text(collector_config(), encoding="utf-8")
    check(program("otelcol"), "validate", "--config", str(config))


def test_manifests_name_each_other(tmp_path: Path) -> None:
    """Services that configurations send to, inside the namespace, are services of the same file."""
    (file,) = [file for file in MANIFESTS if file.name == "scaled.yaml"]
    services = {one["metadata"]["name"] for one in documents(file) if one["kind"] == "Service"}
    named = re.findall(r"([\w-]+)\.agents\.svc\.cluster\.local", file.read_text("utf-8"))
    assert set(named) == services


def test_compose_mounts_what_exists() -> None:
    (compose,) = documents(DEPLOY / "compose/compose.yaml")
    mounts = [mount.split(":")[0] for service in compose["services"].values() for mount in service.get("volumes", ())]
    mounts = [mount for mount in mounts if mount not in compose["volumes"]]
    assert [mount for mount in mounts if not (DEPLOY / "compose" / mount).exists()] == []
    build = compose["services"]["luckrate"]["build"]
    context = (DEPLOY / "compose" / build["context"]).resolve()
    assert context == ROOT
    assert (context / build["dockerfile"]).exists()


def test_dockerfile_copies_what_exists_and_runs_as_nobody() -> None:
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()
    copied = [word for line in lines if re.match(r"COPY [^-]", line) for word in line.split()[1:-1]]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert "USER 10001:10001" in lines
    assert any(line.startswith("HEALTHCHECK") for line in lines)


def test_honeycomb_files_ask_only_for_what_is_sent() -> None:
    derived = {column["alias"] for column in json.loads((HONEYCOMB / "derived-columns.json").read_text("utf-8"))}
    known = {attribute.name for attribute in ATTRIBUTES} | derived
    for file in HONEYCOMB.glob("*.json"):
        names = set(re.findall(r"(?<![\w/])luckrate[._][\w.]*\w", file.read_text("utf-8")))
        assert names - {"luckrate.violation"} <= known, file.name
    queries = json.loads((HONEYCOMB / "queries.json").read_text("utf-8"))
    board = json.loads((HONEYCOMB / "board.json").read_text("utf-8"))
    assert [panel["query"] for panel in board["panels"]] == list(queries)
