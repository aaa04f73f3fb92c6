"""The terminal: exit statuses, one-line complaints, colour and progress only where a person looks on."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from typing import TYPE_CHECKING

from luckrate_otel.printable import printable

if TYPE_CHECKING:
    from luckrate_otel.reports.text import Style

# Exit status, a public contract: the gate passed; the gate failed; bad usage or no usable input.
PASSED, FAILED, UNUSABLE = 0, 1, 2

# What a shell reports of a program that Ctrl-C ended.
INTERRUPTED = 130


def set_output(form: str) -> None:
    """Reports that programs read are UTF-8 everywhere; to a terminal that cannot show `→`, text gives an escape."""
    if isinstance(sys.stdout, TextIOWrapper):
        if form == "text":
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


def complain(text: str) -> None:
    """Names in it may come from strangers: what would move the cursor is written out."""
    for line in text.splitlines():
        print(f"luckrate-otel: {printable(line)}", file=sys.stderr)


class _Complaints(logging.Handler):
    """What the program's parts log, as complaints: a command that ends says all it has to say in the same way."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(printable(record.getMessage()))  # it may quote what a server answered, and is one line


def log_as_complaints() -> None:
    """Unless whoever called us has a log of their own."""
    logging.basicConfig(handlers=[_Complaints()], level=logging.WARNING)


def style_of(*, values: bool = False) -> Style:
    from luckrate_otel.reports.text import Style

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(colour=colour, values=values)


def progress(what: str) -> Callable[[str], None]:
    """Says on one line how far things are, only where a person looks on; "" wipes it."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(text: str) -> None:
        print(f"\r\x1b[2K{f'{what}: {text}' if text else ''}", end="", file=sys.stderr, flush=True)

    return show
