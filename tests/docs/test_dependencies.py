"""pyproject.toml names what the package imports, nothing missing or left over; constraints.txt pins it all."""

import ast
import re
import sys
import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Several distributions share these namespaces, so the import alone does not tell which one is meant.
SHARED = {
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "opentelemetry.proto": "opentelemetry-proto",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "opentelemetry.exporter.otlp": "opentelemetry-exporter-otlp",
    "opentelemetry.exporter.prometheus": "opentelemetry-exporter-prometheus",
    # The API is what the SDK is an implementation of; it comes with it.
    "opentelemetry": "opentelemetry-sdk",
    "ruamel": "ruamel-yaml",
    "backports": "backports-zstd",
}


# `compression` holds zstd from Python 3.14 on.
STANDARD = {*sys.stdlib_module_names, "compression"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[^A-Za-z0-9._-]", requirement)[0]) for requirement in requirements}


def imported() -> set[str]:
    modules: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        if file.name == "pytest_plugin.py":  # pytest loads it, so pytest is there
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules |= {f"{node.module}.{alias.name}" for alias in node.names}
    top = {module for module in modules if module.split(".")[0] not in {*STANDARD, "luckrate_otel"}}
    return {distribution(module) for module in top}


def distribution(module: str) -> str:
    for prefix in sorted(SHARED, key=len, reverse=True):
        if module == prefix or module.startswith(f"{prefix}."):
            return SHARED[prefix]
    return normal(packages_distributions()[module.split(".", maxsplit=1)[0]][0])


def test_every_import_is_declared_and_every_dependency_imported() -> None:
    assert imported() == declared(PROJECT["dependencies"])


def test_every_declared_distribution_is_pinned() -> None:
    pins = {normal(line.split("==")[0]) for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()}
    dev = PROJECT["optional-dependencies"]["dev"]
    assert declared([*PROJECT["dependencies"], *dev]) <= pins


def test_constraints_name_versions_and_no_places() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#") and not re.fullmatch(r"[\w.-]+==[\w.+]+", line)] == []


def test_entry_points_lead_somewhere() -> None:
    assert import_module(PROJECT["entry-points"]["pytest11"]["luckrate_otel"]).MARKER == "luckrate"
