"""Every Python block of docs/library.md runs."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/library.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/library.md", "exec"), {"__name__": "__main__"})
