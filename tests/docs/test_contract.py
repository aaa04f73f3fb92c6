"""docs/reliability.md tells senders what the receivers' table of answers says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from luckrate_otel.service.receive.answers import ANSWERS, Outcome
from luckrate_otel.service.receive.inflate import OFFERED

PAGE = (Path(__file__).parents[2] / "docs/reliability.md").read_text(encoding="utf-8")
ROWS = {
    cells[4].strip("` "): cells
    for line in PAGE.splitlines()
    if len(cells := [cell.strip() for cell in line.strip("|").split(" | ")]) == 5 and cells[4].startswith("`")
}

# What a gRPC client never sees of these: its library answers, or it cannot happen.
NOT_ON_GRPC = {Outcome.METHOD, Outcome.CONTENT_TYPE, Outcome.DEADLINE}


def test_each_outcome_has_its_row() -> None:
    assert set(ROWS) == {str(outcome) for outcome in Outcome}


@pytest.mark.parametrize("outcome", Outcome)
def test_a_row_says_what_is_answered(outcome: Outcome) -> None:
    _, over_grpc, over_http, again, _ = ROWS[outcome]
    answer = ANSWERS[outcome]
    assert re.findall(r"^\d+", over_http) == [str(answer.http)]
    assert (over_grpc == "—") is (outcome in NOT_ON_GRPC)
    if outcome is Outcome.ENCODING:  # answered by the library: tests/service/test_receiver_grpc.py
        assert over_grpc.startswith("INTERNAL, by its library")
    elif outcome not in NOT_ON_GRPC:
        assert over_grpc.startswith(answer.grpc.name)
    assert again == ("yes" if answer.retry else "no")
    assert ("+ RetryInfo" in over_grpc, "+ Retry-After" in over_http) == (answer.retry, answer.retry)


def test_the_codings_are_those_that_are_offered() -> None:
    assert ROWS[Outcome.ENCODING][0].endswith(OFFERED.replace(", deflate", " or deflate"))
