"""Half a surrogate pair, wherever it is written, comes in as U+FFFD, so that all that goes out can be encoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from luckrate_otel.cli import main
from luckrate_otel.content import python_repr, structured
from luckrate_otel.document import READERS
from luckrate_otel.otlp.json import load
from luckrate_otel.payloads import fields
from luckrate_otel.surrogates import mend

HALF = r'{"\ud800k": ["\udfff", {"a": "x\uD83Dy", "b": 1}]}'
MENDED = {"\ufffdk": ["\ufffd", {"a": "x\ufffdy", "b": 1}]}
WHOLE = r'{"a": "\ud83d\ude00", "b": "\\ud800"}'


def from_json_spec(text: str) -> Any:
    return READERS[".json"](text, "s.json").value


def from_yaml_spec(text: str) -> Any:
    return READERS[".yaml"](text, "s.yaml").value


@pytest.mark.parametrize(
    "read",
    [structured.loads, fields.parse, lambda text: load(text.encode(), local=True), from_json_spec],
)
def test_every_reader_of_json_mends_halves_and_keeps_pairs(read: Any) -> None:
    assert read(HALF) == MENDED
    assert read(WHOLE) == {"a": "\N{GRINNING FACE}", "b": r"\ud800"}


def test_yaml_and_python_reprs_likewise() -> None:
    assert from_yaml_spec(r'{"\ud800k": "\udfff"}') == {"\ufffdk": "\ufffd"}
    assert python_repr.read(r"{'\ud800k': 'x\udfff'}") == {"\ufffdk": "x\ufffd"}


def test_text_without_halves_is_the_same() -> None:
    assert mend("é\N{GRINNING FACE}") == "é\N{GRINNING FACE}"


def test_a_tool_name_of_half_a_pair_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "bad", "arguments": "{}"}}]}
    told = json.dumps([{"role": "user", "content": "hi"}, message]).replace("bad", r"bad\ud800")
    (tmp_path / "run.json").write_text(told)
    assert main(["steps", str(tmp_path / "run.json")]) == 0
    assert "bad\ufffd" in capsys.readouterr().out
