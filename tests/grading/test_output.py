"""Whether the output was right, and who said so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from luckrate_otel.errors import SpecError
from luckrate_otel.facts import CloseReason, Evaluation
from luckrate_otel.model import Trajectory
from luckrate_otel.output import judge_output
from luckrate_otel.spec import Spec
from luckrate_otel.telemetry import Status


def judged(output: Mapping[str, Any] | None, **fields: Any) -> tuple[str, str]:
    spec = Spec.from_mapping({} if output is None else {"output": output})
    state, source = judge_output(Trajectory(**fields), spec.output)
    return str(state), str(source)


def evaluated(name: str = "right", **fields: Any) -> dict[str, Any]:
    return {"evaluations": (Evaluation(name, **fields),), "root": "r"}


LABELLED = {"evaluation": {"name": "right", "label": ["good", "fine"]}}
SCORED = {"evaluation": {"name": "right", "threshold": 0.5}}
BOTH = {"evaluation": {"name": "right", "label": "good", "threshold": 0.5}}
PLAIN = {"evaluation": "right"}


@pytest.mark.parametrize(
    ("output", "fields", "expected"),
    [
        (LABELLED, evaluated(label="good"), ("ok", "evaluation")),
        (LABELLED, evaluated(label="fine"), ("ok", "evaluation")),
        (LABELLED, evaluated(label="Good"), ("not_ok", "evaluation")),
        (LABELLED, evaluated(score=1.0), ("unknown", "evaluation")),
        (LABELLED, evaluated(name="other", label="good"), ("ok", "status")),
        (SCORED, evaluated(score=0.5), ("ok", "evaluation")),
        (SCORED, evaluated(score=0.49), ("not_ok", "evaluation")),
        (SCORED, evaluated(label="pass"), ("unknown", "evaluation")),
        (BOTH, evaluated(label="bad", score=1.0), ("not_ok", "evaluation")),
        (BOTH, evaluated(score=1.0), ("ok", "evaluation")),
        (SCORED, evaluated(label="0.5"), ("ok", "evaluation")),
        (SCORED, evaluated(label="0.4"), ("not_ok", "evaluation")),
        ({"evaluation": {"name": "right", "threshold": "0.5"}}, evaluated(score=0.6), ("ok", "evaluation")),
        (PLAIN, evaluated(label="Pass"), ("ok", "evaluation")),
        (PLAIN, evaluated(label="incorrect", score=1.0), ("not_ok", "evaluation")),
        (PLAIN, evaluated(score=1.0), ("ok", "evaluation")),
        (PLAIN, evaluated(score=0.0), ("not_ok", "evaluation")),
        (PLAIN, evaluated(score=0.7), ("unknown", "evaluation")),
        (PLAIN, evaluated(label="partly"), ("unknown", "evaluation")),
        (PLAIN, evaluated(), ("unknown", "evaluation")),
        (None, evaluated(label="fail"), ("ok", "status")),
        ({"attribute": "app.ok"}, {"attributes": {"app.ok": True}}, ("ok", "attribute")),
        ({"attribute": "app.ok"}, {"attributes": {"app.ok": False}}, ("not_ok", "attribute")),
        ({"attribute": "app.ok"}, {"attributes": {"app.ok": "true"}}, ("ok", "attribute")),
        ({"attribute": "app.ok"}, {"attributes": {"app.ok": 1}}, ("ok", "attribute")),
        ({"attribute": "app.ok"}, {"attributes": {"app.ok": 7}}, ("unknown", "attribute")),
        ({"attribute": "app.ok"}, {"attributes": {"app.ok": None}}, ("unknown", "none")),
        ({"attribute": {"key": "s", "equals": ["done", 3, True]}}, {"attributes": {"s": "done"}}, ("ok", "attribute")),
        ({"attribute": {"key": "s", "equals": ["done", 3, True]}}, {"attributes": {"s": 3}}, ("ok", "attribute")),
        ({"attribute": {"key": "s", "equals": ["done", 3, True]}}, {"attributes": {"s": True}}, ("ok", "attribute")),
        ({"attribute": {"key": "s", "equals": "done"}}, {"attributes": {"s": "Done"}}, ("not_ok", "attribute")),
        ({"attribute": {"key": "s", "equals": 3}}, {"attributes": {"s": 3.0}}, ("ok", "attribute")),
        ({"attribute": {"key": "s", "equals": 3}}, {"attributes": {"s": "3.0"}}, ("ok", "attribute")),
        ({"attribute": {"key": "s", "equals": 3}}, {"attributes": {"s": "4"}}, ("not_ok", "attribute")),
        ({"check": {"schema": {"required": ["id"]}}}, {"final_output": '{"id": 1}'}, ("ok", "check")),
        ({"check": {"schema": {"required": ["id"]}}}, {"final_output": "{}"}, ("not_ok", "check")),
        ({"check": {"schema": {"required": ["id"]}}}, {"final_output": "no JSON"}, ("not_ok", "check")),
        ({"check": {"schema": {"required": ["id"]}}}, {"final_output": "[" * 100_000}, ("not_ok", "check")),
        ({"check": {"python": lambda text: len(text) < 5}}, {"final_output": "ok"}, ("ok", "check")),
        ({"check": {"python": lambda text: len(text) < 5}}, {"final_output": "too long"}, ("not_ok", "check")),
        ({"check": {"python": lambda _: None}}, {"final_output": "x", "root": "r"}, ("ok", "status")),
        ({"check": {"python": lambda _: "yes"}}, {"final_output": "x", "root": "r"}, ("unknown", "check")),
        ({"check": {"python": lambda _: 1 / 0}}, {"final_output": "x", "root": "r"}, ("unknown", "check")),
        ({"check": {"python": lambda _: True, "contains": "y"}}, {"final_output": "x"}, ("not_ok", "check")),
        ({"check": {"contains": "refunded"}}, {"final_output": "I refunded it"}, ("ok", "check")),
        ({"check": {"contains": ["refunded", "W1"]}}, {"final_output": "I refunded it"}, ("not_ok", "check")),
        ({"check": {"regex": "W[0-9]+"}}, {"final_output": "order W12"}, ("ok", "check")),
        ({"check": {"regex": "^W[0-9]+$"}}, {"final_output": "order W12"}, ("not_ok", "check")),
        ({"check": {"contains": "a", "regex": "b"}}, {"final_output": "a"}, ("not_ok", "check")),
        ({"check": {"contains": "a"}}, {"final_output": ""}, ("not_ok", "check")),
        ({"check": {"contains": "a"}}, {"final_output": None, "root": "r"}, ("ok", "status")),
        ({"check": {"contains": "a"}, "status": False}, {"final_output": None, "root": "r"}, ("unknown", "none")),
        (None, {"root": "r"}, ("ok", "status")),
        (None, {"root": "r", "root_status": Status.ERROR}, ("not_ok", "status")),
        (None, {"root_status": Status.OK}, ("ok", "status")),
        (None, {}, ("unknown", "none")),
        (None, {"root": "r", "close_reason": CloseReason.NO_ROOT}, ("unknown", "none")),
        (None, {"root": "r", "close_reason": CloseReason.MEMORY}, ("unknown", "none")),
        (None, {"root": "r", "close_reason": CloseReason.NO_ROOT, "root_status": Status.ERROR}, ("not_ok", "status")),
        (None, {"root": "r", "finish_reasons": ("error",)}, ("not_ok", "status")),
        (None, {"root": "r", "finish_reasons": ("MALFORMED_FUNCTION_CALL",)}, ("not_ok", "status")),
        (None, {"root": "r", "finish_reasons": ("error", "stop")}, ("ok", "status")),
        ({"status": False}, {"root": "r"}, ("unknown", "none")),
    ],
)
def test_the_first_source_that_speaks(
    output: Mapping[str, Any] | None, fields: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert judged(output, **fields) == expected


def test_the_order_of_the_sources() -> None:
    output = {"evaluation": "right", "attribute": "app.ok", "check": {"contains": "x"}}
    told: dict[str, Any] = {
        "evaluations": (Evaluation("right", label="pass"),),
        "attributes": {"app.ok": False},
        "final_output": "x",
        "root_status": Status.ERROR,
    }
    seen = []
    for drop in ("", "evaluations", "attributes", "final_output", "root_status"):
        told.pop(drop, None)
        seen.append(judged(output, **told))
    assert seen == [
        ("ok", "evaluation"),
        ("not_ok", "attribute"),
        ("ok", "check"),
        ("not_ok", "status"),
        ("unknown", "none"),
    ]


def test_the_latest_evaluation_counts_whatever_the_order_it_came_in() -> None:
    early, late = Evaluation("right", "fail", time_ns=1), Evaluation("right", "pass", time_ns=2)
    assert judged(PLAIN, evaluations=(late, early)) == judged(PLAIN, evaluations=(early, late)) == ("ok", "evaluation")


def test_a_verdict_waits_only_for_an_evaluation() -> None:
    waits = [
        Spec.from_mapping({"output": output}).output.wait
        for output in ({}, PLAIN, {"evaluation": {"name": "x", "wait": "1h"}}, {"evaluation": {"name": "x", "wait": 0}})
    ]
    assert waits == [0.0, 300.0, 3600.0, 0.0]


def test_a_check_that_cannot_be_used_is_told() -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"output": {"check": {"python": "my_check", "schema": {"type": "strng"}}}})
    assert [str(problem) for problem in raised.value.problems] == [
        "output.check.schema.type: not a JSON Schema: 'strng' is no type; did you mean 'string'?",
        "output.check.python: expected a function, which only a Python spec file can give, got 'my_check'",
    ]


def test_a_schema_is_a_mapping() -> None:
    with pytest.raises(SpecError, match=r"output.check.schema: expected a JSON Schema, got 'id'"):
        Spec.from_mapping({"output": {"check": {"schema": "id"}}})


def test_a_function_counts_in_the_version_of_a_spec_by_what_it_does() -> None:
    def version(source: str) -> str:
        names: dict[str, Any] = {}
        exec(source, names)
        return Spec.from_mapping({"output": {"check": {"python": names["check"]}}}).version

    one = "def check(text): return len(text) > 5"
    assert version(one) == version(one)
    assert version(one) != version("def check(text): return len(text) > 6")
