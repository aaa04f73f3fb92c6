"""docs/provenance.md states the bounds and reasons that the code has."""

from __future__ import annotations

from pathlib import Path

import pytest

from luckrate_otel.provenance.tokens import copied, derived, index, leaves, pointing, sources

DOC = (Path(__file__).parents[2] / "docs" / "provenance.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("a text over 4 million characters", sources.MAX_TEXT == 4_000_000),
        ("16 million in all", sources.MAX_CHARS == 16_000_000),
        ("more than 20,000 argument leaves", leaves.MAX_LEAVES == 20_000),
        ("nested deeper than 64", leaves.MAX_DEPTH == 64),
        ("work beyond 300 million compared characters", index.MAX_COMPARED == 300_000_000),
        ("the latest 60,000 characters", derived.MAX_READ == 60_000),
        ("at most 60 numbers", derived.MAX_OPERANDS == 60),
        ("the first 20,000 characters of a turn", pointing.MAX_REQUEST == 20_000),
        ("eight words in a row", copied.RUN == 8),
    ],
)
def test_bounds_are_documented(said: str, value: bool) -> None:
    assert said in DOC
    assert value


@pytest.mark.parametrize("reason", ["no_task", "history_missing", "not_captured", "truncated", "redacted", "too_large"])
def test_every_reason_is_documented(reason: str) -> None:
    assert f"`{reason}`" in DOC
