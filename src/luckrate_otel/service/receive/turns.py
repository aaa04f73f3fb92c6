"""Large requests are taken one after the other."""

from __future__ import annotations

import asyncio
from typing import Final

from luckrate_otel.service.receive.answers import Accept, Accepted
from luckrate_otel.service.signals import Signal

# A request that is read takes several times its bytes until it is on disk, and no limit of memory counts that: four of
# 25,000 spans at once took 150 MB. While it waits for its turn it is what came. Few requests are so large.
LARGE_BYTES: Final = 2 * 2**20


def in_turn(accept: Accept, large_bytes: int = LARGE_BYTES) -> Accept:
    """The same, but for requests over large_bytes only one at a time."""
    turn = asyncio.Lock()

    async def accept_in_turn(signal: Signal, body: bytes) -> Accepted:
        if len(body) <= large_bytes:
            return await accept(signal, body)
        async with turn:
            return await accept(signal, body)

    return accept_in_turn
