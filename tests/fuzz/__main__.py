"""Fuzz every target.

    python -m tests.fuzz [--executions 1000000] [--write] [TARGET…]

With atheris (coverage-guided) if it is installed, else with a plain mutator. A finding is written to tests/fuzz/corpus
and ends the run; what is in there is tried again by every `make test`. --write puts the figures on the page of
docs/reliability.md.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.faults.figures import machine, write
from tests.fuzz.mutate import mutate
from tests.fuzz.targets import TARGETS, run, seeds

CORPUS = Path(__file__).parent / "corpus"
# Inputs that reached something new, for the next run to begin with.
KEPT = Path(".cache/fuzz")
# A seed is cut to so many bytes: most of a capture repeats itself, and executions count more than their size.
SEED_BYTES = 6_000


def plain(name: str, executions: int) -> None:
    chance = random.Random(0)
    corpus = [seed for seed in seeds(name) if len(seed) <= SEED_BYTES] or [seed[:SEED_BYTES] for seed in seeds(name)]
    for _ in range(executions):
        data = mutate(chance.choice(corpus), corpus, chance)
        try:
            run(TARGETS[name], data)
        except Exception:
            keep(name, data)
            raise


def guided(name: str, executions: int) -> None:
    """In a process of its own: libFuzzer ends the one it runs in."""
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds(name):
        (folder / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed[:SEED_BYTES])
    command = [sys.executable, "-m", "tests.fuzz", "--guided", name, "--", str(folder)]
    done = subprocess.run(
        [*command, f"-runs={executions}", f"-max_len={SEED_BYTES}", "-timeout=20", "-rss_limit_mb=2048",
         f"-artifact_prefix={CORPUS}/{name}-"],
        env={**os.environ, "PYTHONPATH": "src:."}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stdout[-3000:] + done.stderr[-6000:])


def child(name: str, arguments: list[str]) -> None:
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415 - not everywhere

    with atheris.instrument_imports(include=["luckrate_otel"]):
        pass
    for module in [m for n, m in sys.modules.items() if n.startswith("luckrate_otel")]:
        for value in list(vars(module).values()):
            if callable(value) and getattr(value, "__module__", "") == module.__name__ and hasattr(value, "__code__"):
                atheris.instrument_func(value)
    atheris.Setup([sys.argv[0], *arguments], lambda data: run(TARGETS[name], data))
    atheris.Fuzz()


def keep(name: str, data: bytes) -> None:
    (CORPUS / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--executions", type=int, default=1_000_000, help="over all targets")
    parser.add_argument("--write", action="store_true", help="write the figures into docs/reliability.md")
    parser.add_argument("--guided", metavar="TARGET", help=argparse.SUPPRESS)
    options, rest = parser.parse_known_args()
    if options.guided:
        child(options.guided, [word for word in [*options.targets, *rest] if word != "--"])
        return
    engine = guided if find_spec("atheris") else plain
    each = -(-options.executions // len(options.targets))
    rows = []
    for name in options.targets:
        began = time.monotonic()
        engine(name, each)
        took = time.monotonic() - began
        what = (TARGETS[name].__doc__ or "").splitlines()[0].rstrip(".")
        rows.append(f"| {name} | {what} | {each:,} | {took:.0f} |")
        sys.stdout.write(f"{name}: {each:,} executions, {engine.__name__}, {took:.0f} s, no finding\n")
        sys.stdout.flush()
    if options.write:
        write("make fuzz", table(rows, each * len(options.targets), engine is guided))


def table(rows: Sequence[str], executions: int, coverage_guided: bool) -> str:
    how = "guided by coverage (atheris)" if coverage_guided else "by plain mutation"
    told = f"{executions:,} executions {how}, no finding. Measured on {machine()}."
    return "\n".join([told, "", "| target | what it runs | executions | s |", "| --- | --- | ---: | ---: |", *rows])


if __name__ == "__main__":
    main()
