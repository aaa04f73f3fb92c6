"""CrewAI events: a call stands where it was started, with the end that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from luckrate_otel.facts import CloseReason, Gap
from luckrate_otel.model import Coverage, Step, Turn
from luckrate_otel.payloads import from_crewai, recognise
from luckrate_otel.telemetry import Status
from tests.payloads.payload_making import captured

TIMEOUT = "RuntimeError('order service timed out (504)')"


def at(ms: int) -> str:
    return datetime.fromtimestamp(1000 + ms / 1000, UTC).isoformat()


def event(kind: str, ms: int = 0, tool: str = "a", **more: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": at(ms), "tool_name": tool, "tool_args": {}, "agent_role": "Clerk", **more}


def told(*events: Any) -> list[tuple[Any, ...]]:
    return [(s.tool, s.args, s.ok, s.result, s.error, s.t) for s in from_crewai(list(events)).steps]


def test_a_captured_crew_that_delegates() -> None:
    found = from_crewai(captured("crewai-s8.events.json"))
    assert recognise(captured("crewai-s8.events.json")) == (found,)
    assert [(s.tool, s.ok, s.agent, s.result) for s in found.steps] == [
        ("delegate_work_to_coworker", True, "Refund Officer", "Order 88213 has total 200 EUR."),
        (
            "lookup_order",
            True,
            "Order Clerk",
            '{"order_id": "88213", "item": "blue kettle", "total": 200, "status": "delivered"}',
        ),
        (
            "check_policy",
            True,
            "Refund Officer",
            "Refunds up to 50 EUR are automatic. Larger amounts must be escalated to a human.",
        ),
        ("escalate_to_human", True, "Refund Officer", "ticket T-2131 opened: refund above the automatic limit"),
    ]
    assert found.steps[1].args == {"order_id": "88213"}
    assert found.turns == (Turn("Team: a customer wants 200 EUR back for order 88213, please take care of it."),)
    assert found.final_output == "We escalated order 88213 to a human."
    assert (found.agent, found.tokens, found.root_status) == ("Refund Officer", 720, Status.OK)
    assert (found.coverage, found.gaps, found.close_reason) == (Coverage(), {}, CloseReason.END_OF_INPUT)


def test_captured_failures_are_counted_once_each() -> None:
    found = from_crewai(captured("crewai-s5.events.json"))
    assert [(s.tool, s.args, s.ok, s.error, s.result, s.agent) for s in found.steps] == [
        ("lookup_order", {"order_id": "50000"}, False, TIMEOUT, TIMEOUT, "Order Clerk")
    ] * 5
    assert (found.root_status, found.final_output) == (Status.ERROR, None)


def test_captured_parallel_calls_get_their_own_results() -> None:
    steps = from_crewai(captured("crewai-s6.events.json")).steps
    assert [(s.args, (s.result or "")[:20]) for s in steps] == [
        ({"order_id": "88213"}, '{"order_id": "88213"'),
        ({"order_id": "88214"}, '{"order_id": "88214"'),
        ({"order_id": "88213"}, '{"order_id": "88213"'),
    ]


def test_calls_stand_where_they_started_not_where_they_ended() -> None:
    assert told(
        event("tool_usage_started", 20, "b", event_id="2"),
        event("tool_usage_started", 0, "a", event_id="1"),
        event("tool_usage_finished", 50, "b", output="B", started_event_id="2"),
        event("tool_usage_finished", 90, "a", output="A", started_event_id="1"),
    ) == [("a", {}, True, "A", None, 0.0), ("b", {}, True, "B", None, 20.0)]


def test_without_event_ids_tool_arguments_and_agent_tell_which_end_belongs_to_which_start() -> None:
    assert told(
        event("tool_usage_started", 0, tool_args={"n": 1}),
        event("tool_usage_started", 1, tool_args={"n": 2}),
        event("tool_usage_finished", 5, tool_args='{"n": 2}', output="two"),
        event("tool_usage_finished", 6, tool_args={"n": 1}, output="one"),
    ) == [("a", {"n": 1}, True, "one", None, 0.0), ("a", {"n": 2}, True, "two", None, 1.0)]


def test_only_ends_were_recorded() -> None:
    early, late = "2026-12-01 06:00:00.000000", "2026-12-01 06:00:01.500000"
    found = from_crewai(
        [
            event("tool_usage_finished", 9, "b", output="B", started_at=late, finished_at="2026-12-01 06:00:02.000000"),
            event("tool_usage_finished", 9, "a", output="A", started_at=early, finished_at=late),
        ]
    )
    assert [(s.tool, s.t, s.duration) for s in found.steps] == [("a", 0.0, 1500.0), ("b", 1500.0, 500.0)]


ENDS: dict[str, tuple[dict[str, Any] | None, tuple[Any, ...]]] = {
    "never returned": (None, (None, None, "no_return")),
    "raised": (event("tool_usage_error", 5, error="boom"), (False, "boom", "boom")),
    "raised, live": (event("tool_usage_error", 5, error=ValueError("boom")), (False, "boom", "boom")),
    "reported": (
        event("tool_usage_finished", 5, output="sorry", failure={"message": "denied", "reason": "tool_reported"}),
        (False, "sorry", "denied"),
    ),
    "object output": (event("tool_usage_finished", 5, output={"x": 1}), (True, '{"x": 1}', None)),
    "empty output": (event("tool_usage_finished", 5, output=""), (True, "", None)),
}


@pytest.mark.parametrize("name", ENDS)
def test_outcome(name: str) -> None:
    end, outcome = ENDS[name]
    (step,) = from_crewai([event("tool_usage_started"), *([end] if end else [])]).steps
    assert (step.ok, step.result, step.error) == outcome


def test_a_call_that_never_reached_its_tool_still_was_made() -> None:
    assert told(event("tool_selection_error", 3, "nosuch", tool_args="", error="no such tool")) == [
        ("nosuch", {}, False, "no such tool", "no such tool", 0.0)
    ]


def test_an_end_of_no_known_tool_is_passed_over() -> None:
    assert told(event("tool_usage_error", 3, tool="", error="no tool chosen")) == []


def test_an_event_that_two_listeners_recorded_counts_once() -> None:
    start = event("tool_usage_started", event_id="1")
    end = event("tool_usage_finished", 5, event_id="2", started_event_id="1", output="x")
    assert told(start, start, end, end) == [("a", {}, True, "x", None, 0.0)]


ARGS: dict[str, tuple[Any, Any, Gap | None]] = {
    "mapping": ({"x": 1}, {"x": 1}, None),
    "json text": ('{"x": 1}', {"x": 1}, None),
    "bare text": ("order 7", {"input": "order 7"}, None),
    "cut json": ('{"x": ', None, Gap.NOT_CAPTURED),
    "absent": (None, None, Gap.NOT_CAPTURED),
}


@pytest.mark.parametrize("name", ARGS)
def test_arguments(name: str) -> None:
    given, args, gap = ARGS[name]
    found = from_crewai([event("tool_usage_started", tool_args=given), event("tool_usage_finished", output="x")])
    assert (found.steps[0].args, found.gaps.get((0, "args"))) == (args, gap)


def test_a_crew_that_has_not_completed_is_incomplete() -> None:
    kickoff = {"type": "crew_kickoff_started", "timestamp": at(0), "event_id": "k", "inputs": {"a": "x", "b": 2}}
    found = from_crewai([kickoff, event("tool_usage_started", 7)])
    assert (found.close_reason, found.run_id, found.turns) == (CloseReason.NO_ROOT, "crewai:k", (Turn("x\n2"),))
    assert (found.steps[0].t, found.start_ns) == (7.0, 1_000_000_000_000)


def test_without_inputs_the_first_task_is_the_task() -> None:
    started = {"type": "task_started", "timestamp": at(0), "task_name": "Tidy up."}
    found = from_crewai([started, event("tool_usage_started", 1)])
    assert (found.turns, found.system) == ((Turn("Tidy up."),), ("Tidy up.",))


def test_without_any_times_calls_stand_as_they_were_recorded() -> None:
    events = [event("tool_usage_started", tool=tool, timestamp=None) for tool in ("b", "a")]
    assert [(s.tool, s.t) for s in from_crewai(events).steps] == [("b", 0.0), ("a", 0.0)]


def test_a_kickoff_without_inputs_and_a_task_without_words_tell_no_task() -> None:
    kickoff = {"type": "crew_kickoff_started", "timestamp": at(0), "inputs": None}
    assert from_crewai([kickoff, {"type": "task_started", "timestamp": at(1)}]).turns == ()


def test_live_objects_are_read_by_their_attributes() -> None:
    @dataclass
    class Event:
        type: str
        timestamp: datetime
        tool_name: str = "a"
        tool_args: Any = None
        agent_role: str = "Clerk"
        output: Any = None

    begun, ended = datetime(2026, 12, 1, tzinfo=UTC), datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC)
    events = [
        Event("tool_usage_started", begun, tool_args={"x": 1}),
        Event("tool_usage_finished", ended, tool_args={"x": 1}, output="y"),
    ]
    assert from_crewai(events).steps == (Step("a", {"x": 1}, True, "y", 0.0, "Clerk", None, 1000.0),)
    assert recognise(events) == (from_crewai(events),)


@pytest.mark.parametrize("value", [None, [], {}, "x", 7])
def test_nothing_gives_an_empty_run(value: Any) -> None:
    found = from_crewai(value)
    assert (found.steps, found.coverage.tools) == ((), False)
    assert recognise(value) is None
