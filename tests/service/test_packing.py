"""What the journal packs comes out again, whatever it is, and damage is noticed."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from luckrate_otel.service.journal.packing import SHORT, Packer, unpack

PACKER = Packer()
MAGIC = b"\x28\xb5\x2f\xfd"


@given(st.binary(max_size=2 * SHORT), st.integers(1, 20))
@example(MAGIC, 1)
@example(MAGIC + b"no frame", 1)
@example(b"", 1)
def test_bytes_come_out_as_they_went_in(data: bytes, times: int) -> None:
    for _ in range(2):  # the packer keeps nothing of the call before
        assert unpack(PACKER.pack(data * times)) == data * times
    assert unpack(PACKER.pack(PACKER.pack(data * times))) == PACKER.pack(data * times)


@pytest.mark.parametrize(("size", "as_it_is"), [(SHORT - 1, True), (SHORT, False)])
def test_what_is_short_is_left_as_it_is(size: int, as_it_is: bool) -> None:
    data = b"x" * size
    assert (PACKER.pack(data) is data) is as_it_is


def test_text_shrinks_and_noise_hardly_grows() -> None:
    text, noise = b"the order was packed and sent " * 500, random.Random(1).randbytes(50_000)
    assert len(PACKER.pack(text)) < len(text) / 20
    assert len(PACKER.pack(noise)) < len(noise) + 40


@given(st.data())
def test_a_frame_that_is_cut_or_changed_is_an_error(data: st.DataObject) -> None:
    packed = PACKER.pack(random.Random(2).randbytes(300) * 4)
    at = data.draw(st.integers(len(MAGIC), len(packed) - 1))
    bit = data.draw(st.integers(0, 7))
    changed = bytearray(packed)
    changed[at] ^= 1 << bit
    for damaged in (packed[:at], packed + b"more"):
        with pytest.raises(ValueError, match="packed row"):
            unpack(damaged)
    try:  # zstd's head has a bit without a meaning
        assert unpack(bytes(changed)) == unpack(packed)
    except ValueError as error:
        assert "packed row" in str(error)  # noqa: PT017 - either is right
