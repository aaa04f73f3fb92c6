"""Whether bytes may be an agent's, found wherever the key stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.adapters import MARKERS
from luckrate_otel.service import marks
from luckrate_otel.service.marks import is_marked

PIECE = 16 * 1024


@pytest.mark.parametrize("marker", MARKERS, ids=bytes.decode)
@pytest.mark.parametrize("size", [0, 100, 511, PIECE - 3, PIECE, 5 * PIECE])
def test_a_key_is_found_anywhere_in_bytes_of_any_size(marker: bytes, size: int) -> None:
    filler = b"x" * size
    assert not is_marked(filler + marker[:-1] + b"x" + filler)
    for start in sorted({0, size // 2, size, *range(max(size - len(marker), 0), size)}):
        assert is_marked(filler[:start] + marker + filler[start:])


@given(st.lists(st.sampled_from([*MARKERS, *(m[:-1] for m in MARKERS), b"gen_ai", b"x" * 300, b"."]), max_size=12))
def test_it_says_what_a_plain_search_says(parts: list[bytes]) -> None:
    wire = b"".join(parts)
    assert is_marked(wire) is any(marker in wire for marker in MARKERS)


def test_a_body_of_nothing_but_keys_is_told_from_its_first_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of finds, not the body, is what would fill the memory."""
    found: list[int] = []

    class Search:
        def find_matches_as_indexes(self, haystack: bytes) -> list[tuple[int, int, int]]:
            finds = search.find_matches_as_indexes(haystack)
            found.append(len(finds))
            return finds

    search = marks._SEARCH
    monkeypatch.setattr(marks, "_SEARCH", Search())
    assert is_marked(b"x" * 512 + b"mcp.method.name" * 100_000)
    assert len(found) == 1
    assert found[0] <= PIECE // len(b"mcp.method.name") + 1
