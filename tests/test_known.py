"""A mistyped word: which was meant, or which there are, in one line."""

from __future__ import annotations

import pytest

from luckrate_otel.known import MAX_LISTED, listed, unknown_keys


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], []),
        (["tools", "before"], []),
        (["tols"], [("tols", "unknown key; did you mean 'tools'?")]),
        (["beer"], [("beer", "unknown key; known here: tools, before")]),  # alike, but hardly what was meant
        (["zzz"], [("zzz", "unknown key; known here: tools, before")]),
        (
            ["tols", "zzz", "tools", "yyy"],
            [
                ("tols", "unknown key; did you mean 'tools'?"),
                ("zzz", "unknown key; known here: tools, before"),
                ("yyy", "unknown key"),
            ],
        ),
    ],
)
def test_unknown_keys(given: list[str], said: list[tuple[str, str]]) -> None:
    assert list(unknown_keys(given, ("tools", "before"))) == said


@pytest.mark.parametrize(("count", "end"), [(0, ""), (MAX_LISTED, "k59"), (MAX_LISTED + 1, "k59 and 1 more")])
def test_a_list_is_bounded(count: int, end: str) -> None:
    names = listed(f"k{number}" for number in range(count))
    assert (names.count("k"), names.endswith(end)) == (min(count, MAX_LISTED), True)
