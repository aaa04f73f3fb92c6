"""A spec proposed from good runs: what it says, what it does not, and that it is a spec."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from luckrate_otel import Spec, Step, Turn, check
from luckrate_otel.infer import infer, proposed
from luckrate_otel.infer.counted import Counted, arguments, before, budget
from luckrate_otel.infer.orders import about_the_same, either
from luckrate_otel.infer.repeated import once_each
from luckrate_otel.model import Coverage, Trajectory
from luckrate_otel.provenance.tokens import trace
from tests.grading.generated import plain_steps
from tests.grading.test_properties import trajectories


def good(number: int, *more: Step) -> Trajectory:
    """Look up, check, refund; every run about an order of its own."""
    order = f"W{1000 + number}"
    found = {"id": order, "payment": f"card_{number}41x", "total": 40 + number / 2}
    return Trajectory(
        (
            Step("lookup_order", {"order_id": order}, result=json.dumps(found), t=0),
            Step("check_policy", {"kind": "refund" if number % 2 else "return"}, t=10),
            *more,
            Step("issue_refund", {"order_id": order, "to": f"card_{number}41x", "amount": 40 + number / 2}, t=20),
        ),
        (Turn(f"please refund {order}"),),
        duration=1000.0 + number,
        tokens=100 + number,
        run_id=f"r{number}",
    )


RUNS = [good(number) for number in range(25)]


def read(text: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(text)
    return loaded


def test_what_good_runs_have_in_common() -> None:
    proposal = infer(RUNS, "refunds")
    assert read(proposal.text) == {
        "name": "refunds",
        "tools": ["check_policy", "issue_refund", "lookup_order"],
        "required": ["check_policy", "issue_refund", "lookup_order"],
        "before": [
            ["check_policy", "issue_refund"],
            ["lookup_order", "check_policy"],
            {"first": "lookup_order", "then": "issue_refund", "same": "order_id"},
        ],
        "max_calls": {"check_policy": 1, "issue_refund": 1, "lookup_order": 1},
        "max_steps": 3,
        "max_duration": "2s",
        "max_tokens": 122,
        "no_repeat": True,
        "args": {
            "check_policy": {"properties": {"kind": {"enum": ["refund", "return"]}}, "required": ["kind"]},
            "issue_refund": {
                "properties": {"amount": {"type": "number"}, "order_id": {"type": "string"}, "to": {"type": "string"}},
                "required": ["amount", "order_id", "to"],
                "from": {"order_id": ["lookup_order"], "to": ["lookup_order"]},
            },
            "lookup_order": {
                "properties": {"order_id": {"type": "string"}},
                "required": ["order_id"],
                "from": {"order_id": ["user"]},
            },
        },
    }
    assert (proposal.learnt, proposal.held_out, proposal.flagged, proposal.alarms) == (20, 5, 1, {"max_tokens": 1})


def test_each_line_tells_its_support() -> None:
    lines = infer(RUNS, "refunds").text.splitlines()
    assert lines[:2] == [
        "# Proposed from 20 known-good runs. Each line tells how often it held; strike what is chance.",
        "# False alarms on 5 runs held out: 1 (20%, 95 % interval 4% to 62%): max_tokens 1.",
    ]
    assert '  - "check_policy"  # 20 of 20 runs' in lines
    assert '  - ["check_policy", "issue_refund"]  # 20 of 20 runs' in lines
    assert "max_tokens: 122  # p95: 19 of 20 runs, most 123" in lines
    assert '      "kind": {"enum": ["refund", "return"]}  # given in 20 of 20 calls' in lines
    assert all("#" in line or line.endswith(":") for line in lines if not line.startswith("name:"))


def test_the_proposal_finds_what_is_different() -> None:
    spec = Spec.from_mapping(read(infer(RUNS).text))
    slip = good(99, Step("drop_table", {}))
    assert {v.rule for v in check(slip, spec).violations} == {"unknown_tool", "max_steps", "max_tokens"}
    refund, lookup = good(7).steps[2], good(7).steps[0]
    early = Trajectory((refund, lookup), (Turn("please refund W1007"),))
    assert {"required", "before", "args.from"} <= {v.rule for v in check(early, spec).violations}


def test_few_runs_propose_little_and_say_so() -> None:
    proposal = infer(RUNS[:4])
    assert read(proposal.text) == {
        "name": "inferred",
        "tools": ["check_policy", "issue_refund", "lookup_order"],
    }
    assert proposal.text.splitlines()[1] == (
        "# Too few runs to hold some out: how often it would raise a false alarm is not known."
    )


def test_one_run_is_one_run() -> None:
    assert infer(RUNS[:1]).text.splitlines()[0] == (
        "# Proposed from 1 known-good run. Each line tells how often it held; strike what is chance."
    )
    assert '  - "check_policy"  # 1 of 1 run' in infer(RUNS[:1]).text.splitlines()


def test_runs_that_could_show_no_call_say_nothing() -> None:
    blind = Trajectory(coverage=Coverage(tools=False))
    assert infer([*RUNS[:4], blind]).learnt == 4
    assert infer([blind]).text.splitlines()[-1] == 'name: "inferred"'


def test_what_no_spec_can_name_is_left_out() -> None:
    odd = [good(number, Step("*", {}), Step(" ", {})) for number in range(25)]
    assert read(infer(odd).text)["tools"] == ["check_policy", "issue_refund", "lookup_order"]


def test_an_order_that_failed_once_is_no_order() -> None:
    turned = Trajectory((Step("b"), Step("a")))
    kept = [Trajectory((Step("a"), Step("b")))] * 9
    assert before([*kept, turned]) == []
    assert before(kept) == [Counted(["a", "b"], 9, 9)]
    assert before(kept[:4]) == []


def test_the_budget_is_the_95th_percentile_by_nearest_rank() -> None:
    assert budget([1.0] * 19 + [9.0]) == Counted(1, 19, 20, "most 9")
    assert budget([1.0] * 18 + [8.5, 9.0]) == Counted(9, 20, 20, "most 9")
    assert budget([1.0, None, 2.0]) is None


def test_a_value_that_once_came_from_nowhere_gets_no_source() -> None:
    made_up = Trajectory((Step("lookup_order", {"order_id": "W9999"}),), (Turn("hello"),))
    (argument,) = arguments([*RUNS, made_up], trace)["lookup_order"]
    assert (argument.sources, argument.uses) == ((), 26)


# ---- orders and limits about one thing -----------------------------------------------------------


def shop(number: int, *steps: tuple[str, dict[str, Any]]) -> Trajectory:
    return Trajectory(tuple(Step(tool, args, t=float(i)) for i, (tool, args) in enumerate(steps)), run_id=f"s{number}")


def found(order: str) -> tuple[str, dict[str, Any]]:
    return "get", {"id": order, "lang": "en"}


def sold(order: str) -> tuple[str, dict[str, Any]]:
    return "refund", {"id": order, "lang": "en"}


def two_orders(number: int) -> Trajectory:
    one, other = f"A{number}", f"B{number}"
    return shop(number, found(one), found(other), sold(other), sold(one))


SAME_ORDER = {"first": "get", "then": "refund", "same": "id"}


def test_a_look_up_of_the_same_thing_is_proposed_for_it() -> None:
    kept = [two_orders(number) for number in range(5)]
    assert about_the_same(kept) == [Counted(SAME_ORDER, 10, 10)]
    assert about_the_same(kept[:4]) == []
    elsewhere = shop(9, found("A9"), sold("B9"))
    assert about_the_same([*kept, elsewhere]) == []
    always_one = [shop(number, found("A1"), sold("A1")) for number in range(9)]  # of which nothing can be learnt
    assert about_the_same(always_one) == []
    unseen = Trajectory((Step("get", {"id": "A"}), Step("refund", None)))
    assert about_the_same([*kept, unseen]) == []
    spec = proposed(kept)
    slip = shop(7, found("A7"), sold("A7"), sold("B7"))
    assert [v.message for v in check(slip, spec).violations if v.rule == "before"] == [
        "before[0]: refund (step 2) was called without get"
    ]


def by(finder: str, number: int, *more: str) -> Trajectory:
    return shop(number, (finder, {}), *((tool, {"n": number}) for tool in (*more, "pay")))


def test_either_of_two_look_ups_is_proposed_where_neither_alone_was_made() -> None:
    runs = [
        by("email" if number % 2 else "name", number, *(["see"] if number % 4 == 0 else [])) for number in range(24)
    ]
    # see was called after name alone, by chance
    assert either(runs) == [Counted({"calls": ["email", "name"], "before": ["pay", "see"]}, 24, 24)]
    assert read(infer(runs).text)["any_of"] == [{"calls": ["email", "name"], "before": ["pay", "see"]}]
    assert "before" not in read(infer(runs).text)
    assert either([*runs, by("guess", 99)]) == []  # one run had neither
    assert either([by("email", n, "name") if n % 2 else by("name", n, "email") for n in range(24)]) == []  # both
    assert either([by("email" if n < 4 else "name", n) for n in range(24)]) == []  # four runs are no habit
    often = [shop(n, *((t, {}) for t in "xyz" if t != "xyz"[n % 9 % 3] or n % 9 > 2), ("pay", {})) for n in range(18)]
    assert either(often) == []  # each in most runs, and mostly both


def test_calls_for_one_thing_are_limited_where_hardly_a_run_repeats_them() -> None:
    again = shop(99, found("A9"), found("A9"), sold("A9"))
    runs = [two_orders(number) for number in range(24)]
    get = {"max": 1, "same": ["id", "lang"]}
    assert dict(once_each([*runs, again])) == {
        "get": Counted(get, 24, 25, "most 2"),
        "refund": Counted(get, 25, 25, "most 1"),
    }
    assert dict(once_each([*runs[:9], again])).keys() == {"refund"}  # 9 of 10 are less than 95 %
    assert once_each([*runs, Trajectory((Step("get", None), Step("refund", None)))]) == []
    text = infer([again, *runs]).text
    assert read(text)["max_calls"] == {"get": get, "refund": get}
    assert '  "get": {"max": 1, "same": ["id", "lang"]}  # p95: 19 of 20 runs, most 2' in text.splitlines()
    assert "no_repeat" not in read(text)


def test_the_same_few_ids_or_words_are_no_list_of_options() -> None:
    runs = [shop(n, ("get", {"id": f"W100{n % 2}", "kind": "ab"[n % 2] * 4, "lang": "english"})) for n in range(12)]
    assert read(infer(runs).text)["args"]["get"]["properties"] == {
        "id": {"type": "string"},
        "kind": {"enum": ["aaaa", "bbbb"]},
        "lang": {"type": "string"},
    }


@given(st.lists(trajectories, max_size=7))
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_runs_hold_the_proposal_is_a_spec(runs: list[Trajectory]) -> None:
    Spec.from_mapping(read(infer(runs).text))


def test_a_spec_inferred_from_random_runs_loads() -> None:
    random = Random(3)
    runs = []
    for _ in range(40):
        steps = tuple(Step(s.tool, s.args, s.ok, s.result) for s in plain_steps(random, random.randint(1, 6)))
        runs.append(Trajectory(steps, (Turn("W1001 100 abc"),)))
    proposal = infer(runs)
    spec = Spec.from_mapping(read(proposal.text))
    learnt = [run for i, run in enumerate(runs) if i % 5 != 4]
    # What it was made from keeps all of it but the budgets, which are at the 95th percentile, and what is on anyway.
    found = {v.rule for run in learnt for v in check(run, spec).violations}
    assert found <= {"max_steps", "ground", "secrets", "args", "args.from"}
