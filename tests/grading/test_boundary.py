"""The pure core imports standard-library data modules and itself, nothing that reads, waits, logs or draws lots."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import luckrate_otel

ROOT = Path(luckrate_otel.__file__).parent

# Modules and packages of the pure core, as they are or come to be.
PURE = (
    "__init__",
    "adapters",
    "annotate",
    "assemble",
    "canonical",
    "check",
    "content",
    "conversation",
    "errors",
    "facts",
    "gate",
    "idle",
    "join",
    "known",
    "luck",
    "match",
    "model",
    "output",
    "payloads",
    "pipeline",
    "plural",
    "printable",
    "provenance",
    "record",
    "rules",
    "runs",
    "infer",
    "quality",
    "spec",
    "specschema",
    "surrogates",
    "telemetry",
    "vocabulary",
)

# Modules that only hold and transform values. Anything that touches the world outside is missing here on purpose:
# os, sys, io, time, random, threading, asyncio, logging, socket, subprocess, pathlib.
# fmt: off
STANDARD = frozenset(
    {
        "__future__", "abc", "base64", "binascii", "bisect", "collections", "contextlib", "copy", "csv",
        "dataclasses", "datetime", "decimal", "difflib", "enum", "fractions", "functools", "hashlib", "heapq",
        "html", "importlib", "ipaddress", "itertools", "json", "math", "numbers", "operator", "re", "statistics",
        "string", "struct", "textwrap", "types", "typing", "unicodedata", "urllib.parse", "uuid", "zlib",
    }
)
# fmt: on


def sources() -> Iterator[Path]:
    for name in PURE:
        yield from (path for path in (ROOT / f"{name}.py",) if path.exists())
        yield from sorted((ROOT / name).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


def imported(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path == ROOT / "__init__.py":  # names the suite for type checkers; what it loads is tested with the public names
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # `from luckrate_otel import spec` names a module, `from luckrate_otel.model import Step` a value of one.
            base = node.module if node.level == 0 else f"{module_name(path)}.{node.module or ''}"
            yield from ([f"{base}.{alias.name}" for alias in node.names] if base == "luckrate_otel" else [str(base)])


def allowed(name: str) -> bool:
    own = name.split(".")
    if own[0] == "luckrate_otel":
        return len(own) == 1 or own[1] in PURE
    # Both only transform values: given schemas without remote references jsonschema opens nothing.
    return name in STANDARD or own[0] in {"jsonschema", "re2"} or name.startswith("collections.")


@pytest.mark.parametrize("path", list(sources()), ids=module_name)
def test_pure_modules_import_pure_modules(path: Path) -> None:
    edges = [f"{module_name(path)} → {name}" for name in imported(path) if not allowed(name)]
    assert edges == []


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("re", True),
        ("collections.abc", True),
        ("luckrate_otel.rules.key", True),
        ("jsonschema.validators", True),
        ("re2", True),
        ("os", False),
        ("time", False),
        ("random", False),
        ("asyncio", False),
        ("logging", False),
        ("yaml", False),
        ("google.protobuf", False),
        ("opentelemetry.proto.trace.v1", False),
        ("luckrate_otel.otlp.decode", False),
        ("luckrate_otel.service", False),
        ("luckrate_otel.config", False),
    ],
)
def test_what_the_boundary_lets_through(name: str, may: bool) -> None:
    assert allowed(name) is may
