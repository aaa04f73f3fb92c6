"""The thread that writes the journal: one group of steps after the other, each group in one commit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Final

from luckrate_otel.service.journal.file import Full, JournalFile
from luckrate_otel.service.journal.rows import Change, merge

_log = logging.getLogger(__name__)

# Seconds between two looks at a disk that was full. A sender is asked to wait as long.
RETRY_AFTER: Final = 1.0

# After so many seconds without a change the write-ahead file is emptied, so that nothing delivered stays readable.
IDLE: Final = 2.0

# How a failure is told that lies in the step itself, and not in the disk.
_FAULT: Final = "fault: "

# Changes, each with whether it must happen.
Group = Sequence[tuple[Change, bool]]

# Told in the writer's thread how a group ended: why it could not be written, "" if it was.
Told = Callable[[str], object]


class Writer:
    """trouble: why nothing can be written just now, "" if it can."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._given: SimpleQueue[tuple[Group, Told] | None] = SimpleQueue()
        self._owed: list[Change] = []
        self._dirty = False
        self._whole = True
        self._recover_at = 0.0
        self.trouble = ""
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def give(self, group: Group, told: Told) -> None:
        """Write a group, all of it or nothing; what must happen is tried again until it does."""
        self._given.put((group, told))

    def close(self) -> bool:
        """Write what was given and close the file; blocks. False if it does not keep all it was given: the file was
        removed, there was no room for what is owed to the last, or it could never be written."""
        self._given.put(None)
        self._thread.join()
        return self._whole

    def _run(self) -> None:
        while True:
            try:
                given = self._given.get(timeout=RETRY_AFTER if self.trouble else IDLE if self._dirty else None)
            except Empty:
                if self._dirty and not self.trouble:
                    self._tidy()
            else:
                if given is None:
                    break
                self._commit(*given)
                del given  # until the next comes it would hold every body of this group
            if self.trouble and time.monotonic() >= self._recover_at:
                self._recover()
        self._pay()
        self._whole = self._whole and self._file.in_place and not any(change.bodies for change in self._owed)
        self._file.close()

    def _commit(self, group: Group, told: Told) -> None:
        self._dirty = True
        failed = self._attempt([*self._owed, *(change for change, _ in group)])
        if not failed:
            self._owed = []
        else:
            # Once more without what is new: what goes makes room for it.
            self._owed += [change for change, must in group if must and change]
            self._pay()
        told(failed)

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
            failed = "follows" if not blocked.isdisjoint(touched) else self._attempt([change])
            if not failed:
                self._file.empty()
            elif failed.startswith(_FAULT):
                # It would fail for ever, and every request be refused with it. What it sends is in the queues.
                _log.error("journal: a step cannot be written and is let go: %s", failed)
                self._whole = self._whole and not change.bodies
            else:
                left.append(change)
                blocked |= touched
        self._owed = left

    def _attempt(self, changes: Sequence[Change]) -> str:
        """Why the changes could not be written; "" if they were."""
        changes = [change for change in changes if change]
        if not changes:
            return ""
        try:
            self._file.write(merge(changes))
        except (Full, MemoryError) as error:
            self.trouble = str(error) or "no memory"
        except Exception as error:  # noqa: BLE001 - a fault in here must not end the thread that all requests wait for
            self.trouble = f"{_FAULT}{type(error).__name__}"
        else:
            return ""
        self._recover_at = time.monotonic() + RETRY_AFTER
        return self.trouble

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
