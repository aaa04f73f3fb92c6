"""Stars in `match` stand for any text, and are found in one pass."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel import Spec
from luckrate_otel.model import Trajectory
from luckrate_otel.spec import select


def matches(pattern: str, agent: str) -> bool:
    return select([Spec.from_mapping({"match": {"agent": pattern}})], Trajectory(agent=agent)) is not None


@given(st.text("ab*\n", min_size=1, max_size=8).filter(str.strip), st.text("ab\n", max_size=8))
def test_it_means_what_a_regular_expression_would(pattern: str, agent: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), agent, re.DOTALL) is not None
    assert matches(pattern, agent) is expected


@pytest.mark.parametrize("end", ["!", ""])
def test_a_name_of_a_megabyte_takes_no_time(end: str) -> None:
    assert matches(f"*a*b*a*b*a*{end}", "ab" * 500_000) is (end == "")
