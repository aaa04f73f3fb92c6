"""When verdicts are given: every fifth of a second, and at once when memory is full."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from luckrate_otel.service.memory import Trim
from luckrate_otel.service.receive.answers import Accept, Accepted
from luckrate_otel.service.repeats import Repeats
from luckrate_otel.service.signals import Signal

_log = logging.getLogger(__name__)

# How often deadlines are looked at, in seconds: finer than any sensible clock of a run, and free when nothing is due.
EVERY: Final = 0.2

# A request waits no longer for room than a slow disk takes to write a round; then it is taken, as it would be without.
PATIENCE: Final = 5.0

# Of the others nothing is held, whatever is in them, and what is only forwarded waits for no verdict.
_HELD: Final = (Signal.TRACES, Signal.LOGS)


class Rounds:
    """Runs rounds until it is stopped.

    judge: one round; whether it let anything go. is_full: whether open runs take more than they may. work: see
    Trim.after.
    """

    def __init__(
        self,
        judge: Callable[[], Awaitable[bool]],
        is_full: Callable[[], bool],
        work: Callable[[], object],
        *,
        clock: Callable[[], int],
        repeats: Repeats,
    ) -> None:
        self._judge = judge
        self._is_full = is_full
        self._work = work
        self._clock = clock
        self._repeats = repeats
        self._wanted = asyncio.Event()
        self._over = asyncio.Event()  # of the round that comes next; each has its own
        # Whether the last round let anything go if it had to; else the next comes by the clock, or they would keep a
        # core busy. Room when it is over tells less: while verdicts went to the disk, requests came that filled it.
        self._helped = True
        self._line = asyncio.Lock()  # else the room goes to those that come just when it is made, and some wait long
        self._stopping = False

    def start(self) -> None:
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """The round in between is finished: what it has judged is in no other place."""
        self._stopping = True
        self._wanted.set()
        await self._running

    def first(self, accept: Accept) -> Accept:
        """The same, but where memory is full the next round comes at once and before the request.

        Else all that comes in a fifth of a second would be taken beyond the bound.
        """

        async def accept_after_a_round(signal: Signal, body: bytes) -> Accepted:
            if signal in _HELD and (self._line.locked() or self._is_full()):
                await self._make_room()
            return await accept(signal, body)

        return accept_after_a_round

    async def _make_room(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE), self._line:
                while self._is_full() and not self._stopping:  # one that waited beside this one may have filled it
                    if self._helped:
                        self._wanted.set()
                    await self._over.wait()
                    if not self._helped:  # nor would the next; large requests wait in turn, and each would wait anew
                        break

    async def _run(self) -> None:
        trim = Trim(self._clock)
        while not self._stopping:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), EVERY)
            self._wanted.clear()
            over, self._over = self._over, asyncio.Event()
            self._helped = await self._judge_or_report() or not self._is_full()
            over.set()
            trim.after(self._work())
        self._over.set()  # of those that came during the last round; no other follows

    async def _judge_or_report(self) -> bool:
        try:
            return await self._judge()
        except Exception:  # noqa: BLE001 - one round is isolated from the next
            # Deadlines are looked at again next time; requests are taken meanwhile.
            quiet = self._repeats.due("tick")
            if quiet is not None:
                _log.exception("a round of verdicts failed%s", quiet)
            return False
