"""Bearer tokens from files: read again when they change, never empty, never lost to a half-done rotation."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from luckrate_otel.config import Auth
from luckrate_otel.service import build
from luckrate_otel.service.receive import auth
from luckrate_otel.service.receive.answers import Refused
from luckrate_otel.service.receive.auth import TokenFile, authorise


@pytest.fixture(autouse=True)
def _look_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "LOOK_EVERY", 0.0)


def replaced(path: Path, text: str) -> None:
    """As a rotation does it: a new file in the old one's place."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


def test_a_new_token_is_taken_up_and_the_old_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first\nnot this line")
    token = TokenFile(path)
    authorise("Bearer first", token)
    replaced(path, "second\n")
    authorise(b"bearer second", token)
    for wrong in ("Bearer first", "Bearer second1", "Bearer ", "Bearer", "second", None):
        with pytest.raises(Refused):
            authorise(wrong, token)


@pytest.mark.parametrize("damage", ["", "\n\n", None])
def test_a_file_that_is_empty_or_gone_keeps_the_old_token_and_says_so_once(
    damage: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text("s3cret")
    token = TokenFile(path)
    if damage is None:
        path.unlink()
    else:
        replaced(path, damage)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            authorise("Bearer s3cret", token)
        with pytest.raises(Refused):
            authorise("Bearer ", token)
    assert len(caplog.records) == 1
    assert "s3cret" not in caplog.text
    replaced(path, "third")
    authorise("Bearer third", token)


def test_an_empty_or_missing_file_at_start_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(OSError, match="No such file"):
        build.token(Auth(bearer_file=path))
    path.write_text("\n")
    with pytest.raises(OSError, match="holds no token"):
        build.token(Auth(bearer_file=path))
