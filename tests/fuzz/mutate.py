"""A plain mutator for machines without a coverage-guided one: bytes flipped, cut, doubled, crossed."""

from __future__ import annotations

import random
from collections.abc import Sequence

_BYTES = (0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x12)
_TOKENS = (
    b'"',
    b"{",
    b"[[[[[[[[",
    b"\\u0000",
    b"null",
    b"1e999",
    b"-1",
    b"\xff\xff\xff\xff\x0f",
    b"gen_ai.",
    b"\xed\xa0\x80",
)


def mutate(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """One to eight changes."""
    made = bytearray(data)
    for _ in range(1 << chance.randrange(4)):
        at = chance.randrange(len(made) + 1)
        match chance.randrange(6):
            case 0 if made:
                made[at % len(made)] ^= 1 << chance.randrange(8)
            case 1 if made:
                made[at % len(made)] = chance.choice(_BYTES)
            case 2:
                del made[at : at + chance.randrange(1, 40)]
            case 3:
                made[at:at] = made[at : at + chance.randrange(1, 200)]
            case 4:
                made[at:at] = chance.choice(_TOKENS)
            case _:
                other = chance.choice(others)
                cut = chance.randrange(len(other) + 1)
                made[at : at + chance.randrange(100)] = other[cut : cut + chance.randrange(100)]
    return bytes(made)
