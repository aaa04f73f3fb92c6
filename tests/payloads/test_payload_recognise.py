"""Whatever the value, reading it gives runs or nothing, and never raises."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from luckrate_otel import payloads
from luckrate_otel.model import Trajectory
from luckrate_otel.payloads import READERS, from_crewai, from_langchain, from_messages, recognise
from tests.payloads.payload_making import CAPTURED, captured

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
# the readers' own words, so that arbitrary values reach past the first look
WORDS = st.sampled_from(
    re.findall(
        r"\w+",
        """
        data resultData runData id mode workflowId executionIndex startTime executionStatus source inputOverride ai_tool
        json metadata subExecution executionId parentExecution error redactedError redaction redacted previousNode main
        output messages role content tool_calls function name arguments tool_call_id type text lc kwargs args status
        values update tool_use tool_result function_call human ai tool user assistant system tool_name tool_args
        tool_usage_started tool_usage_finished timestamp workflowData nodes parameters toolCalls 0 1 2 3
        """,
    )
)
VALUES = st.recursive(
    SCALARS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5),
    max_leaves=25,
)
NAMES = sorted(path.name for path in CAPTURED.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_every_capture_is_recognised_by_exactly_one_reader(name: str) -> None:
    value = captured(name)
    assert len([reader.name for reader in READERS if reader.read(value) is not None]) == 1
    found = recognise(value)
    assert found is not None
    assert [reader.name for reader in READERS if reader.read(value) == found] == list(found[0].adapters)


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_arbitrary_json_never_raises(value: Any) -> None:
    assert recognise(value) is None or all(well_formed(t) for t in recognise(value) or ())
    for read in (from_crewai, from_langchain, from_messages):
        assert well_formed(read(value))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*path, key)
        yield from places(member, (*path, key))


PLACES = {name: tuple(places(captured(name))) for name in NAMES}
LOADED = {name: captured(name) for name in NAMES}


@given(st.sampled_from(NAMES), st.integers(0, 2**32), VALUES)
@settings(max_examples=150, deadline=None)
def test_a_capture_with_any_members_replaced_never_raises(name: str, seed: int, stranger: Any) -> None:
    random, value = Random(seed), copy.deepcopy(LOADED[name])
    for path in random.sample(PLACES[name], k=3):
        replace_at(value, path, stranger)
    assert all(well_formed(t) for t in recognise(value) or ())


def replace_at(value: Any, path: tuple[Any, ...], stranger: Any) -> None:
    """Put stranger at path, if an earlier replacement has not taken the way there."""
    *way, last = path
    for key in way:
        value = member(value, key)
    if member(value, last) is not None:
        value[last] = stranger


def member(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        return value.get(key)
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None


def well_formed(t: Trajectory) -> bool:
    times = [step.t for step in t.steps]
    reasons = {(i, n) for i, s in enumerate(t.steps) for n in ("args", "result", "ok") if getattr(s, n) is None}
    return (
        times == sorted(times)
        and all(time >= 0 for time in times)
        and set(t.gaps) == reasons
        and len(t.call_ids) in {0, len(t.steps)}
        and all((step.error is None) is (step.ok is True) for step in t.steps if step.ok is not None)
        and all(0 <= turn.before_step <= len(t.steps) for turn in t.turns)
    )


@pytest.mark.parametrize(
    "wrap", [lambda v: [v], lambda v: {"data": v}, lambda v: {"messages": v}, lambda v: {"values": v}]
)
def test_deep_nesting_is_bounded(wrap: Any) -> None:
    value: Any = 1
    for _ in range(50_000):
        value = wrap(value)
    assert recognise(value) is None
    for read in (from_crewai, from_langchain, from_messages):
        assert read(value).steps == ()


def test_arguments_nested_at_the_limit_are_read_and_beyond_it_are_too_large() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = {"a": value}
        return value

    def args(depth: int) -> Any:
        call = {"id": "1", "function": {"name": "t", "arguments": nested(depth)}}
        return from_messages([{"role": "assistant", "tool_calls": [call]}]).steps[0].args

    assert args(63) == nested(63)
    assert args(64) is None


def test_payloads_import_no_framework_and_nothing_that_acts() -> None:
    allowed = {
        "__future__",
        "collections",
        "dataclasses",
        "datetime",
        "hashlib",
        "itertools",
        "json",
        "math",
        "re",
        "typing",
    }
    for path in Path(str(payloads.__file__)).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            strangers = [n for n in names if n.split(".")[0] not in allowed | {"luckrate_otel"}]
            assert (path.name, strangers) == (path.name, [])
