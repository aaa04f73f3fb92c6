"""The program says its version wherever it says one, and runs from a source tree that is not installed."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import luckrate_otel
from luckrate_otel.version import PACKAGE, UNKNOWN, own_version

SOURCE = Path(luckrate_otel.__file__).parent

# Everything that shows it: the command, a SARIF report, the status page, and the resource of the metrics.
SHOWN = """
import asyncio, json, sys
import aiohttp
from luckrate_otel import cli
from luckrate_otel.config import parse
from luckrate_otel.reports.formats import FORMATS
from luckrate_otel.reports.graded import make_report
from luckrate_otel.reports.text import PLAIN
from luckrate_otel.service.server import Server

CONFIG = '''
receivers: {grpc: {endpoint: none}, http: {endpoint: "127.0.0.1:0"}}
destinations: {backend: {endpoint: "http://127.0.0.1:9"}}
journal: none
metrics: {prometheus: "127.0.0.1:0"}
admin: {endpoint: "127.0.0.1:0"}
'''

async def pages():
    server = Server(parse(CONFIG, "test.yaml", {}), ())
    await server.start()
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://{server.addresses['admin']}/status") as answer:
            status = json.loads(await answer.text())["version"]
        async with session.get(f"http://{server.addresses['prometheus']}/metrics") as answer:
            resource = (await answer.text()).partition('service_version="')[2].partition('"')[0]
    await server.stop(1)
    return status, resource

try:
    cli.main(["--version"])
except SystemExit as done:
    assert done.code in (0, None), done.code
driver = json.loads(FORMATS["sarif"](make_report([]), PLAIN))["runs"][0]["tool"]["driver"]["semanticVersion"]
print(json.dumps([driver, *asyncio.run(pages())]))
"""


@pytest.fixture
def uninstalled(tmp_path: Path) -> str:
    """PYTHONPATH with this source tree and all that is installed, but for what says that this is installed."""
    ours = PACKAGE.replace("-", "_")
    for library in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(library).iterdir():
            if ours not in entry.name and not (tmp_path / entry.name).exists():
                (tmp_path / entry.name).symlink_to(entry)
    return os.pathsep.join([str(SOURCE.parent), str(tmp_path)])


def shown(*options: str, **environ: str) -> tuple[str, list[str]]:
    """What the command says, and all the others."""
    done = subprocess.run(
        [sys.executable, *options, "-c", SHOWN],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    command, others = done.stdout.splitlines()
    return command, json.loads(others)


def test_a_source_tree_that_is_not_installed_says_that_its_version_is_not_known(uninstalled: str) -> None:
    # -S: site-packages are not looked into but for what the test names.
    assert shown("-S", PYTHONPATH=uninstalled) == (f"luckrate-otel {UNKNOWN}", [UNKNOWN] * 3)


def test_an_installed_one_says_what_its_package_says() -> None:
    try:
        known = version(PACKAGE)
    except PackageNotFoundError:
        pytest.skip("the tests run from a source tree that is not installed")
    assert own_version() == known
    assert shown(PYTHONPATH=str(SOURCE.parent)) == (f"luckrate-otel {known}", [known] * 3)


def test_nothing_else_asks_for_it() -> None:
    asking = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom | ast.Import)
        and "importlib.metadata" in [getattr(node, "module", ""), *(alias.name for alias in node.names)]
    }
    assert asking == {"version.py"}
