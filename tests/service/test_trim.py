"""Freed memory goes back to the system, and looking for it costs an idle processor nothing."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from luckrate_otel.service.memory import Trim

# Blocks of 2 KiB of which every other is freed: what is left holds each page of the heap but for the holes.
HOLES = """
import ctypes, gc, os
from luckrate_otel.service.memory import Trim, tune_the_allocator
tune_the_allocator()
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20
blocks = [bytes(8192) for _ in range(16_384)]
del blocks[::2]
before = resident()
now = [0]
trim = Trim(lambda: now[0])
now[0] += Trim.EVERY_NS
assert trim.after("work")
print(before - resident())
"""


def test_the_holes_between_what_is_kept_go_back() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("the C library is not glibc")
    told = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    assert int(told.stdout) > 25, "of 64 MiB in holes, those pages of which nothing is kept"


def test_it_looks_once_a_second_and_only_after_work() -> None:
    now = [0]
    trim = Trim(lambda: now[0])
    looked = []
    for at, work in [
        (0.5, 1),
        (1.0, 1),
        (1.5, 2),
        (2.0, 2),
        (2.5, 3),
        (3.0, 3),
        (9.0, 3),
        (9.1, 4),
        (9.2, 5),
        (10.1, 5),
    ]:
        now[0] = int(at * 1e9)
        if trim.after(work):
            looked.append(at)
    assert looked == [1.0, 2.0, 3.0, 9.1, 10.1]
