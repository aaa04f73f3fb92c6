"""The journal: what was acknowledged and is not delivered yet, on disk. Group commit by one writer thread.

Whoever acknowledges waits for the commit of its step; steps that come while one commit runs go into the next, together.
The event loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from luckrate_otel.errors import Busy, TooLarge
from luckrate_otel.service.journal.file import Full, JournalFile
from luckrate_otel.service.journal.kept import Kept
from luckrate_otel.service.journal.rows import Body, Change, merge
from luckrate_otel.service.repeats import Repeats

_log = logging.getLogger(__name__)

# Seconds a sender is asked to wait when the journal is full: deliveries free it, and the next look at the disk is then.
RETRY_AFTER: Final = 1.0

# A commit waits so long for others to join it, in seconds: no one notices, and small requests share its price, which is
# some 0.3 ms of CPU. Longer when the last is BUSY seconds ago or less, as then more will come.
GROUP: Final = 0.001
BUSY_GROUP: Final = 0.005
BUSY: Final = 0.01

# What only goes (deliveries, settled traces) waits so long for others, in seconds. A crash before repeats them.
LINGER: Final = 0.1

# A request over this size is refused by itself when the disk is short. Smaller ones are not looked at: the reserve is
# for them, and once it is needed all are refused for a while.
LARGE_BYTES: Final = 2**20

# After so many seconds without a change the write-ahead file is emptied, so that nothing delivered stays readable.
IDLE: Final = 2.0


@dataclass(slots=True)
class _Step:
    """done: told when it is on disk; None if nobody waits. owed: it must happen, so it is tried until it does."""

    change: Change
    done: asyncio.Future[None] | None
    owed: bool


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
        self._owed: list[Change] = []
        self._changed = threading.Condition()
        self._urgent = self._closing = self._dirty = False
        self._whole = True
        self.trouble = ""
        self._recover_at = self._committed = 0.0
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

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

    def take_kept(self) -> Kept:
        """What the journal held at start; once, so that it is not held in memory a second time."""
        kept, self._file.kept = self._file.kept, Kept()
        return kept

    def next_number(self) -> int:
        self._next += 1
        return self._next - 1

    def check(self, size: int) -> None:
        """Raise Busy if a change of this many bytes cannot be taken now, TooLarge if it never can."""
        if self.trouble:
            raise Busy(f"the journal cannot be written: {self.trouble}", RETRY_AFTER)
        if size > self._max_bytes:
            raise TooLarge(f"request of {size} bytes is larger than the whole journal")
        if self._file.used_bytes + self._pending_bytes + size > self._max_bytes:
            raise Busy("the journal is full", RETRY_AFTER)
        if size > LARGE_BYTES and not self._file.has_room(size):
            raise Busy("the disk has no room for a request of this size", RETRY_AFTER)

    def write(self, change: Change, *, owed: bool = False) -> asyncio.Future[None]:
        """Begin to write a change; the future is done when it is committed.

        It fails with Busy if it could not be written; nothing of it was then. owed: what it tells has happened already,
        so it never fails: it is tried again until it can be written.
        """
        done = self._loop.create_future()
        self._note_shared(change.bodies)
        self._pending_bytes += change.size
        self._add(_Step(change, done, owed), urgent=True)
        return done

    def note(self, change: Change) -> None:
        """Write a change soon; nobody waits for it."""
        self._add(_Step(change, None, owed=True), urgent=False)

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
        """Write what is owed and close the file. False if it does not keep all it was given: the file was removed, or
        there was no room for what is owed to the last."""
        await self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)
        return self._whole

    def _note_shared(self, bodies: Sequence[Body]) -> None:
        self._shared.update({b.number: set(b.destinations) for b in bodies if len(b.destinations) > 1})

    def _add(self, step: _Step, *, urgent: bool) -> None:
        with self._changed:
            self._steps.append(step)
            if (urgent and not self._urgent) or len(self._steps) == 1:
                self._urgent = self._urgent or urgent
                self._changed.notify()

    # ---- the writer thread -----------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            steps = self._wait()
            if steps:
                self._commit(steps)
            elif self._closing:
                break
            elif self._dirty and not self.trouble:
                self._tidy()
            if self.trouble and time.monotonic() >= self._recover_at:
                self._recover()
        self._pay()
        self._whole = self._file.in_place and not any(change.bodies for change in self._owed)
        self._file.close()

    def _wait(self) -> list[_Step]:
        with self._changed:
            if not self._steps and not self._closing:
                self._changed.wait(RETRY_AFTER if self.trouble else IDLE if self._dirty else None)
            if self._steps and not self._urgent and not self._closing:
                self._changed.wait_for(lambda: self._urgent or self._closing, LINGER)
        if self._urgent:
            time.sleep(BUSY_GROUP if time.monotonic() - self._committed < BUSY else GROUP)
        with self._changed:
            steps, self._steps = self._steps, []
            self._urgent = False
            return steps

    def _commit(self, steps: Sequence[_Step]) -> None:
        self._dirty = True
        failed = self._attempt([*self._owed, *(step.change for step in steps)])
        if not failed:
            self._owed = []
        else:
            # Once more without what is new: what goes makes room for it.
            self._owed += [step.change for step in steps if step.owed and step.change]
            self._pay()
        self._committed = time.monotonic()
        self._loop.call_soon_threadsafe(self._tell, steps, failed)

    def _pay(self) -> None:
        """Write what is owed as far as there is room: together, else one by one but for what follows on what cannot.

        Small steps, with the write-ahead file emptied after each, get through where one large one would not.
        """
        if not self._owed or not self._attempt(self._owed):
            self._owed = []
            return
        left: list[Change] = []
        blocked: set[str | int] = set()
        for change in self._owed:
            touched = change.touched()
            if not blocked.isdisjoint(touched) or self._attempt([change]):
                left.append(change)
                blocked |= touched
            else:
                self._file.empty()
        self._owed = left

    def _attempt(self, changes: Sequence[Change]) -> str:
        """Why the changes could not be written; "" if they were."""
        changes = [change for change in changes if change]
        if not changes:
            return ""
        try:
            self._file.write(merge(changes))
        except Full as error:
            self.trouble = str(error)
            self._recover_at = time.monotonic() + RETRY_AFTER
            return self.trouble
        except Exception as error:  # noqa: BLE001 - a fault in here must not end the thread that all requests wait for
            self.trouble = f"fault: {type(error).__name__}"
            self._recover_at = time.monotonic() + RETRY_AFTER
            return self.trouble
        return ""

    def _recover(self) -> None:
        """Write what is owed, and take requests again once the reserve is back: there is room, not just this moment."""
        self._pay()
        if not self._owed and self._file.restore_reserve():
            self.trouble = ""
            _log.info("journal: can be written again")
        self._recover_at = time.monotonic() + RETRY_AFTER

    def _tidy(self) -> None:
        self._dirty = False
        try:
            self._file.tidy()
        except Exception as error:  # noqa: BLE001 - only the content of a file that is reused anyway
            _log.warning("journal: %s while tidying", type(error).__name__)

    # ---- back in the event loop ------------------------------------------------------------------

    def _tell(self, steps: Sequence[_Step], failed: str) -> None:
        if failed:
            quiet = self._repeats.due(failed)
            if quiet is not None:
                _log.error("journal: cannot be written, requests are refused: %s (%d more unlogged)", failed, quiet)
        for step in steps:
            if step.done is None:
                continue
            self._pending_bytes -= step.change.size
            if failed and not step.owed:
                for body in step.change.bodies:
                    self._shared.pop(body.number, None)
            if step.done.cancelled():
                continue
            if failed and not step.owed:
                step.done.set_exception(Busy(f"the journal cannot be written: {failed}", RETRY_AFTER))
            else:
                step.done.set_result(None)
