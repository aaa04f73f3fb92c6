"""SIGHUPs that come close together."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from luckrate_otel.config import Config, parse
from luckrate_otel.service.reload import Reloads, reload
from luckrate_otel.spec import Spec
from tests.next_hop import within


class Server:
    """Remembers how long runs settle, by each configuration it was given."""

    def __init__(self) -> None:
        self.settles: list[float] = []
        self.outcomes: list[str] = []

    def reload(self, config: Config, _specs: Sequence[Spec]) -> Sequence[str]:
        self.settles.append(config.clocks.settle)
        return ()

    def count_reload(self, outcome: str) -> None:
        self.outcomes.append(outcome)


def told(seconds: int) -> Config:
    return parse(f"{{destinations: {{a: {{endpoint: 'http://b:1'}}}}, clocks: {{settle: {seconds}s}}}}", "c.yaml", {})


def test_the_configuration_of_the_last_signal_stays_however_long_the_first_takes_to_read() -> None:
    async def scenario() -> None:
        server, slow = Server(), threading.Event()
        read: list[int] = []

        def reread() -> Config:
            read.append(len(read) + 1)
            mine = told(read[-1])
            if len(read) == 1:
                slow.wait(0.3)  # until the second has read, if that were not to wait
            else:
                slow.set()
            return mine

        reloads = Reloads(server, reread)
        first, second = reloads.begin(), reloads.begin()
        await second
        await first
        assert (server.settles, server.outcomes) == ([1, 2], ["applied", "applied"])

    within(20, scenario)


def test_what_the_new_specs_say_in_vain_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "half.yaml"
    path.write_text("untrusted: [read]\n", encoding="utf-8")
    within(20, lambda: reload(Server(), lambda: replace(told(1), specs=(path,))))
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        f"{path}: line 1: untrusted: the rule taint is off without privileged (tools that no such data may reach)"
    ]
