"""Arguments → configuration → a shell. What a command does lives elsewhere; here it is only called and printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from luckrate_otel.errors import InputError, LuckrateError

if TYPE_CHECKING:  # each command loads only what it needs: --help and health are wanted at once
    from luckrate_otel.batch import Batch
    from luckrate_otel.config import Config
    from luckrate_otel.model import Trajectory, Verdict
    from luckrate_otel.reports.graded import GateOptions
    from luckrate_otel.reports.text import Style
    from luckrate_otel.specfile import SpecFile

# Exit status, a public contract: the gate passed; the gate failed; bad usage or no usable input.
PASSED, FAILED, UNUSABLE = 0, 1, 2

# What a shell reports of a program that Ctrl-C ended.
INTERRUPTED = 130

_EXAMPLES = """\
examples:
  luckrate-otel demo
      see it work: captured agent traffic through the real processor
  luckrate-otel steps traces.jsonl
      what each agent run did, call by call
  luckrate-otel check traces.jsonl --spec refunds.yaml
      grade runs and set the exit status, for CI
  luckrate-otel exec --spec refunds.yaml --runs 5 -- python agent.py
      run an agent, grade what it did
  luckrate-otel serve --config luckrate.yaml
      the processor: receive OTLP, grade, annotate, forward
"""

_CHECK_EXAMPLES = """\
exit status: 0 the gate passed, 1 it failed, 2 bad usage or nothing usable to grade.

examples:
  luckrate-otel check traces.jsonl --spec refunds.yaml
  luckrate-otel check spans.jsonl logs.jsonl --spec refunds.yaml --format json > report.json
  kubectl logs collector | luckrate-otel check - --spec refunds.yaml --max-luck-rate 0.05
"""

_EXEC_EXAMPLES = """\
CMD's own output goes to stderr; the report is all there is on stdout. CMD needs no change: what it sends over OTLP,
gRPC or HTTP, comes here, and is passed on to where its environment pointed it, if anywhere.

exit status: 0 the gate passed, 1 it failed or CMD did, 2 bad usage or no agent run seen.

examples:
  luckrate-otel exec --spec refunds.yaml -- python agent.py
  luckrate-otel exec --spec refunds.yaml --runs 5 --format junit -- opentelemetry-instrument python agent.py
"""

_COMPARE_EXAMPLES = """\
exit status: 0 nothing got worse, 1 something did (a case, or surely the Luck Rate), 2 no report.

examples:
  luckrate-otel check main.jsonl --spec refunds.yaml --format json > a.json
  luckrate-otel check branch.jsonl --spec refunds.yaml --format json > b.json
  luckrate-otel compare a.json b.json
"""

_SERVE_EXAMPLES = """\
Without --config everything has its default, and spans go where OTEL_EXPORTER_OTLP_ENDPOINT says.

examples:
  luckrate-otel serve --config luckrate.yaml
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:14318 luckrate-otel serve --spec refunds.yaml
"""

_FILES = (
    "OTLP JSON, JSONL or protobuf, Jaeger JSON, or payload files, plain or under gzip or zstd; traces and logs "
    "files given together are joined; - reads standard input"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. What the user can mend is told on stderr without a traceback."""
    try:
        arguments = parse(argv)
        _set_output(getattr(arguments, "format", "text"))
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except SystemExit as done:  # argparse: --help, --version, bad usage
        return done.code if isinstance(done.code, int) else UNUSABLE
    except LuckrateError as error:
        _complain(str(error))
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has had enough (`| head`); what is still buffered must not raise once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERRUPTED
    return status


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command's arguments, with `run` for what it does. Raises SystemExit as argparse does."""
    return _parser().parse_args(argv)


# ---- commands ----------------------------------------------------------------------------------


def _serve(arguments: argparse.Namespace) -> int:
    from luckrate_otel.service.server import run

    config = _config(arguments)
    if arguments.dry_run:
        return _config_check(arguments)
    return run(config, lambda: _config(arguments))


def _config_check(arguments: argparse.Namespace) -> int:
    from luckrate_otel.config import as_lines, find_warnings
    from luckrate_otel.specfile import load_specs

    config = _config(arguments)
    specs = load_specs(config.specs)
    for line in as_lines(config):
        print(line)
    for spec, path in zip(specs, config.specs, strict=True):
        print(f"spec {spec.name} ({path}), version {spec.version}")
    for warning in find_warnings(config):
        _complain(f"warning: {warning}")
    return PASSED


def _config(arguments: argparse.Namespace) -> Config:
    from luckrate_otel.config import load

    config = load(arguments.config, os.environ)
    return replace(config, specs=tuple(arguments.spec)) if arguments.spec else config


def _demo(_: argparse.Namespace) -> int:
    from luckrate_otel.demo.run import run

    return run(sys.stdout, _progress("demo"), _style())


def _steps(arguments: argparse.Namespace) -> int:
    from luckrate_otel.reports.text import steps_text
    from luckrate_otel.reports.trajectory import to_json

    batch = _read(arguments.files)
    if arguments.format == "json":
        for trajectory in batch.trajectories:
            print(json.dumps(to_json(trajectory), ensure_ascii=False))
    else:
        print(steps_text(batch.trajectories, _style(values=True)))
    return PASSED


def _check(arguments: argparse.Namespace) -> int:
    from luckrate_otel.batch import grade
    from luckrate_otel.specfile import load_spec_files

    files = load_spec_files(arguments.spec)
    options = _gate_options(arguments)
    batch = _read(arguments.files, allow_empty=arguments.allow_empty)
    return _report(grade(batch.trajectories, [file.spec for file in files]), files, options, arguments)


def _gate_options(arguments: argparse.Namespace) -> GateOptions:
    from luckrate_otel.reports.graded import GateOptions
    from luckrate_otel.reports.past import read_past

    return GateOptions(
        known=read_past(arguments.baseline).known if arguments.baseline else frozenset(),
        allow_empty=arguments.allow_empty,
        allow_unjudged=arguments.allow_unjudged,
        max_luck_rate=arguments.max_luck_rate,
    )


def _report(
    graded: Sequence[tuple[Trajectory, Verdict]],
    files: Sequence[SpecFile],
    options: GateOptions,
    arguments: argparse.Namespace,
    reasons: Sequence[str] = (),
) -> int:
    """Print the report and turn the gate into the exit status. reasons: why it fails besides the verdicts."""
    from luckrate_otel.reports.formats import FORMATS
    from luckrate_otel.reports.graded import make_report
    from luckrate_otel.reports.places import places

    report = make_report(graded, options, places(files), reasons)
    print(FORMATS[arguments.format](report, _style(values=arguments.show_values)))
    return FAILED if report.gate.failed else PASSED


def _exec(arguments: argparse.Namespace) -> int:
    from luckrate_otel.batch import grade
    from luckrate_otel.execute import Command, execute
    from luckrate_otel.specfile import load_spec_files

    files = load_spec_files(arguments.spec)
    options = _gate_options(arguments)
    words = tuple(arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command)
    if not words:
        raise InputError("exec: no command given; write it after --")
    command = Command(
        words,
        runs=arguments.runs,
        settle=arguments.settle,
        wait=arguments.wait,
        case=arguments.case,
        capture=arguments.capture,
    )
    done = execute(command, os.environ, _progress("run"))
    for reason in done.reasons:
        _complain(reason)
    if done.unreadable:
        _complain(f"{done.unreadable} spans or log records could not be read, the rest is used")
    if not done.runs and not arguments.allow_empty:
        raise InputError("\n".join(f"no agent run seen: {line}" for line in done.seen.splitlines()))
    status = _report(grade(done.runs, [file.spec for file in files]), files, options, arguments, done.reasons)
    return INTERRUPTED if done.interrupted else status


def _compare(arguments: argparse.Namespace) -> int:
    from luckrate_otel.compare import compare
    from luckrate_otel.reports.comparison import comparison_json, comparison_text
    from luckrate_otel.reports.past import read_past

    found = compare(read_past(arguments.a), read_past(arguments.b))
    if arguments.format == "json":
        print(json.dumps(comparison_json(found), ensure_ascii=False))
    else:
        print(comparison_text(found, _style()))
    return FAILED if found.regressed else PASSED


def _spec_check(arguments: argparse.Namespace) -> int:
    from luckrate_otel.specfile import load_spec

    status = PASSED
    for path in arguments.files:
        try:
            spec = load_spec(path)
        except LuckrateError as error:
            _complain(str(error))
            status = UNUSABLE
        else:
            rules = ", ".join(rule.id for rule in spec.rules)
            print(f"{path}: {spec.name}, version {spec.version}, rules: {rules}")
    return status


def _spec_schema(_: argparse.Namespace) -> int:
    from luckrate_otel.specschema import spec_schema

    print(json.dumps(spec_schema(), indent=2))
    return PASSED


def _spec_infer(arguments: argparse.Namespace) -> int:
    from luckrate_otel.infer import infer

    print(infer(_read(arguments.files).trajectories, arguments.name).text, end="")
    return PASSED


def _spec_test(arguments: argparse.Namespace) -> int:
    from luckrate_otel.quality import quality
    from luckrate_otel.reports.quality import quality_json, quality_text
    from luckrate_otel.specfile import load_spec

    spec = load_spec(arguments.spec)
    found = quality(spec, _read(arguments.good).trajectories)
    print(json.dumps(quality_json(found), ensure_ascii=False) if arguments.format == "json" else quality_text(found))
    return FAILED if found.failing or not found.runs else PASSED


def _health(arguments: argparse.Namespace) -> int:
    """Ask /readyz; for container checks, which want 0 or 1."""
    from http.client import HTTPException
    from urllib.request import urlopen

    endpoint = arguments.endpoint if "://" in arguments.endpoint else f"http://{arguments.endpoint}"
    url = f"{endpoint.rstrip('/')}/readyz"
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{arguments.endpoint}: must be host:port, or http:// or https:// with it")
    try:
        with urlopen(url, timeout=arguments.timeout) as answer:  # noqa: S310 - the scheme is one of two
            print(answer.read(1000).decode(errors="replace").strip() or "ready")
    except (OSError, HTTPException) as error:
        _complain(f"{url}: not ready ({getattr(error, 'reason', error)})")
        return FAILED
    return PASSED


def _read(files: Sequence[str], *, allow_empty: bool = False) -> Batch:
    """The runs of the files; bad lines are told and counted, and only a wholly useless input is an error."""
    from luckrate_otel.batch import read_files

    progress = _progress("reading")
    progress(", ".join(files)[:60])
    try:
        batch = read_files(files)
    finally:
        progress("")
    for problem in batch.problems[:MAX_PROBLEMS]:
        _complain(str(problem))
    if len(batch.problems) > MAX_PROBLEMS:
        _complain(f"and {len(batch.problems) - MAX_PROBLEMS} more unusable parts")
    if batch.problems:
        parts = "part" if len(batch.problems) == 1 else "parts"
        _complain(f"{len(batch.problems)} unusable {parts} left out, the rest is used")
    if not batch.trajectories and not allow_empty:
        what = batch.unrecognised.splitlines() or ["nothing in it tells of an agent"]
        raise InputError("\n".join(f"{', '.join(files)}: no agent run found: {line}" for line in what))
    return batch


MAX_PROBLEMS = 20

# ---- output ------------------------------------------------------------------------------------


def _set_output(form: str) -> None:
    """Reports that programs read are UTF-8 everywhere; to a terminal that cannot show `→`, text gives an escape."""
    if isinstance(sys.stdout, TextIOWrapper):
        if form == "text":
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            sys.stdout.reconfigure(encoding="utf-8")


def _complain(text: str) -> None:
    for line in text.splitlines():
        print(f"luckrate-otel: {line}", file=sys.stderr)


def _style(*, values: bool = False) -> Style:
    from luckrate_otel.reports.text import Style

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Style(colour=colour, values=values)


def _progress(what: str) -> Callable[[str], None]:
    """Says on one line how far things are, only where a person looks on; "" wipes it."""
    if not sys.stderr.isatty():
        return lambda _: None

    def show(text: str) -> None:
        print(f"\r\x1b[2K{f'{what}: {text}' if text else ''}", end="", file=sys.stderr, flush=True)

    return show


# ---- arguments ---------------------------------------------------------------------------------


_Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse gives the type no public name


class _Parser(argparse.ArgumentParser):
    """argparse, but bad usage is told in one line."""

    def error(self, message: str) -> NoReturn:
        _complain(f"{message} (see {self.prog} --help)")
        raise SystemExit(UNUSABLE)


def _parser() -> _Parser:
    parser = _Parser(
        prog="luckrate-otel",
        description="Grade the path an AI agent took, not just its answer: an OpenTelemetry trace processor.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"luckrate-otel {version('luckrate-otel')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    serve = _command(commands, "serve", "run the processor until SIGTERM or Ctrl-C", _serve, _SERVE_EXAMPLES)
    _add_config(serve)
    serve.add_argument("--dry-run", action="store_true", help="check configuration and specs, start nothing")

    _command(commands, "demo", "play captured agent traffic through the real processor", _demo)

    steps = _command(commands, "steps", "show what each agent run in a file did, call by call", _steps)
    steps.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    steps.add_argument("--format", choices=("text", "json"), default="text", help="json: one run a line")

    check = _command(
        commands, "check", "grade the runs in a file; the gate is the exit status", _check, _CHECK_EXAMPLES
    )
    check.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    _add_grading(check)

    execute = _command(commands, "exec", "run a command, grade the agent runs in what it sends", _exec, _EXEC_EXAMPLES)
    _add_grading(execute)
    execute.add_argument("--runs", type=_count, default=1, metavar="K", help="run CMD so many times; default: 1")
    execute.add_argument("--case", metavar="NAME", help="the case that every run is of; default: its task's text")
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

    compare = _command(commands, "compare", "say what changed between two JSON reports", _compare, _COMPARE_EXAMPLES)
    compare.add_argument("a", type=Path, metavar="A", help="report of check or exec --format json, before")
    compare.add_argument("b", type=Path, metavar="B", help="the same, after")
    compare.add_argument("--format", choices=("text", "json"), default="text")

    spec = _command(commands, "spec", "work on spec files").add_subparsers(metavar="COMMAND", required=True)
    spec_check = _command(spec, "check", "read spec files and tell every problem", _spec_check)
    spec_check.add_argument("files", nargs="+", type=Path, metavar="FILE")
    _command(spec, "schema", "print the JSON Schema of spec files, for editors", _spec_schema)
    spec_infer = _command(spec, "infer", "propose a spec from known-good runs, to be edited", _spec_infer)
    spec_infer.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
    spec_infer.add_argument("--name", default="inferred", help="the spec's name; default: %(default)s")
    spec_test = _command(spec, "test", "test a spec on known-good runs and on mutants of them", _spec_test)
    spec_test.add_argument("--spec", type=Path, required=True, metavar="F")
    spec_test.add_argument("--good", nargs="+", required=True, metavar="FILE", help=_FILES)
    spec_test.add_argument("--format", choices=("text", "json"), default="text")

    config = _command(commands, "config", "work on the configuration").add_subparsers(metavar="COMMAND", required=True)
    _add_config(_command(config, "check", "read it with its specs, tell every problem, print it", _config_check))

    health = _command(commands, "health", "ask a running processor whether it is ready", _health)
    health.add_argument(
        "--endpoint", default="127.0.0.1:8321", metavar="HOST:PORT", help="or a URL; default: %(default)s"
    )
    health.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS", help="default: %(default)s")
    return parser


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
    parser.add_argument("--config", type=Path, metavar="F", help="YAML file; see docs/configuration.md")
    parser.add_argument(
        "--spec", action="append", type=Path, metavar="F", help="spec file, instead of the configured ones; repeatable"
    )


def _add_grading(parser: _Parser) -> None:
    """What `check` and `exec` have in common: how runs are graded, reported and gated."""
    from luckrate_otel.reports.formats import FORMATS

    parser.add_argument(
        "--spec",
        action="append",
        type=Path,
        required=True,
        metavar="F",
        help="YAML, JSON, TOML or Python file; given several times, the first whose match fits grades a run",
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help="see docs/reports.md")
    parser.add_argument(
        "--baseline", type=Path, metavar="FILE", help="JSON report of before; findings that it has do not fail the gate"
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


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise ValueError(text)
    return value


_share.__name__ = "share between 0 and 1"


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


_count.__name__ = "number of runs"


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError(text)
    return value


_seconds.__name__ = "number of seconds"
