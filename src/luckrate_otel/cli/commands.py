"""One function per command: load what it needs, call it, print, and answer with the exit status."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from luckrate_otel.cli.terminal import (
    FAILED,
    INTERRUPTED,
    PASSED,
    UNUSABLE,
    complain,
    log_as_complaints,
    progress,
    style_of,
)
from luckrate_otel.errors import ConfigError, InputError, LuckrateError
from luckrate_otel.plural import plural
from luckrate_otel.printable import printable

if TYPE_CHECKING:  # each command loads only what it needs: --help and health are wanted at once
    from luckrate_otel.batch import Batch
    from luckrate_otel.config import Config
    from luckrate_otel.model import Trajectory, Verdict
    from luckrate_otel.reports.graded import GateOptions
    from luckrate_otel.specfile import SpecFile


def serve(arguments: argparse.Namespace) -> int:
    from luckrate_otel.service.server import run

    config = read_config(arguments)
    if arguments.dry_run:
        return config_check(arguments)
    return run(config, lambda: read_config(arguments))


def config_check(arguments: argparse.Namespace) -> int:
    from luckrate_otel.config import as_lines, find_warnings
    from luckrate_otel.service.opening import find_unusable

    config = read_config(arguments)
    files = read_specs(config.specs)
    unusable, missing = find_unusable(config)
    if unusable:
        raise ConfigError(unusable, config.source)
    for line in as_lines(config):
        print(line)
    for file in files:
        print(printable(f"spec {file.spec.name} ({file.source}), version {file.spec.version}"))
    for warning in find_warnings(config):
        complain(f"warning: {warning}")
    for problem in missing:  # a pipeline checks where keys are not
        complain(f"warning: {problem}; the processor does not start without it")
    return PASSED


def read_config(arguments: argparse.Namespace) -> Config:
    from luckrate_otel.config import load

    config = load(arguments.config, os.environ)
    return replace(config, specs=tuple(arguments.spec)) if arguments.spec else config


def read_specs(paths: Sequence[Path]) -> tuple[SpecFile, ...]:
    """The specs; what in them has no effect is told."""
    from luckrate_otel.specfile import load_spec_files

    files = load_spec_files(paths)
    for warning in (warning for file in files for warning in file.warnings):
        complain(f"warning: {warning}")
    return files


def demo(_: argparse.Namespace) -> int:
    from luckrate_otel.demo.run import run

    return run(sys.stdout, progress("demo"), style_of())


def steps(arguments: argparse.Namespace) -> int:
    from luckrate_otel.reports.text import steps_text
    from luckrate_otel.reports.trajectory import to_json

    batch = read(arguments.files)
    if arguments.format == "json":
        for trajectory in batch.trajectories:
            print(json.dumps(to_json(trajectory), ensure_ascii=False))
    else:
        print(steps_text(batch.trajectories, style_of(values=True)))
    return PASSED


def check(arguments: argparse.Namespace) -> int:
    from luckrate_otel.batch import grade

    files = read_specs(arguments.spec)
    options = gate_options(arguments)
    batch = read(arguments.files, allow_empty=arguments.allow_empty)
    return report(grade(batch.trajectories, [file.spec for file in files]), files, options, arguments)


def gate_options(arguments: argparse.Namespace) -> GateOptions:
    from luckrate_otel.reports.graded import GateOptions
    from luckrate_otel.reports.past import read_past

    return GateOptions(
        known=read_past(arguments.baseline).known if arguments.baseline else frozenset(),
        allow_empty=arguments.allow_empty,
        allow_unjudged=arguments.allow_unjudged,
        max_luck_rate=arguments.max_luck_rate,
    )


def report(
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
    print(FORMATS[arguments.format](report, style_of(values=arguments.show_values)))
    return FAILED if report.gate.failed else PASSED


def execute(arguments: argparse.Namespace) -> int:
    from luckrate_otel.batch import grade
    from luckrate_otel.execute import Command, execute

    log_as_complaints()
    files = read_specs(arguments.spec)
    options = gate_options(arguments)
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
    done = execute(command, os.environ, progress("run"))
    for reason in done.reasons:
        complain(reason)
    if done.unreadable:
        told = plural(done.unreadable, "span or log record", "spans or log records")
        complain(f"{told} could not be read, the rest is used")
    if not done.runs and not arguments.allow_empty:
        raise InputError(f"no agent run seen: {_in_one_line(done.seen)}")
    status = report(grade(done.runs, [file.spec for file in files]), files, options, arguments, done.reasons)
    return INTERRUPTED if done.interrupted else status


def compare(arguments: argparse.Namespace) -> int:
    from luckrate_otel.compare import compare
    from luckrate_otel.reports.comparison import comparison_json, comparison_text
    from luckrate_otel.reports.past import read_past

    found = compare(read_past(arguments.a), read_past(arguments.b))
    if arguments.format == "json":
        print(json.dumps(comparison_json(found), ensure_ascii=False))
    else:
        print(comparison_text(found, style_of()))
    return FAILED if found.regressed else PASSED


def spec_check(arguments: argparse.Namespace) -> int:
    status = PASSED
    for path in arguments.files:
        try:
            spec = read_specs([path])[0].spec
        except LuckrateError as error:
            complain(str(error))
            status = UNUSABLE
        else:
            rules = ", ".join(rule.id for rule in spec.rules)
            print(printable(f"{path}: {spec.name}, version {spec.version}, rules: {rules}"))
    return status


def spec_schema(_: argparse.Namespace) -> int:
    from luckrate_otel.specschema import spec_schema

    print(json.dumps(spec_schema(), indent=2))
    return PASSED


def spec_infer(arguments: argparse.Namespace) -> int:
    from luckrate_otel.infer import infer

    print(infer(read(arguments.files).trajectories, arguments.name).text, end="")
    return PASSED


def spec_test(arguments: argparse.Namespace) -> int:
    from luckrate_otel.quality import quality
    from luckrate_otel.reports.quality import quality_json, quality_text

    spec = read_specs([arguments.spec])[0].spec
    found = quality(spec, read(arguments.good).trajectories)
    print(json.dumps(quality_json(found), ensure_ascii=False) if arguments.format == "json" else quality_text(found))
    return FAILED if found.failing or not found.runs else PASSED


def health(arguments: argparse.Namespace) -> int:
    """Ask /readyz; for container checks, which want 0 or 1."""
    from http import HTTPStatus
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import urlopen

    url = _readyz(arguments.endpoint)
    try:
        with urlopen(url, timeout=arguments.timeout) as answer:  # noqa: S310 - the scheme is one of two
            print(answer.read(1000).decode(errors="replace").strip() or "ready")
    except HTTPError as error:  # it answers, and says why not
        said = error.read(1000).decode(errors="replace").strip().partition("\n")[0]
        reason = said if said.isprintable() and said else error.reason
        reason = f"there is no such page; {_ELSEWHERE}" if error.code == HTTPStatus.NOT_FOUND else reason
    except HTTPException:  # its text may be any bytes
        reason = f"what answers there does not speak HTTP; {_ELSEWHERE}"
    except OSError as error:
        cause = getattr(error, "reason", error)  # urllib puts it there
        reason = _words(cause)
        if isinstance(cause, ConnectionRefusedError):
            reason += f"; nothing listens there: is it running, and {_ELSEWHERE}"
    else:
        return PASSED
    complain(f"{url}: not ready ({reason})")
    return FAILED


def _words(error: object) -> str:
    """The system's own, without what libraries put around them."""
    from ssl import SSLCertVerificationError, SSLError

    if isinstance(error, SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, SSLError) and error.reason:
        return f"TLS failed: {error.reason.replace('_', ' ').lower()}; does it take http://?"
    return (getattr(error, "strerror", None) or str(error)).lower()


_ELSEWHERE = "is this its admin.endpoint?"


def _readyz(endpoint: str) -> str:
    from urllib.parse import urlsplit

    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond 65535, brackets that do not match
        usable = False
    if not usable:
        raise InputError(f"--endpoint {endpoint}: must be host:port, or http:// or https:// with it")
    return f"{url.rstrip('/')}/readyz"


def read(files: Sequence[str], *, allow_empty: bool = False) -> Batch:
    """The runs of the files; bad lines are told and counted, and only a wholly useless input is an error."""
    from luckrate_otel.batch import read_files

    show = progress("reading")
    show(", ".join(files)[:60])
    try:
        batch = read_files(files)
    finally:
        show("")
    for problem in batch.problems[:MAX_PROBLEMS]:
        complain(str(problem))
    if len(batch.problems) > MAX_PROBLEMS:
        complain(f"and {plural(len(batch.problems) - MAX_PROBLEMS, 'more unusable part')}")
    if batch.problems:
        complain(f"{plural(len(batch.problems), 'unusable part')} left out, the rest is used")
    if not batch.trajectories and not allow_empty:
        what = batch.unrecognised or "nothing in it tells of an agent"
        raise InputError(f"{_named(files)}: no agent run found: {_in_one_line(what)}")
    return batch


def _in_one_line(text: str) -> str:
    return "; ".join(text.splitlines())


def _named(files: Sequence[str]) -> str:
    more = len(files) - MAX_NAMED
    return ", ".join(files[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


MAX_PROBLEMS, MAX_NAMED = 20, 3

# ---- output ------------------------------------------------------------------------------------
