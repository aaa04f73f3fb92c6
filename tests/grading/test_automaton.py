"""A pattern found by an automaton is found by `re`, and the other way round."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.rules.automaton import MAX_CHARS, Automaton, Irregular, TooLong

PIECES = st.recursive(
    st.sampled_from(
        [
            *("a", "b", "B", "[ab]", "[^a]", ".", r"\w", r"\W", r"\s", r"\d", r"\n", "é", "(?:)"),
            *("^", "$", r"\A", r"\Z", r"\b", r"\B", "(?=a)", "(?!b)", "(?<=a)", r"(?<!\b)"),
        ]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{0,2}", "{2,}"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.lists(inner, min_size=2, max_size=4).map("".join),
        inner.map(lambda part: f"(?i:{part})"),
        inner.map(lambda part: f"(?s:{part})"),
        inner.map(lambda part: f"(?-i:{part})"),
    ),
    max_leaves=8,
)


FLAGS = ["", "(?i)", "(?m)", "(?s)", "(?im)", "(?a)", "(?ai)"]


# Without `(?a:…)`: what such a group starts with, re.search looks for as if it were not in it (`(?a:\W)` finds no "é").
@given(PIECES, st.sampled_from(FLAGS), st.text("aAbBé1 \n", max_size=12))
def test_it_finds_what_re_finds(pattern: str, flags: str, text: str) -> None:
    made = re.compile(flags + pattern)
    assert Automaton(made).found(text) is (made.search(text) is not None)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"(a)\1", "(?>a+)b", "a++b", "(a)?(?(1)b|c)", "(?=a+)b", "(?<!(a)|b)c", "(?:a{50}){50}"),
        "|".join(f"(?={letter})" for letter in "abcdefghi"),
    ],
)
def test_what_it_cannot_follow_it_says(pattern: str) -> None:
    with pytest.raises(Irregular):
        Automaton(re.compile(pattern))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("x", "a" * (MAX_CHARS + 1)), ("1.{900}2", f"{3**100_000:b}")],
    ids=["its length", "no set of states that comes again"],
)
def test_texts_that_would_take_too_long_are_not_searched(pattern: str, text: str) -> None:
    with pytest.raises(TooLong):
        Automaton(re.compile(pattern)).found(text)
