"""docs/status.md names every key of the status page, and no other."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from luckrate_otel.config import parse
from luckrate_otel.service.server import Server

PAGE = (Path(__file__).parents[2] / "docs/status.md").read_text("utf-8")
ROWS = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)

# Told as a whole: their own keys are lists, or signals and accounts of the ledger's page.
WHOLE = {"specs", "listening", "open_traces", "ledger", "runs.ungraded", "destinations.<name>.signals"}


def keys(value: Mapping[str, Any], path: str = "") -> Iterator[str]:
    for name, item in value.items():
        key = f"{path}.{name}" if path else name
        if isinstance(item, Mapping) and item and key not in WHOLE:
            yield from keys(item, key)
        else:
            yield key


def test_every_key_has_its_row(tmp_path: Path) -> None:
    async def snapshot() -> Mapping[str, Any]:
        text = (
            "receivers: {grpc: {endpoint: 127.0.0.1:0}, http: {endpoint: 127.0.0.1:0}}\n"
            'destinations: {<name>: {endpoint: "http://127.0.0.1:9"}}\n'
            f"metrics: {{prometheus: none}}\nadmin: {{endpoint: none}}\njournal: {{path: {tmp_path}}}\n"
        )
        server = Server(parse(text, "", {}), [])
        await server.start()
        shown = server.status()
        await server.stop()
        return shown

    shown = asyncio.run(asyncio.wait_for(snapshot(), 20))
    assert {key for row in ROWS for key in re.findall(r"`(.+?)`", row)} == set(keys(shown))
