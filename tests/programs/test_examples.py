"""Each example runs by its one command, and every run in it gets the verdict that its script deserves."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from luckrate_otel import cli
from luckrate_otel.specfile import load_spec
from tests.programs.found import program
from tests.programs.running import free_addresses, otelcol, scripted_model, until

EXAMPLES = Path(__file__).parents[2] / "examples"
HERE = ["sdk", "red-team", "n8n"]
FRAMEWORKS = ["langgraph", "crewai", "pydantic-ai"]
# As the page has them, for a shell in a checkout: `.venv/bin/…`.
COMMANDS = [
    shlex.split(command)
    for command in re.findall(r"`(\.venv/bin/[^`]+)`", (EXAMPLES / "README.md").read_text("utf-8"))
    if not command.endswith(".venv")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_run(name: str) -> None:
    run(name)


@pytest.mark.programs
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_run_with_its_framework(name: str) -> None:
    program(name)
    run(name)


def run(name: str) -> None:
    command = [sys.executable, str(EXAMPLES / "run.py"), name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_of_the_page_is_one_that_a_test_runs() -> None:
    scripts = [words[2] for words in COMMANDS if words[1] == "examples/run.py"]
    assert sorted(scripts) == sorted(HERE + FRAMEWORKS)
    assert [words[1] for words in COMMANDS if words[1] != "examples/run.py"] == ["exec"]


@pytest.mark.slow
def test_the_command_of_ci_grades_the_agent_as_it_is_written() -> None:
    (command,) = [words for words in COMMANDS if words[1] == "exec"]
    python = {".venv/bin/python": [sys.executable], ".venv/bin/luckrate-otel": [sys.executable, "-m", "luckrate_otel"]}
    words = [word for written in command for word in python.get(written, [written])]
    done = subprocess.run(words, cwd=EXAMPLES.parent, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "  = pass: " in done.stdout


@pytest.mark.programs
@pytest.mark.parametrize(("script", "status"), [("careful", 0), ("hasty", 1)])
def test_ci_gate(script: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A real Collector keeps the spans in a file, as in agents.yml; the same command decides."""
    traces = tmp_path / "traces.jsonl"
    env = {**free_addresses("OTLP_HTTP", "HEALTH"), "TRACES": str(traces)}
    config = EXAMPLES / "ci-gate/collector.yaml"
    with otelcol(program("otelcol"), config, tmp_path / "log", env), scripted_model(tmp_path) as model:
        told = {**os.environ, "OPENAI_ROOT": model, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{env['OTLP_HTTP']}"}
        command = [sys.executable, str(EXAMPLES / "sdk/agent.py"), script]
        subprocess.run(command, env=told, check=True, capture_output=True, timeout=60)
        until(lambda: traces.exists() and "invoke_agent" in traces.read_text("utf-8"))
    gate = [str(traces), "--spec", str(EXAMPLES / "refunds.yaml"), "--max-luck-rate", "0.05"]
    assert cli.main(["check", *gate]) == status, capsys.readouterr().out


def test_ci_gate_runs_commands_that_exist() -> None:
    steps = YAML(typ="safe").load(EXAMPLES / "ci-gate/agents.yml")["jobs"]["path"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    (gate,) = [line for line in lines if line.startswith("luckrate-otel ")]
    cli.parse(gate.split()[1:])


def test_n8n_workflow_has_the_tools_of_its_spec() -> None:
    workflow = json.loads((EXAMPLES / "n8n/workflow.json").read_text("utf-8"))
    names = {node["name"] for node in workflow["nodes"]}
    assert set(workflow["connections"]) | {"Refund Agent"} == names
    tools = {name for name, out in workflow["connections"].items() if "ai_tool" in out}
    spec = EXAMPLES / "n8n/refunds.yaml"
    assert load_spec(spec).name == "refunds"
    assert tools <= set(YAML(typ="safe").load(spec)["tools"])


def test_every_example_is_listed() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    folders = [folder.name for folder in EXAMPLES.iterdir() if folder.is_dir() and folder.name != "__pycache__"]
    assert [name for name in sorted(folders) if f"`{name}/`" not in page] == []
