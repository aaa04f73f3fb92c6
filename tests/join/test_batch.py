"""Files that are given together: traces, logs and stored executions become one trajectory per run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from luckrate_otel.batch import read_files
from luckrate_otel.facts import CloseReason
from luckrate_otel.otlp.files import FORMS
from tests.captured import TRACES

PAYLOADS = Path(__file__).parents[1] / "payloads" / "captured"


def test_native_spans_with_the_stored_execution() -> None:
    """Spans have ids and times, the execution has arguments, results and the task."""
    spans = read_files([str(PAYLOADS / "native-s1.traces.jsonl")])
    both = read_files([str(PAYLOADS / "native-s1.traces.jsonl"), str(PAYLOADS / "s1.execution.json")])
    (bare,) = spans.trajectories
    (full,) = both.trajectories
    assert [(s.tool, s.args) for s in bare.steps] == [
        ("lookup_order", None),
        ("check_policy", None),
        ("escalate_to_human", None),
    ]
    assert [(s.tool, s.span) for s in full.steps] == [(s.tool, s.span) for s in bare.steps]
    assert [s.args for s in full.steps][:2] == [{"order_id": "88213"}, {"amount": 200}]
    assert full.coverage.args is True
    assert full.task_input is not None


def test_traces_without_their_logs_lack_what_only_the_logs_carry() -> None:
    case = TRACES / "openai-agents-otel-genai-events"
    (alone,) = read_files([str(case / "s2.traces.jsonl")]).trajectories
    (joined,) = read_files([str(case / "s2.logs.jsonl"), str(case / "s2.traces.jsonl")]).trajectories
    assert {s.args for s in alone.steps} == {None}
    assert all(s.args is not None and s.result is not None for s in joined.steps)
    assert [s.span for s in alone.steps] == [s.span for s in joined.steps]
    assert joined.close_reason is CloseReason.END_OF_INPUT


def test_two_invocations_of_one_conversation_are_two_runs_that_know_each_other() -> None:
    """The second run's state repeats the first one's call; it stays the first one's."""
    first, second = read_files([str(TRACES / "langgraph-openinference" / "s9.traces.jsonl")]).trajectories
    assert first.conversation_id == second.conversation_id == "conv-7731"
    assert [s.tool for s in first.steps] == ["lookup_order"]
    assert [s.tool for s in second.steps] == ["check_policy", "escalate_to_human"]
    assert second.history.turns == ("Please look up order 88213.",)
    assert [s.tool for s in second.history.steps] == ["lookup_order"]


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("{}", "an empty object"),
        ('{"a": 1}', "an object with the key a"),
        ('{"b": 1, "a": 2}', "an object with the keys a, b"),
        (json.dumps({f"k{n}": n for n in range(9)}), "an object with the keys k0, k1, k2, k3, k4, k5, k6, k7 …"),
        ("[]", "an empty array"),
        ("[1, 2]", "an array of 2"),
    ],
)
def test_what_is_no_run_is_told_by_its_shape(text: str, shape: str, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(text, encoding="utf-8")
    found = read_files([str(tmp_path / "f.json")])
    assert found.trajectories == ()
    assert found.unrecognised == f"JSON of no known form, {shape}; {FORMS}"
