"""Log lines: one for each event, whatever a stranger put into a name."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from luckrate_otel.service.logs import Calm, JsonFormatter, TextFormatter, configure
from luckrate_otel.service.repeats import EVERY_NS

FORGED = "span\n2026-01-01 ERROR all is lost\r\x1b[2J\x1b]0;owned\x07\u2028\u202eevil\x9b1m\x00"


def record(message: str, *args: object, failed: bool = False) -> logging.LogRecord:
    info = None
    if failed:
        try:
            raise ValueError("the prompt: my password is 1234")  # noqa: TRY301 - to have a traceback
        except ValueError:
            info = sys.exc_info()
    made = logging.LogRecord("luckrate_otel.x", logging.WARNING, "x.py", 1, message, args, info)
    made.created = 0.0
    return made


def test_a_name_cannot_forge_a_line_or_drive_a_terminal() -> None:
    line = TextFormatter().format(record("dropped %s", FORGED))
    assert line == (
        "1970-01-01T00:00:00.000Z WARNING dropped span\\x0a2026-01-01 ERROR all is lost\\x0d\\x1b[2J\\x1b]0;owned\\x07"
        "\\u2028\\u202eevil\\x9b1m\\x00"
    )
    text = JsonFormatter().format(record("dropped %s", FORGED))
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == {
        "time": "1970-01-01T00:00:00.000Z",
        "level": "WARNING",
        "logger": "luckrate_otel.x",
        "message": f"dropped {FORGED}",
    }


def test_an_exception_is_named_and_placed_but_not_quoted() -> None:
    for formatter in (TextFormatter(), JsonFormatter()):
        line = formatter.format(record("grade failed", failed=True))
        assert "password" not in line
        assert "ValueError: " in line
        assert "test_logs.py" in line
        assert "\n" not in line


def test_what_a_library_says_again_and_again_is_one_line_a_minute() -> None:
    """Of each place in it, whatever the text; our own lines all pass."""

    def told(name: str, line: int, text: str) -> str | None:
        made = logging.LogRecord(name, logging.ERROR, "selector_events.py", line, "accept: %s", (text,), None)
        return made.getMessage() if calm.filter(made) else None

    now_ns = 0
    calm = Calm(lambda: now_ns)
    assert [told("asyncio", 1, text) for text in "abc"] == ["accept: a", None, None]
    assert told("asyncio", 2, "d") == "accept: d"
    assert [told("luckrate_otel.service.send.sender", 1, text) for text in "ef"] == ["accept: e", "accept: f"]
    assert told("luckrate_otelish", 1, "g") == "accept: g"
    now_ns = EVERY_NS
    assert told("asyncio", 1, "h") == "accept: h (2 more unlogged)"
    assert told("luckrate_otelish", 1, "i") == "accept: i"


def test_the_programs_log_is_calm(capfd: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        configure("text")
        for _ in range(3):
            logging.getLogger("asyncio").error("out of file descriptors")
            logging.getLogger("luckrate_otel.x").error("ours")
    finally:
        logging.basicConfig(handlers=before, level=level, force=True)
    lines = [line.partition(" ERROR ")[2] for line in capfd.readouterr().err.splitlines()]
    assert lines == ["out of file descriptors", "ours", "ours", "ours"]
