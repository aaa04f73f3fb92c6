"""Arguments: their shape, their sources, how they compare, and whether the tool has them at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.errors import SpecError
from luckrate_otel.facts import Gap, ToolDefinition
from luckrate_otel.model import History, Step, Trajectory, Turn
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import Spec
from tests.grading.asking import ask, only, places, run, state
from tests.grading.test_properties import step_lists

REFUND = {
    "type": "object",
    "properties": {
        "amount": {"type": "number", "maximum": 500},
        "lines": {"type": "array", "items": {"properties": {"sku": {"pattern": "^[A-Z]+$"}}}},
        "why": {"enum": ["damaged", "late"]},
    },
    "required": ["order_id", "amount"],
    "additionalProperties": False,
}
SCHEMA = {"refund": {**REFUND, "properties": {**REFUND["properties"], "order_id": {"type": "string"}}}}  # type: ignore[dict-item]


def refund(**args: Any) -> Step:
    return Step("refund", {"order_id": "W1001", "amount": 40, **args})


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (refund(), []),
        (refund(amount=500), []),
        (refund(amount=501), [("amount", "refund.amount (step 0) does not fit maximum 500")]),
        (refund(amount="40"), [("amount", "refund.amount (step 0) does not fit type number")]),
        (refund(why="x"), [("why", "refund.why (step 0) does not fit enum")]),
        (Step("refund", {}), [(None, "refund (step 0) lacks order_id, amount")]),
        (refund(lines=({"sku": "A"}, {"sku": "b"})),
         [("lines[1].sku", "refund.lines[1].sku (step 0) does not fit pattern ^[A-Z]+$")]),
        (refund(made_up=1), [(None, "refund (step 0) has arguments that its schema does not name")]),
        (Step("other", {}), []),
    ],
)  # fmt: skip
def test_args(step: Step, found: list[tuple[str | None, str]]) -> None:
    outcome = ask("args", {"args": SCHEMA}, run(step))
    assert [(v.argument, v.message.removeprefix("args.refund: ")) for v in outcome.violations] == found
    assert [v.severity for v in outcome.violations] == ["soft"] * len(found)


def test_args_that_were_not_captured_and_tools_that_were_not_called() -> None:
    assert state(ask("args", {"args": SCHEMA}, run(Step("refund", None)))) is Gap.NOT_CAPTURED
    assert state(ask("args", {"args": SCHEMA}, run("other"))) == "vacuous"
    assert state(ask("args", {"args": SCHEMA}, run(refund()))) == "satisfied"


def test_a_part_of_the_same_schema_can_be_referred_to() -> None:
    tree = {
        "$defs": {"node": {"type": "object", "additionalProperties": {"$ref": "#/$defs/node"}}},
        "$ref": "#/$defs/node",
    }
    outcome = ask("args", {"args": {"a": tree}}, run(Step("a", {"x": {"y": {}, "z": 1}})))
    assert [(v.argument, v.message) for v in outcome.violations] == [
        ("x.z", "args.a: a.x.z (step 0) does not fit type object")
    ]


def test_a_reference_may_lead_through_a_list() -> None:
    schema = {"allOf": [{"type": "object"}], "properties": {"x": {"$ref": "#/allOf/0"}}}
    outcome = ask("args", {"args": {"a": schema}}, run(Step("a", {"x": 1})))
    assert [v.argument for v in outcome.violations] == ["x"]


def test_a_schema_without_end_is_told() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"not": deep}
    with pytest.raises(SpecError, match="nested too deeply"):
        Spec.from_mapping({"args": {"a": deep}})


def test_a_run_too_large_to_be_traced_is_not_evaluated() -> None:
    huge = run(refund(lines=[{"sku": f"AB-{n}"} for n in range(21_000)]), task="refund it")
    assert state(ask("args.from", sources("user"), huge)) is Gap.TOO_LARGE


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        ({"a": {"properties": {"x": {"type": "strng"}}}},
         ["args.a.properties.x.type: not a JSON Schema: 'strng' is no type; did you mean 'string'?"]),
        ({"a": {"$ref": "https://a.example/schema.json"}},
         ["args.a.$ref: refers to 'https://a.example/schema.json': only a part of the same schema can be referred to"]),
        ({"a": {"properties": {"x": {"$ref": "#/$defs/y"}}}},
         ["args.a.properties.x.$ref: refers to '#/$defs/y': only a part of the same schema can be referred to"]),
        ({"a": {"properties": {"x": {"type": "strng", "pattern": "["}, "y": {"minimum": "low", "$ref": "b"}}}},
         ["args.a.properties.x.type: not a JSON Schema: 'strng' is no type; did you mean 'string'?",
          "args.a.properties.y.minimum: not a JSON Schema: expected a number, got 'low'",
          "args.a.properties.y.$ref: refers to 'b': only a part of the same schema can be referred to",
          "args.a.properties.x.pattern: not a regular expression of RE2: missing ]: ["]),
        ({"a": {"properties": 3}},
         ["args.a.properties: not a JSON Schema: expected a mapping, got 3"]),
        ({"a": 3}, ["args.a: expected a JSON Schema, with or without from, got 3"]),
        ({"a": {"from": {"x..y": "user", "z": ["nobody"]}}},
         ["args.a.from.x..y: not a path like order.lines[0].price: 'x..y'",
          "args.a.from.z[0]: 'nobody' is not one of the spec's tools"]),
        ({"b": {}}, ["args.b: 'b' is not one of the spec's tools"]),
        ({"a": {"from": {"x": "usr", "y": ["sytem", "a", "user"]}}},
         ["args.a.from.x: 'usr' is not one of the spec's tools; did you mean 'user'?",
          "args.a.from.y[0]: 'sytem' is not one of the spec's tools; did you mean 'system'?"]),
    ],
)  # fmt: skip
def test_problems_of_args(args: Any, problems: list[str]) -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"tools": ["a"], "args": args})
    assert [str(problem) for problem in raised.value.problems] == problems


HINT = "(a tool of that name has to be named under tools)"


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"args": {"a": {"from": {"x": "usr"}}}}, [f"args.a.from.x: no such source; did you mean 'user'? {HINT}"]),
        ({"args": {"a": {"from": {"x": ["a", "definitions.$.x"]}}}},
         [f"args.a.from.x[1]: no such source; did you mean 'definition'? {HINT}"]),
        ({"args": {"a": {"from": {"x": "users"}}}, "required": ["users"]}, []),
        ({"args": {"a": {"from": {"x": "users"}}}, "tools": ["a", "users"]}, []),
        ({"args": {"a": {"from": {"x": "lookup_order.$.id"}}}}, []),
    ],
)  # fmt: skip
def test_without_a_vocabulary_a_source_that_is_nearly_a_word_is_a_slip(spec: Any, problems: list[str]) -> None:
    try:
        Spec.from_mapping(spec)
    except SpecError as error:
        found = [str(problem) for problem in error.problems]
    else:
        found = []
    assert found == problems


# ---- sources ---------------------------------------------------------------------------------------

ORDER = json.dumps({"order": {"id": "W1001", "total": 40}, "lines": [{"sku": "AB-77120"}], "note": "see W2002"})
LOOKUP = Step("lookup", {"q": "kettle"}, result=ORDER)


def sources(*wanted: str, argument: str = "order_id") -> dict[str, Any]:
    return {"args": {"refund": {"from": {argument: list(wanted)}}}}


@pytest.mark.parametrize(
    ("spec", "trajectory", "ends"),
    [
        (sources("user"), run(refund(), task="refund W1001"), "satisfied"),
        (sources("user"), run(LOOKUP, refund(), task="refund it"), "violated"),
        (sources("lookup"), run(LOOKUP, refund(), task="refund it"), "satisfied"),
        (sources("lookup.$.order.id"), run(LOOKUP, refund(), task="refund it"), "satisfied"),
        (sources("lookup.$.order"), run(LOOKUP, refund(), task="refund it"), "satisfied"),
        (sources("lookup.$.note"), run(LOOKUP, refund(), task="refund it"), "violated"),
        (sources("lookup.$.note"), run(LOOKUP, refund(order_id="W2002"), task="refund it"), "satisfied"),
        (sources("user", "lookup.$.order.id"), run(LOOKUP, refund(order_id="W9"), task="refund W9"), "satisfied"),
        (sources("user"), run(refund(order_id="W9009"), task="refund it"), "violated"),
        (sources("system"), run(refund(), task="x", system=("the order is W1001",)), "satisfied"),
        (sources("user"), run(refund(), task=None), Gap.NO_TASK),
        (sources("user"), run(refund(), history=History(missing=True)), Gap.HISTORY_MISSING),
        (sources("lookup"), run(Step("lookup", result=None), refund()), Gap.NOT_CAPTURED),
        (sources("lookup.$.id"), run(Step("lookup", result="W1001"), refund()), Gap.NOT_CAPTURED),
        (sources("user"), run(Step("refund", None)), Gap.NOT_CAPTURED),
        (sources("user"), run("lookup"), "vacuous"),
        (sources("user", argument="urgent"), run(refund(urgent=True)), "satisfied"),
        (
            sources("lookup.$.lines[*].sku", argument="lines[*].sku"),
            run(LOOKUP, refund(lines=[{"sku": "AB-77120"}])),
            "satisfied",
        ),
        (
            sources("user", argument="lines"),
            run(LOOKUP, refund(lines=[{"sku": "AB-77120"}]), task="refund it"),
            "violated",
        ),
    ],
)
def test_sources(spec: dict[str, Any], trajectory: Trajectory, ends: str) -> None:
    assert state(ask("args.from", spec, trajectory)) == ends


def test_a_wrong_source_is_named() -> None:
    violation = only(ask("args.from", sources("user"), run(LOOKUP, refund(), task="refund it")))
    assert (violation.message, violation.argument, violation.sources, violation.severity) == (
        "args.refund.from: refund.order_id (step 1) does not come from user",
        "order_id",
        ("lookup #0",),
        "hard",
    )
    assert [e.step for e in violation.evidence] == [0]


# ---- relations -------------------------------------------------------------------------------------


def order(total: Any, id_: str = "W1001") -> Step:
    return Step("lookup", {"order_id": id_}, result=json.dumps({"total": total}))


TOTAL = ["refund.amount <= lookup.result.total"]
SAME = [{"that": TOTAL[0], "same": "order_id"}]


@pytest.mark.parametrize(
    ("relations", "trajectory", "ends", "found"),
    [
        (TOTAL, run(order(40), refund()), "satisfied", []),
        (TOTAL, run(order("40.0"), refund(amount="40")), "satisfied", []),
        (TOTAL, run(order(39.99), refund()), "violated", [("relations[0]", 1, "refund")]),
        (TOTAL, run(order(1), order(40), refund()), "satisfied", []),
        (TOTAL, run(refund(), order(1)), "vacuous", []),
        (TOTAL, run(order(1), Step("refund", {})), "satisfied", []),
        (TOTAL, run(order(1), Step("refund", None)), Gap.NOT_CAPTURED, []),
        (TOTAL, run(Step("lookup", result=None), refund()), Gap.NOT_CAPTURED, []),
        (TOTAL, run(Step("lookup", result="no json"), refund()), Gap.NOT_CAPTURED, []),
        (TOTAL, run(order("a lot"), refund()), Gap.NOT_CAPTURED, []),
        (SAME, run(order(40), order(1, "W2"), refund()), "satisfied", []),
        (SAME, run(order(1), order(40, "W2"), refund()), "violated", [("relations[0]", 2, "refund")]),
        (SAME, run(order(40), Step("lookup", None, result='{"total": 1}'), refund()), Gap.NOT_CAPTURED, []),
        (["refund.amount <= 39"], run(refund()), "violated", [("relations[0]", 0, "refund")]),
        (["refund.amount <= 40"], run(refund()), "satisfied", []),
        (["refund.order_id == lookup.order_id"], run(order(1), refund()), "satisfied", []),
        (["refund.order_id != lookup.order_id"], run(order(1), refund()), "violated", [("relations[0]", 1, "refund")]),
        (['"Issue Refund".at >= lookup.at'],
         run(Step("lookup", {"at": "2026-02-01"}), Step("Issue Refund", {"at": "2026-01-31"})),
         "violated", [("relations[0]", 1, "Issue Refund")]),
    ],
)  # fmt: skip
def test_relations(relations: Any, trajectory: Trajectory, ends: str, found: list[Any]) -> None:
    outcome = ask("relations", {"relations": relations}, trajectory)
    assert (state(outcome), places(outcome)) == (ends, found)


def test_a_relation_that_does_not_hold_is_told_without_values() -> None:
    violation = only(ask("relations", {"relations": TOTAL}, run(order(39), refund())))
    assert (violation.message, violation.argument) == (
        "relations[0]: refund.amount (step 1) is not <= lookup.result.total (step 0)",
        "amount",
    )
    assert [e.step for e in violation.evidence] == [0]
    number = only(ask("relations", {"relations": ["refund.amount < 40"]}, run(refund())))
    assert number.message == "relations[0]: refund.amount (step 0) is not < 40"


@pytest.mark.parametrize(
    ("relations", "problems"),
    [
        (["refund.amount"],
         [("relations[0]: expected a relation like issue_refund.amount <= lookup_order.result.total, "
          "got 'refund.amount'")]),
        (["refund.result.x < 3"],
         ["relations[0]: the left side is an argument, not a result: it is the call that is judged"]),
        (["refnd.amount < 3"], ["relations[0]: 'refnd' is not one of the spec's tools; did you mean 'refund'?"]),
        ([{"tht": "refund.a < 3"}],
         ["relations[0].tht: unknown key; did you mean 'that'?",
          "relations[0].that: expected a relation like issue_refund.amount <= lookup_order.result.total, got nothing"]),
    ],
)  # fmt: skip
def test_problems_of_relations(relations: Any, problems: list[str]) -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping({"tools": ["refund", "lookup"], "relations": relations})
    assert [str(problem) for problem in raised.value.problems] == problems


amounts = st.integers(0, 3)
refunds = st.one_of(
    st.builds(lambda i, n: Step("refund", {"order_id": i, "amount": n}), st.sampled_from("ab"), amounts),
    st.builds(
        lambda i, n: Step("lookup", {"order_id": i}, result=json.dumps({"total": n})), st.sampled_from("ab"), amounts
    ),
)


@given(steps=st.lists(refunds, max_size=8).map(tuple))
def test_relations_are_their_definition(steps: tuple[Step, ...]) -> None:
    """Each refund is compared with the last look-up of its order before it."""
    expected = []
    for i, step in enumerate(steps):
        before = [s for s in steps[:i] if s.tool == "lookup" and s.args["order_id"] == (step.args or {})["order_id"]]  # type: ignore[index]
        if step.tool == "refund" and before and step.args["amount"] > json.loads(before[-1].result or "")["total"]:  # type: ignore[index]
            expected.append(i)
    outcome = RULES["relations"].evaluate(Trajectory(steps), Spec.from_mapping({"relations": SAME}))
    assert [v.step for v in outcome.violations] == expected


# ---- definitions -----------------------------------------------------------------------------------


def offered(schema: Any) -> dict[str, Any]:
    return {"definitions": (ToolDefinition("refund", schema),)}


CLOSED = {"properties": {"order_id": {}, "amount": {}}, "required": ["order_id"]}


@pytest.mark.parametrize(
    ("schema", "step", "ends", "messages"),
    [
        (CLOSED, refund(), "satisfied", []),
        (CLOSED, refund(made_up=1), "violated", ["definitions: refund.made_up (step 0) is no argument of the tool"]),
        (CLOSED, Step("refund", {"amount": 1}), "violated", ["definitions: refund (step 0) lacks order_id"]),
        ({**CLOSED, "additionalProperties": True}, refund(made_up=1), "satisfied", []),
        ({**CLOSED, "anyOf": []}, refund(made_up=1), "satisfied", []),
        ({}, refund(), "satisfied", []),
        ({"properties": {}}, Step("refund", {}), "satisfied", []),
        ({"properties": {}}, Step("refund", {"a b": 1}), "violated",
         ["definitions: refund[*] (step 0) is no argument of the tool"]),
        (None, refund(), Gap.NOT_CAPTURED, []),
        (CLOSED, Step("refund", None), Gap.NOT_CAPTURED, []),
        (CLOSED, Step("other"), Gap.NOT_CAPTURED, []),
    ],
)  # fmt: skip
def test_definitions(schema: Any, step: Step, ends: str, messages: list[str]) -> None:
    outcome = ask("definitions", {"definitions": True}, run(step, **offered(schema)))
    assert (state(outcome), [v.message for v in outcome.violations]) == (ends, messages)


def test_without_calls_there_is_nothing_to_define() -> None:
    assert state(ask("definitions", {"definitions": True}, run())) == "vacuous"


@given(
    steps=step_lists,
    schema=st.recursive(
        st.none() | st.text(max_size=3),
        lambda x: st.dictionaries(
            st.sampled_from(["properties", "required", "additionalProperties", "x"]),
            x | st.lists(x, max_size=2),
            max_size=3,
        ),
    ),
)
def test_nothing_of_it_raises(steps: tuple[Step, ...], schema: Any) -> None:
    tools = sorted({step.tool for step in steps if step.tool.strip() and "*" not in step.tool})
    spec = Spec.from_mapping(
        {
            "args": {tool: {**REFUND, "from": {"order_id": ["user", f"{tool}.$.id"]}} for tool in tools},
            "relations": ["a.b < c.result.d"],
            "definitions": True,
        }
    )
    shown = schema if isinstance(schema, dict) else None
    definitions = tuple(ToolDefinition(step.tool, shown) for step in steps)
    trajectory = Trajectory(steps, (Turn("hi"),), definitions=definitions)
    for rule in ("args", "args.from", "relations", "definitions"):
        outcome = RULES[rule].evaluate(trajectory, spec)
        assert all(v.message.isprintable() for v in outcome.violations)
