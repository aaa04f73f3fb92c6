"""What can be typed: every command with its options, and what its help says of each."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from luckrate_otel.cli import commands as run
from luckrate_otel.cli import ends
from luckrate_otel.cli.terminal import UNUSABLE, complain
from luckrate_otel.version import own_version

_FILES = (
    "OTLP JSON, JSONL or protobuf, Jaeger JSON, or stored runs (see docs/adapters.md), plain or under gzip or zstd; "
    "traces and logs files given together are joined; - reads standard input"
)


_SPEC_FILE = "YAML, JSON, TOML or Python file"

# A week. The system's own waits take no more than some hundred years and raise beyond.
MAX_SECONDS = 7 * 24 * 3600.0

_Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse gives the type no public name


class _Parser(argparse.ArgumentParser):
    """argparse, but bad usage is told in one line."""

    def error(self, message: str) -> NoReturn:
        if self.prog.endswith(" exec") and "required" in message:  # all that stands behind CMD is CMD's
            message += "; options stand before CMD"
        complain(f"{message} (see {self.prog} --help)")
        raise SystemExit(UNUSABLE)


def parser() -> argparse.ArgumentParser:
    """The parser; each command sets `run`."""
    parser = _Parser(
        prog="luckrate-otel",
        description="Grade the path an AI agent took, not just its answer: an OpenTelemetry trace processor.",
        epilog=ends.PROGRAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"luckrate-otel {own_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    for add in (_serve, _demo, _steps, _check, _exec, _compare, _spec, _config, _health):
        add(commands)
    return parser


# ---- commands, as the help lists them -----------------------------------------------------------


def _serve(commands: _Commands[_Parser]) -> None:
    serve = _command(commands, "serve", "run the processor until SIGTERM or Ctrl-C", run.serve, ends.SERVE)
    _add_config(serve)
    serve.add_argument("--dry-run", action="store_true", help="check configuration and specs, start nothing")


def _demo(commands: _Commands[_Parser]) -> None:
    _command(commands, "demo", "play captured agent traffic through the real processor", run.demo, ends.DEMO)


def _steps(commands: _Commands[_Parser]) -> None:
    summary = "show what each agent run in a file did, call by call"
    steps = _command(commands, "steps", summary, run.steps, ends.STEPS)
    steps.add_argument("files", nargs="+", type=_file, metavar="FILE", help=_FILES)
    steps.add_argument("--format", choices=("text", "json"), default="text", help="json: one run a line")


def _check(commands: _Commands[_Parser]) -> None:
    summary = "grade the runs in a file; the gate is the exit status"
    check = _command(commands, "check", summary, run.check, ends.CHECK)
    check.add_argument("files", nargs="+", type=_file, metavar="FILE", help=_FILES)
    _add_grading(check)


def _exec(commands: _Commands[_Parser]) -> None:
    execute = _command(commands, "exec", "run a command, grade the agent runs in what it sends", run.execute, ends.EXEC)
    execute.usage = "%(prog)s --spec F [options] -- CMD ..."
    _add_grading(execute)
    execute.add_argument("--runs", type=_count, default=1, metavar="K", help="run CMD so many times; default: 1")
    execute.add_argument(
        "--case", metavar="NAME", help="the case that every run is of; default: its task's text, else the command"
    )
    execute.add_argument(
        "--no-capture",
        dest="capture",
        action="store_false",
        help="leave content-capture settings as they are; without content fewer rules can be judged",
    )
    execute.add_argument(
        "--settle",
        type=_seconds,
        default=1.0,
        metavar="SECONDS",
        help="telemetry is complete when none came for so long after CMD's end; default: %(default)s",
    )
    execute.add_argument(
        "--wait",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="wait no longer than this for telemetry after CMD's end; default: %(default)s",
    )
    execute.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- CMD ...", help="the command and its arguments"
    )


def _compare(commands: _Commands[_Parser]) -> None:
    compare = _command(commands, "compare", "say what changed between two JSON reports", run.compare, ends.COMPARE)
    compare.add_argument("a", type=_path, metavar="A", help="report of check or exec --format json, before")
    compare.add_argument("b", type=_path, metavar="B", help="the same, after")
    compare.add_argument("--format", choices=("text", "json"), default="text")


def _spec(commands: _Commands[_Parser]) -> None:
    spec = _command(commands, "spec", "work on spec files").add_subparsers(metavar="COMMAND", required=True)
    summary = "read spec files and tell every problem"
    check = _command(spec, "check", summary, run.spec_check, ends.SPEC_CHECK)
    check.add_argument("files", nargs="+", type=_path, metavar="FILE", help=_SPEC_FILE)
    summary = "print the JSON Schema of spec files, for editors"
    _command(spec, "schema", summary, run.spec_schema, ends.SPEC_SCHEMA)
    summary = "propose a spec from known-good runs, to be edited"
    infer = _command(spec, "infer", summary, run.spec_infer, ends.SPEC_INFER)
    infer.add_argument("files", nargs="+", type=_file, metavar="FILE", help=_FILES)
    infer.add_argument("--name", type=_name, default="inferred", help="the spec's name; default: %(default)s")
    summary = "test a spec on known-good runs and on mutants of them"
    test = _command(spec, "test", summary, run.spec_test, ends.SPEC_TEST)
    test.add_argument("--spec", type=_path, required=True, metavar="F", help=_SPEC_FILE)
    test.add_argument("--good", nargs="+", type=_file, required=True, metavar="FILE", help=_FILES)
    test.add_argument("--format", choices=("text", "json"), default="text")


def _config(commands: _Commands[_Parser]) -> None:
    config = _command(commands, "config", "work on the configuration").add_subparsers(metavar="COMMAND", required=True)
    summary = "read a configuration and its specs, tell every problem, print what is in force"
    _add_config(_command(config, "check", summary, run.config_check, ends.CONFIG_CHECK))


def _health(commands: _Commands[_Parser]) -> None:
    health = _command(commands, "health", "ask a running processor whether it is ready", run.health, ends.HEALTH)
    health.add_argument(
        "--endpoint", default="127.0.0.1:8321", metavar="HOST:PORT", help="or a URL; default: %(default)s"
    )
    health.add_argument("--timeout", type=_seconds, default=5.0, metavar="SECONDS", help="default: %(default)s")


# ---- what they share ---------------------------------------------------------------------------


def _command(
    commands: _Commands[_Parser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int] | None = None,
    epilog: str | None = None,
) -> _Parser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if run is not None:
        parser.set_defaults(run=run)
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=_path, metavar="F", help="YAML file; see docs/configuration.md")
    parser.add_argument(
        "--spec", action="append", type=_path, metavar="F", help="spec file, instead of the configured ones; repeatable"
    )


def _add_grading(parser: _Parser) -> None:
    """What `check` and `exec` have in common: how runs are graded, reported and gated."""
    from luckrate_otel.reports.formats import FORMATS

    parser.add_argument(
        "--spec",
        action="append",
        type=_path,
        required=True,
        metavar="F",
        help=f"{_SPEC_FILE}; given several times, the first whose match fits grades a run",
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="see docs/reports.md")
    parser.add_argument(
        "--baseline",
        type=_path,
        metavar="FILE",
        help="JSON report of before; findings that it has do not fail the gate",
    )
    parser.add_argument("--show-values", action="store_true", help="show task texts, arguments and results as well")
    parser.add_argument("--allow-empty", action="store_true", help="no run at all is no reason to fail")
    parser.add_argument(
        "--allow-unjudged", action="store_true", help="a hard rule never evaluated is no reason to fail"
    )
    parser.add_argument(
        "--max-luck-rate",
        type=_share,
        metavar="SHARE",
        help="fail when the Luck Rate is surely above this, 0 to 1 (lower end of its 95 %% interval)",
    )


def _file(text: str) -> str:
    """An unset variable in a script gives an empty one."""
    if not text:
        raise argparse.ArgumentTypeError("must name a file, not ''")
    return text


def _path(text: str) -> Path:
    return Path(_file(text))


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError(f"must be a name, not {text!r}")
    return text


def _share(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a share between 0 and 1, such as 0.05, not {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    value = _number(text)
    if not 0 < value < MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, such as 2.5, not {text!r}")
    return value


def _number(text: str) -> float:
    """Not a number, which no bound lets through, where the text is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
