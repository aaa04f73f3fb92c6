"""`spec schema`, `spec infer` and `spec test` from the command line, on captured traffic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from luckrate_otel.cli import main
from luckrate_otel.spec import Spec

TRACES = Path(__file__).parents[1] / "traces" / "langgraph-genai"
FILES = [str(path) for path in sorted(TRACES.glob("*.traces.jsonl"))]


def test_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spec", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "luckrate-otel spec"


def test_what_is_inferred_can_be_tested(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["spec", "infer", *FILES, "--name", "captured"]) == 0
    text = capsys.readouterr().out
    assert Spec.from_mapping(YAML(typ="safe").load(text)).name == "captured"
    path = tmp_path / "captured.yaml"
    path.write_text(text, encoding="utf-8")
    main(["spec", "test", "--spec", str(path), "--good", *FILES, "--format", "json"])
    said = json.loads(capsys.readouterr().out)
    assert said["runs"] >= 1
    assert set(said["mutants"]) == {"drop", "duplicate", "swap", "alter"}


def test_a_spec_that_fails_good_runs_fails(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "strict.yaml"
    path.write_text("max_steps: 0\nground: false\n", encoding="utf-8")
    assert main(["spec", "test", "--spec", str(path), "--good", *FILES]) == 1
    assert "the spec is broken by" in capsys.readouterr().out
    path.write_text("max_steps: 100\nground: false\nsecrets: false\n", encoding="utf-8")
    assert main(["spec", "test", "--spec", str(path), "--good", *FILES]) == 0
