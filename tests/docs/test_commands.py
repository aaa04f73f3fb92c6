"""Every command that README and docs tell to run is one that the program understands."""

import re
import shlex
from pathlib import Path

import pytest

from luckrate_otel import cli
from luckrate_otel.specfile import load_spec

ROOT = Path(__file__).parents[2]
FOLDERS = ("examples", "collector-config", "tests/traces")
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
BLOCKS = [
    (page, block) for page in PAGES for block in re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
]
COMMANDS = [(page.name, line) for page, block in BLOCKS for line in block.splitlines() if line.strip()]
SPECS = [
    (page.name, block)
    for page in PAGES
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    if block.removeprefix("# refunds.yaml\n").startswith("name:")
]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_commands_parse(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert words[1] in targets
    elif words[0] in {"luckrate-otel", ".venv/bin/luckrate-otel"}:
        cli.parse(words[1:])
        assert [word for word in words if word.startswith(("tests/", "examples/")) and not list(ROOT.glob(word))] == []
    elif words[:2] == ["python", "-m"]:
        module = ROOT.joinpath(*words[2].split("."))
        assert (module / "__main__.py").exists() or module.with_suffix(".py").exists()
    elif words[0] == "curl":
        assert words[-1].startswith("http://127.0.0.1:")
    else:
        pytest.fail(f"{page}: {words[0]} is not a command this test knows")


@pytest.mark.parametrize(("page", "block"), SPECS)
def test_specs_load(tmp_path: Path, page: str, block: str) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text(block, encoding="utf-8")
    assert load_spec(file).rules, page


EVERY_PAGE = sorted([*PAGES, ROOT / "CHANGELOG.md", *(p for d in FOLDERS for p in (ROOT / d).rglob("*.md"))])


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    headings = (re.sub(r"[^\w\- ]", "", line) for line in re.findall(r"^#+ (.*)$", prose, re.MULTILINE))
    return {heading.lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", prose):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), f"{target}#{anchor}"


def test_the_readme_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text("utf-8")))
    assert linked == {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_sentences_parse(page: Path) -> None:
    for command in re.findall(r"`(luckrate-otel [a-z][^`]*)`", page.read_text("utf-8").replace("\n", " ")):
        words = shlex.split(command)[1:]
        if all(re.fullmatch("[a-z]+", word) for word in words):  # the command as such is spoken of
            with pytest.raises(SystemExit, match=r"^0$"):
                cli.parse([*words, "--help"])
        else:
            cli.parse(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    """Of the repository: code spans such as `benchmarks/run.py` or `python benchmarks/run.py`."""
    for target in re.findall(
        r"`(?:python )?((?:benchmarks|tests|src|docs|examples|collector-config)/[\w./-]+)", page.read_text("utf-8")
    ):
        assert (ROOT / target).exists(), f"{page.name}: {target}"
