"""docs/start.md shows what its commands print, on the files that it names."""

import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from luckrate_otel import cli
from luckrate_otel.config import Config, parse

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/start.md").read_text("utf-8")
BLOCKS = [(kind, text) for kind, text in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)]
FILES: Mapping[str, str] = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
SHOWN = [  # the last command of the block before each block of output
    (shlex.split(command.strip().splitlines()[-1])[1:], output)
    for (_, command), (kind, output) in pairwise(BLOCKS)
    if kind == "text"
]


@pytest.mark.parametrize(("words", "output"), SHOWN, ids=["steps", "check"])
def test_output_is_as_shown(
    words: list[str],
    output: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    status = cli.main(words)
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in output.splitlines() if line not in printed] == []
    assert status == (words[0] == "check")


def test_what_is_sent_goes_to_a_default_address() -> None:
    """Of a file with one line: curl leaves line ends out, and a request is one JSON document."""
    config: Config = parse(FILES["luckrate.yaml"], "", {})
    ours = {str(config.receivers.http.endpoint), str(config.metrics.prometheus)}
    assert set(re.findall(r"^curl .*http://([\w.:]+)/", PAGE, re.MULTILINE)) == ours
    (sent,) = re.findall(r"^curl .*-d @(\S+)", PAGE, re.MULTILINE)
    assert len((ROOT / sent).read_text("utf-8").splitlines()) == 1
