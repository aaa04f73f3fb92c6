"""The program's own log: one line for one event, as text or as JSON.

Names in a line may come from strangers: a line break or an escape sequence in one must not forge a line or drive a
terminal. And an exception's text may quote the prompt it failed on, so only its kind and place are logged.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from luckrate_otel.service.repeats import Repeats

_OWN: Final = "luckrate_otel"

# All that moves a cursor, ends a line or turns the direction of writing: C0, DEL, C1, and Unicode's own.
_CONTROLS: Final = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (*range(32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def configure(form: str, level: int = logging.INFO) -> None:
    """Send all logs to standard error. form: `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(Calm(time.monotonic_ns))
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level, force=True)


class Calm(logging.Filter):
    """Libraries say the same of every attempt: out of file descriptors, asyncio writes hundreds of lines a second, and
    whoever opens connections would fill the disk. One line a minute is left of each; our own are limited where they are
    written."""

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__()
        self._repeats = Repeats(clock)

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.partition(".")[0] == _OWN:
            return True
        quiet = self._repeats.due((record.name, record.pathname, record.lineno))
        if quiet:
            record.msg, record.args = f"{record.getMessage()}{quiet}", ()
        return quiet is not None


class TextFormatter(logging.Formatter):
    """`time LEVEL message`, an exception behind it on the same line."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.getMessage()}"
        where = _where(record)
        return (f"{line} [{where}]" if where else line).translate(_CONTROLS)


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, message; exception where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        where = _where(record)
        if where:
            entry["exception"] = where
        return json.dumps(entry)  # ASCII only, so no control character is left


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _where(record: logging.LogRecord) -> str:
    """Kind and place of an exception, innermost call last; not its text."""
    if not record.exc_info or record.exc_info[0] is None:
        return ""
    kind, _, trace = record.exc_info
    frames = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)[-6:]]
    return f"{kind.__name__}: {' > '.join(frames)}"
