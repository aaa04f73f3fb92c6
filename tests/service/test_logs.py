"""Log lines: one for each event, whatever a stranger put into a name."""

from __future__ import annotations

import json
import logging
import sys

from luckrate_otel.service.logs import JsonFormatter, TextFormatter

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
