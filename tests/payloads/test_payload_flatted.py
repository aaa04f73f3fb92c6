"""Flatted data comes back as the graph it was."""

from __future__ import annotations

from typing import Any

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.payloads import from_n8n
from luckrate_otel.payloads.n8n.flatted import is_flatted, unflatten

CASES: dict[str, tuple[list[Any], Any]] = {
    "strings are indices": ([{"a": "1", "b": "2"}, "88213", ["3", 7], "x"], {"a": "88213", "b": ["x", 7]}),
    "a numeric text is a value where it stands for itself": ([["1", "1"], "0"], ["0", "0"]),
    "an index that leads nowhere": ([{"a": "9", "b": "-1", "c": "x", "d": "٣"}], dict.fromkeys("abcd")),
    "other scalars stand for themselves": (
        [{"a": 1, "b": None, "c": True, "d": 1.5}],
        {"a": 1, "b": None, "c": True, "d": 1.5},
    ),
    "nothing": ([], None),
    "a bare text": (["x"], "x"),
}


@pytest.mark.parametrize("name", CASES)
def test_unflatten(name: str) -> None:
    table, value = CASES[name]
    assert unflatten(table) == value


def test_shared_and_cyclic_entries_stay_one_object() -> None:
    value = unflatten([{"self": "0", "a": "1", "b": "1"}, []])
    assert value["self"] is value
    assert value["a"] is value["b"]


def test_only_a_root_that_names_its_result_data_by_index_is_ours() -> None:
    assert is_flatted([{"resultData": "1"}, {}])
    assert not is_flatted([{"resultData": {}}, {}])
    assert not is_flatted([{"resultData": "x"}])
    assert not is_flatted({"resultData": "1"})


def flat_call(args: str, *more: Any) -> list[Any]:
    """One tool call whose arguments are entry 11."""
    return [
        {"resultData": "1"},
        {"runData": "2"},
        {"t": "3"},
        ["4"],
        {"inputOverride": "5", "startTime": 1, "executionStatus": "9", "source": "10"},
        {"ai_tool": "6"},
        ["7"],
        ["8"],
        {"json": args},
        "success",
        [],
        *more,
    ]


def test_cyclic_arguments_are_too_large_to_read() -> None:
    (found,) = from_n8n(flat_call("11", {"me": "11"}))
    assert found.steps[0].args is None
    assert found.gaps[0, "args"] is Gap.TOO_LARGE


def test_arguments_that_unfold_exponentially_are_too_large_to_read() -> None:
    levels = [[str(i + 12), str(i + 12)] for i in range(50)]
    (found,) = from_n8n(flat_call("11", {"a": "12"}, *levels[1:], "end"))
    assert found.gaps[0, "args"] is Gap.TOO_LARGE


def test_a_chain_of_a_hundred_thousand_levels_does_not_overflow() -> None:
    (found,) = from_n8n(flat_call("11", *({"a": str(i + 12)} for i in range(100_000))))
    assert found.gaps[0, "args"] is Gap.TOO_LARGE
