"""Folding, numbers and dates: what counts as the same value, and the nearest thing that does not."""

from __future__ import annotations

from datetime import date

import pytest

from luckrate_otel.provenance.tokens import dates, numbers
from luckrate_otel.provenance.tokens.fold import decoded, phrase, within


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Order #W-4471", "order w 4471"),
        ("Café Zürich", "cafe zurich"),
        ("\uff4f\uff50\uff53@Evil.Example", "ops evil example"),
        ("ev\u200bil", "evil"),
        ("订单12345已付", "订单 12345 已付"),
        ("", ""),
        ("--- !!", ""),
    ],
)
def test_case_accents_width_and_separators_fold_away(text: str, folded: str) -> None:
    assert phrase(text) == folded


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [
        ("200", "total 200 eur", True),
        ("200", "total 1200 55", False),
        ("evil example", "ops evil example com", True),
        ("evil example", "ops devil example", False),
        ("a", "a", True),
    ],
)
def test_only_whole_words_match(part: str, whole: str, expected: bool) -> None:
    assert within(part, whole) is expected


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"first\nsecond", "first\nsecond"),
        (r"a\u0040b", "a@b"),
        (r"C:\\new", r"C:\new"),
        ("ops%40evil", "ops@evil"),
        ("a&#64;b &amp; c", "a@b & c"),
        ("plain", "plain"),
        ("&#" + "9" * 5000 + ";", "&#" + "9" * 5000 + ";"),
    ],
)
def test_escapes_are_undone_once(text: str, plain: str) -> None:
    assert decoded(text) == plain


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,250.50", "1250.5"),
        ("1250.5", "1250.5"),
        ("1.250,50", "1250.5"),
        ("$20", "20"),
        ("007", "7"),
        ("0.10", "0.1"),
        ("30min", "30"),
        ("12.5 %", "12.5"),
        ("250USD", "250"),
        ("7K2", None),
        ("1,25,0", None),
        ("12a", None),
        ("", None),
        ("9" * 41, None),
    ],
)
def test_numbers_have_one_canonical_spelling(text: str, number: str | None) -> None:
    assert numbers.canonical(text) == number


@pytest.mark.parametrize(
    ("value", "number"),
    [(200, "200"), (-3.50, "3.5"), (1e3, "1000"), (1e-7, "0.0000001"), (float("nan"), None), (float("inf"), None)],
)
def test_json_numbers_have_the_same_spelling(value: float, number: str | None) -> None:
    assert numbers.of_value(value) == number


@pytest.mark.parametrize(
    ("text", "number", "stated"),
    [
        ("costs 1,250.50 EUR", "1250.5", True),
        ("costs 1.250,50 EUR", "1250.5", True),
        ("costs 1250.500", "1250.5", True),
        ("costs 1250.51", "1250.5", False),
        ("costs 11250.5", "1250.5", False),
        ("total 1200.55", "200", False),
        ("total 1200.55", "55", False),
        ("total 200.00", "200", True),
        ("total 200.01", "200", False),
        ("200.", "200", True),
        ("20kg", "20", True),
        ("P20", "20", False),
        (r"sum:\n20 EUR", "20", True),
        ("v1.20", "20", False),
    ],
)
def test_a_number_is_found_only_as_a_number_of_its_own(text: str, number: str, stated: bool) -> None:
    assert numbers.states(text, number) is stated


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-05-20", date(2024, 5, 20)),
        ("2024/5/20", date(2024, 5, 20)),
        ("20.05.2024", date(2024, 5, 20)),
        ("2024-05-20T19:00:00Z", date(2024, 5, 20)),
        ("2024-05-20 19:00", date(2024, 5, 20)),
        ("2024-13-20", None),
        ("2024-05-20-77", None),
        ("20240520", None),
    ],
)
def test_dates_are_read_in_common_spellings(text: str, day: date | None) -> None:
    assert dates.parse(text) == day


@pytest.mark.parametrize(
    "spelling", ["may 20 2024", "20th of may", "20 05 2024", "20 may", "may 20th 2024", "20240520"]
)
def test_a_date_is_looked_for_in_words_too(spelling: str) -> None:
    assert spelling in dates.spellings(date(2024, 5, 20))
    assert spelling not in dates.spellings(date(2024, 5, 21))
