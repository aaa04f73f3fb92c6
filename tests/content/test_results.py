"""What a result's own text says of success and failure."""

from __future__ import annotations

import pytest

from luckrate_otel.content.results import Returned, may_tell_failure, returned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tool error: timed out", True),
        ('{"error": "no such order"}', True),
        ("Traceback (most recent call last):", True),
        ('{"error": null, "id": 1}', False),
        ("No errors were found", False),
        ("Errors: 0", False),
        (None, False),
    ],
)
def test_an_answer_that_reads_like_an_error_is_no_success(text: str | None, expected: bool) -> None:
    assert may_tell_failure(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status='failure' result=None error='timed out' images=None", Returned("timed out", False)),
        ("status='success' result='sent' error=None images=None", Returned("sent", True)),
        ("status='delivered' since='May'", Returned("status='delivered' since='May'")),
    ],
)
def test_agno_wraps_results_in_a_repr(text: str, expected: Returned) -> None:
    assert returned(text) == expected
