"""The journal: what was acknowledged and is not delivered yet, on disk. Group commit by one writer thread.

Whoever acknowledges waits for the commit of its step; steps that come while one commit runs go into the next, together.
The event loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from luckrate_otel.errors import Busy, TooLarge
from luckrate_otel.plural import plural
from luckrate_otel.service.journal.file import JournalFile
from luckrate_otel.service.journal.kept import Kept
from luckrate_otel.service.journal.rows import Body, Change
from luckrate_otel.service.journal.writer import RETRY_AFTER, Writer
from luckrate_otel.service.repeats import Repeats

_log = logging.getLogger(__name__)

# A commit begins when no step has come for QUIET seconds, or LONGEST after the first: small requests that come together
# share its price, some 0.3 ms of CPU. After a commit for one alone the next begins at once: who sends one by one waits
# for nobody else. An event loop counts in milliseconds.
QUIET: Final = 0.001
LONGEST: Final = 0.005

# What only goes (deliveries, settled traces) waits so long for others, in seconds. A crash before repeats them.
LINGER: Final = 0.1

# A request over this size is refused by itself when the disk is short. Smaller ones are not looked at: the reserve is
# for them, and once it is needed all are refused for a while.
LARGE_BYTES: Final = 2**20


@dataclass(slots=True)
class _Step:
    """told: see Journal.write. done: done then; None if nobody waits. owed: it must happen."""

    change: Change
    size: int
    owed: bool
    told: Callable[[bool], None] | None = None
    done: asyncio.Future[None] | None = None


class Journal:
    """max_bytes: of the rows on disk; a change that would pass it is refused by check().

    Call everything but the constructor inside the event loop it was made for.
    """

    def __init__(self, file: JournalFile, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._pending_bytes = 0
        self._next = max((body.number for body in file.kept.bodies), default=-1) + 1
        self._shared = {b.number: set(b.destinations) for b in file.kept.bodies if len(b.destinations) > 1}
        self._repeats = Repeats(time.monotonic_ns)
        self._steps: list[_Step] = []
        self._waited_for = False  # somebody waits for one of the steps
        self._committing = False
        self._alone = True  # the last commit that somebody waited for was for one
        self._closing: asyncio.Task[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._writer = Writer(file)

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def size_bytes(self) -> int:
        """What the rows take on disk."""
        return self._file.used_bytes

    @property
    def max_bytes(self) -> int:
        return self._max_bytes

    @property
    def trouble(self) -> str:
        """Why nothing can be written just now, "" if it can."""
        return self._writer.trouble

    def take_kept(self) -> Kept:
        """What the journal held at start; once, so that it is not held in memory a second time."""
        kept, self._file.kept = self._file.kept, Kept()
        return kept

    def next_number(self) -> int:
        self._next += 1
        return self._next - 1

    def check(self, size: int) -> None:
        """Raise Busy if a change of this many bytes cannot be taken now, TooLarge if it never can."""
        if self._writer.trouble:
            raise Busy(f"the journal cannot be written: {self._writer.trouble}", RETRY_AFTER)
        if size > self._max_bytes:
            raise TooLarge(f"request of {plural(size, 'byte')} is larger than the whole journal")
        if self._file.used_bytes + self._pending_bytes + size > self._max_bytes:
            raise Busy("the journal is full", RETRY_AFTER)
        if size > LARGE_BYTES and not self._file.has_room(size):
            raise Busy("the disk has no room for a request of this size", RETRY_AFTER)

    def write(
        self, change: Change, told: Callable[[bool], None] | None = None, *, owed: bool = False
    ) -> asyncio.Future[None]:
        """Begin to write a change; the future is done when it is committed.

        It fails with Busy if the change could not be written; nothing of it was then. told: called with whether it was,
        in the order of the calls, before the future is done and even if nobody waits for that any more. owed: what the
        change tells has happened already, so it never fails: it is tried again until it can be written.
        """
        done = self._loop.create_future()
        self._note_shared(change.bodies)
        size = change.size
        self._pending_bytes += size
        self._add(_Step(change, size, owed, told, done))
        return done

    def note(self, change: Change) -> None:
        """Write a change soon; nobody waits for it."""
        self._add(_Step(change, 0, owed=True))

    def delivered(self, destination: str, numbers: Sequence[int]) -> None:
        """A destination needs these bodies no more."""
        pairs = []
        for number in numbers:
            waiting = self._shared.get(number)
            if waiting is not None:
                waiting.discard(destination)
                if waiting:
                    pairs.append((number, destination))
                    continue
                del self._shared[number]
            pairs.append((number, ""))
        self.note(Change(delivered=pairs))

    async def flush(self) -> None:
        """Wait for everything given so far."""
        await self.write(Change(), owed=True)

    async def close(self) -> bool:
        """Write what is owed and close the file. False if it does not keep all it was given, see Writer.close. A second
        call waits for the same; nothing may be written after the first."""
        self._closing = self._closing or self._loop.create_task(self._close())
        return await asyncio.shield(self._closing)

    async def _close(self) -> bool:
        await self.flush()
        self._commit()
        return await asyncio.to_thread(self._writer.close)

    def _note_shared(self, bodies: Sequence[Body]) -> None:
        self._shared.update({b.number: set(b.destinations) for b in bodies if len(b.destinations) > 1})

    # ---- when to commit --------------------------------------------------------------------------

    def _add(self, step: _Step) -> None:
        self._steps.append(step)
        if step.done is not None and not self._waited_for:
            self._waited_for = True
            self._arm()
        elif self._timer is None:
            self._arm()

    def _arm(self) -> None:
        """Set the timer of the next commit; what runs already is not interrupted, and arms again when it ends."""
        if self._committing or not self._steps:
            return
        if self._timer is not None:
            self._timer.cancel()
        if self._waited_for and self._alone:
            self._commit()
        elif self._waited_for:
            latest = self._loop.time() + LONGEST
            self._timer = self._loop.call_later(QUIET, self._look, len(self._steps), latest)
        else:
            self._timer = self._loop.call_later(LINGER, self._commit)

    def _look(self, seen: int, latest: float) -> None:
        if len(self._steps) > seen and self._loop.time() < latest:
            self._timer = self._loop.call_later(QUIET, self._look, len(self._steps), latest)
        else:
            self._commit()

    def _commit(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._steps:
            return
        steps, self._steps = self._steps, []
        if self._waited_for:
            self._alone = sum(step.done is not None for step in steps) == 1
            self._waited_for = False
        self._committing = True
        group = [(step.change, step.owed) for step in steps]
        self._writer.give(group, lambda failed: self._loop.call_soon_threadsafe(self._committed, steps, failed))

    def _committed(self, steps: Sequence[_Step], failed: str) -> None:
        self._committing = False
        if failed:
            quiet = self._repeats.due(failed)
            if quiet is not None:
                _log.error("journal: cannot be written, requests are refused: %s%s", failed, quiet)
        for step in steps:
            self._pending_bytes -= step.size
            self._tell(step, failed if not step.owed else "")
        self._arm()

    def _tell(self, step: _Step, failed: str) -> None:
        if failed:
            for body in step.change.bodies:
                self._shared.pop(body.number, None)
        if step.told is not None:
            try:
                step.told(not failed)
            except Exception as error:  # noqa: BLE001 - the others of the group are told all the same
                self._loop.call_exception_handler({"message": "journal: told in vain", "exception": error})
        if step.done is None or step.done.cancelled():
            return
        if failed:
            step.done.set_exception(Busy(f"the journal cannot be written: {failed}", RETRY_AFTER))
        else:
            step.done.set_result(None)
