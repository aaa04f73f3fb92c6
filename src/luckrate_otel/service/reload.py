"""SIGHUP: configuration and specs are read again, all of them or nothing.

Listeners, destinations and the journal stay as they are: what waits in them must not be lost to a typing error. A
change there is named in the log, and waits for a restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from luckrate_otel.config import Config, as_lines
from luckrate_otel.errors import LuckrateError
from luckrate_otel.spec import Spec
from luckrate_otel.specfile import SpecFile, load_spec_files

_log = logging.getLogger(__name__)

# What a running process takes over.
LIVE: Final = ("specs", "clocks.", "limits.held_bytes", "limits.late_bytes", "limits.link_bytes")


class Reloadable(Protocol):
    def reload(self, config: Config, specs: Sequence[Spec]) -> Sequence[str]:
        """Take over what can be; returns the keys that wait for a restart."""

    def count_reload(self, outcome: str) -> None: ...


class Reloads:
    """One after the other, in the order of their signals: one that reads slowly must not put back what was there before
    the next."""

    def __init__(self, server: Reloadable, reread: Callable[[], Config]) -> None:
        self._server = server
        self._reread = reread
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self) -> None:
        async with self._turn:
            await reload(self._server, self._reread)


async def reload(server: Reloadable, reread: Callable[[], Config]) -> None:
    """Read everything again and hand it over, or keep the old and say why."""
    try:
        config, files = await asyncio.to_thread(_read, reread)
    except LuckrateError as error:
        server.count_reload("refused")
        for line in str(error).splitlines():
            _log.error("reload refused, the old configuration stays: %s", line)
    except Exception as error:  # noqa: BLE001 - a spec file may hold code, and the process must outlive it
        server.count_reload("refused")
        _log.error("reload refused, the old configuration stays: %s while reading it", type(error).__name__)
    else:
        specs = [file.spec for file in files]
        waiting = server.reload(config, specs)
        server.count_reload("applied")
        for warning in (warning for file in files for warning in file.warnings):
            _log.warning("%s", warning)
        _log.info("reloaded: specs %s", ", ".join(f"{spec.name} {spec.version}" for spec in specs) or "none")
        if waiting:
            _log.warning("reloaded, but these wait for a restart: %s", ", ".join(waiting))


def _read(reread: Callable[[], Config]) -> tuple[Config, tuple[SpecFile, ...]]:
    config = reread()
    return config, load_spec_files(config.specs)


def waits_for_restart(old: Config, new: Config) -> list[str]:
    """Keys that differ and that a running process does not take over."""
    before, after = (dict(line.split(": ", 1) for line in as_lines(config)) for config in (old, new))
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return [key for key in changed if not key.startswith(LIVE)]
