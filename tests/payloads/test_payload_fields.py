"""Values of any shape are read without raising."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.payloads.fields import moment_ms, nanoseconds, number, parse, plain, render

HUGE = 10**5000

MOMENTS: dict[str, tuple[Any, float | None]] = {
    "utc": ("1970-01-01T00:00:01Z", 1000.0),
    "offset": ("1970-01-01T02:00:01+02:00", 1000.0),
    "naive counts as utc": ("1970-01-01 00:00:01.5", 1500.0),
    "datetime": (datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), 2000.0),
    "seconds": (3, 3000.0),
    "before time": (datetime(1, 1, 1, tzinfo=UTC), -62135596800000.0),
    "no time": ("soon", None),
    "nothing": (None, None),
    "a truth": (True, None),
    "more than a float": (HUGE, None),
    "endless": (float("inf"), None),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moment_ms(name: str) -> None:
    value, expected = MOMENTS[name]
    assert moment_ms(value) == expected


def test_numerals_in_text_are_no_numbers() -> None:
    assert [number(value) for value in (1, 1.5, "1", True, None, HUGE)] == [1.0, 1.5, None, None, None, None]


def test_nanoseconds_are_exact_to_the_microsecond() -> None:
    assert nanoseconds(1796096768265.0) == 1796096768265000000
    assert nanoseconds(1796096768265.125) == 1796096768265125000


def test_text_of_values() -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    assert render("x") == ("x", None)
    assert render({"a": (1, {2})}) == ('{"a": [1, [2]]}', None)
    assert render([Odd(), 1.5, None]) == ('["odd", 1.5, null]', None)
    assert render(None) == (None, Gap.NOT_CAPTURED)
    assert render(HUGE) == (None, Gap.TOO_LARGE)


def test_more_members_than_the_bound_are_too_large() -> None:
    assert plain([0] * 199_999)[1] is None
    assert plain([0] * 200_000) == (None, Gap.TOO_LARGE)
    assert render([0] * 200_000) == (None, Gap.TOO_LARGE)


def test_json_that_nests_too_far_is_no_json() -> None:
    assert parse("[" * 100_000) is None
    assert parse("[") is None
    assert parse("[1]") == [1]
