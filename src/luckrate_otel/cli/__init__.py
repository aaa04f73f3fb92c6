"""Arguments → configuration → a shell. What a command does lives elsewhere; here it is only called and printed."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence

from luckrate_otel.cli.arguments import parser
from luckrate_otel.cli.terminal import INTERRUPTED, UNUSABLE, complain, set_output
from luckrate_otel.errors import LuckrateError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. What the user can mend is told on stderr without a traceback."""
    try:
        arguments = parse(argv)
        set_output(getattr(arguments, "format", "text"))
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as done:  # argparse: --help, --version, bad usage
        return done.code if isinstance(done.code, int) else UNUSABLE
    except LuckrateError as error:
        complain(str(error))
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _give_up_output()  # the reader has had enough (`| head`)
        return INTERRUPTED
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename:
            raise
        _give_up_output()
        complain(f"standard output cannot be written: {os.strerror(error.errno).lower()}; its report is not whole")
        return UNUSABLE
    return status


# A disk that is full or broken under `> report.json`. Half a report with the gate's status looks like a whole one.
_UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


def _give_up_output() -> None:
    """What is still buffered must not raise once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command's arguments, with `run` for what it does. Raises SystemExit as argparse does."""
    return parser().parse_args(argv)
