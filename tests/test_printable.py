"""Text from strangers drives no terminal, and stays readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größer → 2", "größer → 2"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\r\tc", "a\\nb\\r\\tc"),
        ("\u202eevil", "\\u202eevil"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_moves_the_cursor_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text())
def test_it_is_one_line_that_any_terminal_can_show(text: str) -> None:
    assert printable(text).isprintable()
