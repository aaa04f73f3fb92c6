"""The real programs that tests run: one table of what they are, and how each is built from what is published.

`make programs` builds them all, `make collector` the two Collectors, into $LUCKRATE_PROGRAMS or
~/.cache/luckrate-otel/programs; one that is there already is left alone. The name of each holds a hash of all that
decides it, so a changed version is another program. Needs Go for the programs, python3 and a package index for the
environments; itself only the standard library. All of them from nothing, Go's caches empty too, took 31 minutes on two
cores that others used as well (15 minutes of processor time).

usage: python3 tests/programs/build.py [NAME…]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

Build = Callable[["Program", Path, Path], None]


@dataclass(frozen=True)
class Program:
    """build: makes `target` in the scratch directory it is given. files, arguments: what decides the result.

    inside: the executable's place in `target`, when that is a directory.
    """

    name: str
    build: Build
    files: tuple[Path, ...] = ()
    arguments: tuple[str, ...] = ()
    inside: str = ""

    @property
    def target(self) -> Path:
        key = sha256("\n".join((self.name, *self.arguments)).encode())
        for file in self.files:
            key.update(file.read_bytes())
        return cache() / f"{self.name}-{key.hexdigest()[:12]}"

    @property
    def executable(self) -> Path:
        return self.target / self.inside if self.inside else self.target


def cache() -> Path:
    given = os.environ.get("LUCKRATE_PROGRAMS")
    return Path(given) if given else Path.home() / ".cache/luckrate-otel/programs"


# ---- ways to build -----------------------------------------------------------------------------


def collector(program: Program, scratch: Path, target: Path) -> None:
    """arguments: version of the Collector builder. files: its manifest."""
    (version,) = program.arguments
    package = "go.opentelemetry.io/collector/cmd/builder"
    _scratch_module(scratch)
    shutil.copy(program.files[0], scratch / "builder.yaml")
    _run(["go", "get", "-tool", f"{package}@{version}"], scratch)
    _run(["go", "tool", "builder", "--config", "builder.yaml"], scratch)
    shutil.move(scratch / "_build" / program.name, target)


def package(program: Program, scratch: Path, target: Path) -> None:
    """arguments: package, its module's version, build tags."""
    path, version, tags = program.arguments
    _scratch_module(scratch)
    # As a tool of a module of our own: several of these modules hold `replace` lines, which `go install` refuses.
    _run(["go", "get", "-tool", f"{path}@{version}"], scratch)
    _run(["go", "build", "-trimpath", "-ldflags=-s -w", f"-tags={tags}", "-o", str(target), path], scratch)


def source(program: Program, scratch: Path, target: Path) -> None:
    """files: a module of the tests' own."""
    for file in program.files:
        shutil.copy(file, scratch)
    _run(["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(target), "."], scratch)


def environment(program: Program, _scratch: Path, target: Path) -> None:
    """files: requirements. A virtual environment cannot be moved, so it is made in place and marked when complete."""
    shutil.rmtree(target, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(target)], HERE)
    pip = [str(target / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "-r", str(program.files[0])], HERE)
    (target / "bin/ready").symlink_to("python")


def _scratch_module(folder: Path) -> None:
    (folder / "go.mod").write_text("module scratch\n\ngo 1.25.0\n", encoding="utf-8")


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{command[0]} is not on PATH; the real programs are built with it") from None
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


# ---- the table ---------------------------------------------------------------------------------

_CONTRIB = "github.com/open-telemetry/opentelemetry-collector-contrib"
_PROMETHEUS = "github.com/prometheus/prometheus/cmd"
# No service discovery but files and static lists: a third of the time to build, and nothing here is discovered.
_PROMETHEUS_BUILD = ("v0.313.5", "remove_all_sd")

PROGRAMS = {
    program.name: program
    for program in (
        Program("otelcol", collector, (HERE / "otelcol/builder.yaml",), ("v0.161.0",)),
        Program("otelcol-kafka", collector, (HERE / "otelcol-kafka/builder.yaml",), ("v0.165.0",)),
        Program("kafka", source, tuple(HERE / "kafka" / name for name in ("main.go", "go.mod", "go.sum"))),
        Program("jaeger", package, (), ("github.com/jaegertracing/jaeger/cmd/jaeger", "v1.76.0", "")),
        Program("telemetrygen", package, (), (f"{_CONTRIB}/cmd/telemetrygen", "v0.161.0", "")),
        Program("prometheus", package, (), (f"{_PROMETHEUS}/prometheus", *_PROMETHEUS_BUILD)),
        Program("promtool", package, (), (f"{_PROMETHEUS}/promtool", *_PROMETHEUS_BUILD)),
        Program("langgraph", environment, (ROOT / "examples/langgraph/requirements.txt",), (), "bin/ready"),
        Program("crewai", environment, (ROOT / "examples/crewai/requirements.txt",), (), "bin/ready"),
        Program("pydantic-ai", environment, (ROOT / "examples/pydantic-ai/requirements.txt",), (), "bin/ready"),
        # Builders and checkers of what lies in examples/: never needed to run or test the package itself.
        Program("tools", environment, (ROOT / "examples/requirements-tools.txt",), (), "bin/ready"),
    )
}


def main(names: Sequence[str]) -> int:
    cache().mkdir(parents=True, exist_ok=True)
    for name in names or PROGRAMS:
        program = PROGRAMS[name]
        if program.executable.exists():
            print(f"{name}: {program.executable}")
            continue
        began = time.monotonic()
        print(f"{name}: building", flush=True)
        with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=cache()) as scratch:
            folder = Path(scratch)
            if program.inside:
                program.build(program, folder, program.target)
            else:
                program.build(program, folder, folder / "made")
                (folder / "made").replace(program.target)
        print(f"{name}: {program.executable} ({time.monotonic() - began:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
