"""What is logged of a condition that keeps coming."""

from __future__ import annotations

from luckrate_otel.service.repeats import MAX_KEYS, Repeats


def test_a_condition_is_due_once_per_period_and_tells_how_often_it_was_quiet() -> None:
    now_ns = [0]
    repeats = Repeats(lambda: now_ns[0], every_ns=10)
    told = []
    for at in (0, 1, 9, 10, 11, 30):
        now_ns[0] = at
        told.append(repeats.due("a"))
    assert told == ["", None, None, " (2 more unlogged)", None, " (1 more unlogged)"]
    assert repeats.due("b") == ""


def test_the_number_of_conditions_is_bounded() -> None:
    repeats = Repeats(lambda: 0)
    assert [repeats.due(key) for key in range(MAX_KEYS + 1)] == [""] * MAX_KEYS + [None]
