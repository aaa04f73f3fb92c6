"""What is looked up in the task before any index is found by the index, too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.provenance.tokens.ground import JUDGED
from luckrate_otel.provenance.tokens.run import Run, prepare

PIECES = (
    "88213",
    "12.5",
    "0012",
    "ORD-77",
    "a.b@c.example",
    "1250",
    " ",
    ".",
    ",",
    "-",
    "_",
    "\\n",
    "0",
    "x",
    "é",
    "%20",
)


def read(said: str, value: object, before_step: int = 0) -> Run:
    return prepare(Trajectory((Step("t", {"id": value}),), (Turn(said, before_step),)), JUDGED)


@given(st.lists(st.sampled_from(PIECES), max_size=8), st.lists(st.sampled_from(PIECES), min_size=1, max_size=3))
def test_what_is_quoted_stood(said: list[str], value: list[str]) -> None:
    run = read("".join(said), "".join(value))
    for leaf in run.leaves[0]:
        for atom in leaf.atoms:
            if atom.kind in JUDGED and run.quoted(atom, 0):
                assert run.stood(atom, 0)


@pytest.mark.parametrize(
    ("said", "value", "quoted"),
    [
        ("order 88213 please", "88213", True),
        ("order 88213 please", 88213, True),
        ("order ORD-77, please", "ORD-77", True),
        ("order 882130", "88213", False),
        ("88213.5 in all", "88213", False),
        ("88213.", "88213", True),
        ("Straße 88213", "88213", False),  # found, but by the index
        ("88213" + " " * 4_000, "88213", False),
        ("", "88213", False),
    ],
)
def test_only_whole_words_of_short_plain_texts(said: str, value: object, *, quoted: bool) -> None:
    run = read(said, value)
    assert run.quoted(run.leaves[0][0].atoms[0], 0) is quoted


def test_what_is_said_later_grounds_nothing_earlier() -> None:
    run = read("order 88213", "88213", before_step=1)
    assert not run.quoted(run.leaves[0][0].atoms[0], 0)
