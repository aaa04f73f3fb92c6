"""docs/ci.md lists the settings that `exec` makes, and the example workflow runs commands that exist."""

import re
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from luckrate_otel import cli
from luckrate_otel.execute.environment import CAPTURE, Capture
from luckrate_otel.specfile import load_spec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/ci.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("setting", CAPTURE, ids=lambda setting: setting.variable)
def test_each_setting_has_its_row(setting: Capture) -> None:
    assert f"| `{setting.variable}` | `{setting.value}` | {setting.frameworks} |" in PAGE.splitlines()


@pytest.mark.parametrize("setting", CAPTURE, ids=lambda setting: setting.variable)
def test_each_setting_is_one_that_the_adapters_page_knows(setting: Capture) -> None:
    assert setting.variable in (ROOT / "docs/adapters.md").read_text("utf-8")


def test_no_row_is_left_of_a_setting_that_is_gone() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [setting.variable for setting in CAPTURE]


def test_the_workflow_runs_commands_that_exist() -> None:
    workflow = YAML(typ="safe").load((ROOT / "examples/ci/github-actions.yml").read_text("utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["luckrate"]["steps"] if "run" in step]
    (command,) = [command for command in commands if command.startswith("luckrate-otel")]
    words = shlex.split(command.partition(">")[0])
    assert cli.parse(words[1:]).command == ["--", "python", "agent.py", "Refund order 88213."]


def test_no_example_installs_a_name_that_anybody_could_register() -> None:
    """On no index yet, so that `pip install luckrate-otel` fails today and runs a stranger's code tomorrow."""
    pages = [
        *ROOT.glob("docs/*.md"),
        ROOT / "README.md",
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("examples/**/*.y*ml"),
    ]
    asked = [page.name for page in pages if re.search(r"pip install [^\n]*\bluckrate-otel\b", page.read_text("utf-8"))]
    assert asked == []


def test_the_example_spec_loads() -> None:
    assert load_spec(ROOT / "examples/ci/refunds.yaml").name == "refunds"
