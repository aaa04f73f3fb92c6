"""How the process uses memory and the interpreter: settings of the whole process, made once at start."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

# New objects before the collector looks at them, and how many of its looks before it looks at older ones too. What is
# held lives for seconds and makes no cycles; at Python's 700, 10, 10 walking it again and again took a tenth of the
# CPU, at 20,000 still 7 %. What does make cycles, a request on its way through the libraries, holds no body by then.
GC_THRESHOLDS: Final = (50_000, 20, 50)

# Blocks from this size on are the system's, page by page: new ones when they are asked for, gone when they are freed.
# Larger than the bodies that are joined for the next hop, whose pages would cost 2 µs for a span of 2 KiB.
RETURNED_BYTES: Final = 4 * 2**20
_M_MMAP_THRESHOLD: Final = -3
# To set one bound is to end glibc's adapting of them all. By its first values the heap grows and shrinks by 128 KiB at
# a time, some thirty times for a request of 1 MiB, and each page of it is new each time: 3 µs for a span of 2 KiB.
KEPT_BYTES: Final = 16 * 2**20
GROWN_BYTES: Final = 4 * 2**20
_M_TRIM_THRESHOLD: Final = -1
_M_TOP_PAD: Final = -2
# Of glibc, which gives each thread its own pool otherwise, and never takes from one what another needs.
_M_ARENA_MAX: Final = -8


_NOT_GLIBC: Final = (OSError, AttributeError, TypeError)


def tune_the_allocator() -> None:
    """Bound what the C library keeps of freed memory; does nothing where it is not glibc."""
    with suppress(*_NOT_GLIBC):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, RETURNED_BYTES)
        mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(_M_TOP_PAD, GROWN_BYTES)
        mallopt(_M_ARENA_MAX, 2)


class Trim:
    """Gives back the pages that are free inside the heap, at most once a second, after work.

    By itself glibc gives back what is free at the heap's end. What was held lies between what is kept, and after a
    flood the holes were a fifth of its memory. A look takes 10 ms where there are 50,000 of them, and none costs a
    processor that has nothing to do.
    """

    EVERY_NS: Final = 10**9

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._next_ns = clock() + self.EVERY_NS
        self._done: object = None

    def after(self, work: object) -> bool:
        """Whether it was time. work: something that is another one whenever there was work."""
        now_ns = self._clock()
        if now_ns < self._next_ns or work == self._done:
            return False
        self._next_ns = now_ns + self.EVERY_NS
        self._done = work
        with suppress(*_NOT_GLIBC):
            ctypes.CDLL(None).malloc_trim(0)
        return True


# Seconds until a thread that waits for the interpreter gets it. SQLite gives it up in each statement; at Python's 5 ms
# a commit of ten statements beside a busy event loop took 100 ms, and every sender waited for it.
SWITCH_INTERVAL: Final = 0.0005


def share_the_interpreter() -> None:
    """Let the journal's thread have its short turns soon."""
    sys.setswitchinterval(SWITCH_INTERVAL)


def spare_the_collector() -> None:
    """What is there once it listens stays to the end, and is never walked again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
