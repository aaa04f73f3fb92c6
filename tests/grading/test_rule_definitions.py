"""Every rule equals a slow definition of it on random runs: here those that test_rules_order, _budgets and _arguments
leave out, or try in part; and the table says where each of the others is tried."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel.canonical import canonical
from luckrate_otel.facts import ToolDefinition
from luckrate_otel.model import Step, Trajectory, Turn
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import Spec
from tests.grading import slow

Found = list[tuple[int | None, str | None]]  # step and tool, as the rule tells them

TOOLS = st.sampled_from("abc")
IDS = st.sampled_from(["W1001", "W2002"])
ARGS = st.fixed_dictionaries({}, optional={"id": IDS, "n": st.integers(0, 2)})
STEPS = st.builds(
    Step,
    tool=TOOLS,
    args=ARGS,
    ok=st.booleans(),
    result=st.sampled_from(["p", "q", '{"id": "W1001"}', '{"x": {"id": "W2002"}, "id": "other"}']),
    agent=st.sampled_from("xy"),
    error=st.sampled_from([None, "Timeout: after 30 s", "Timeout: after 31 s", "Denied"]),
    duration=st.sampled_from([0.0, 999.0, 1000.0, 1001.0, 3000.0]),
)
OFFERED = (
    ToolDefinition("a", {"properties": {"id": {}}, "required": ["id"]}),
    ToolDefinition("b", {"properties": {"n": {}}, "additionalProperties": True}),
    ToolDefinition("c", {}),
)
RUNS = st.builds(
    lambda steps, tokens, lasted, task: Trajectory(
        tuple(Step(s.tool, s.args, s.ok, s.result, i * 5000.0, s.agent, s.error, s.duration) for i, s in steps),
        (Turn(task),),
        tokens=tokens,
        duration=lasted,
        definitions=OFFERED,
    ),
    st.lists(STEPS, max_size=8).map(enumerate).map(list),
    st.integers(0, 9),
    st.sampled_from([0.0, 40_000.0, 40_001.0]),
    st.sampled_from(["do it", "look at W1001"]),
)


@dataclass(frozen=True)
class Definition:
    """written: what the spec may say under the rule's key. broken: what that finds."""

    key: str
    written: st.SearchStrategy[Any]
    broken: Callable[[Trajectory, Any], Found]


def firsts(run: Trajectory, tools: Sequence[str]) -> Found:
    """The first call of each of these tools."""
    called = [step.tool for step in run.steps]
    return [(called.index(tool), tool) for tool in tools if tool in called]


def unknown_tool(run: Trajectory, legal: list[str]) -> Found:
    return firsts(run, [tool for tool in dict.fromkeys(s.tool for s in run.steps) if tool not in legal])


def required(run: Trajectory, tools: list[str]) -> Found:
    return [(None, tool) for tool in tools if all(step.tool != tool for step in run.steps)]


def max_steps(run: Trajectory, most: int) -> Found:
    return [(None, None)] if len(run.steps) > most else []


def no_repeat(run: Trajectory, _: bool) -> Found:
    same = [(step.tool, canonical(step.args)) for step in run.steps]
    return [
        (i, run.steps[i].tool)
        for i in range(len(same))
        if any(same[j] == same[i] and run.steps[j].ok for j in range(i))
    ]


def max_calls(run: Trajectory, written: Mapping[str, Any]) -> Found:
    """Those that lack the id are about nothing, and so about the same."""
    found: Found = []
    for tool, limit in written.items():
        of_tool = [
            i
            for i, s in enumerate(run.steps)
            if s.tool == tool and (s.args or {}).get("n", -1) >= limit["where"]["n"]["ge"]
        ]
        for about in ("W1001", "W2002", None):
            same = [i for i in of_tool if (run.steps[i].args or {}).get("id") == about]
            found += [(i, tool) for i in same[limit["max"] : limit["max"] + 1]]
    return sorted(found, key=lambda one: (list(written).index(one[1] or ""), one[0] or 0))


def max_retries(run: Trajectory, written: Mapping[str, Any]) -> Found:
    """Over the limit at the retry after the last that is allowed; at that last one, if what is expected then, and the
    tool's success, never came."""
    steps, times = run.steps, written["times"]

    def kind(i: int) -> str | None:
        told = steps[i].error
        return steps[i].result if told is None else told.split(":")[0]

    def fails(i: int) -> bool:
        hit = any(word.lower() in (kind(i) or "").lower() for word in written.get("errors", [""]))
        return not steps[i].ok and steps[i].tool in written.get("tool", "abc") and hit

    def streak(i: int) -> list[int]:
        found: list[int] = []
        for j in range(i, -1, -1):
            if (steps[j].tool, canonical(steps[j].args)) != (steps[i].tool, canonical(steps[i].args)):
                continue
            if not fails(j) or kind(j) != kind(i):
                break
            found.append(j)
        return found

    def answered(i: int) -> bool:
        later = range(i + 1, len(steps))
        return any(
            steps[j].tool == written.get("then")
            or (steps[j].tool == steps[i].tool and steps[j].ok)
            or (fails(j) and i in streak(j))
            for j in later
        )

    over = [(i, steps[i].tool) for i in range(len(steps)) if fails(i) and len(streak(i)) == times + 2]
    due = [
        (i, steps[i].tool)
        for i in range(len(steps))
        if "then" in written and fails(i) and len(streak(i)) == times + 1 and not answered(i)
    ]
    return [*over, *due]


def max_step_duration(run: Trajectory, budgets: Mapping[str, int]) -> Found:
    return [
        (i, s.tool) for i, s in enumerate(run.steps) if (s.duration or 0) > 1000 * budgets.get(s.tool, budgets["*"])
    ]


def agents(run: Trajectory, written: Mapping[str, Any]) -> Found:
    found: Found = []
    for name, may in written.items():
        own = [i for i, step in enumerate(run.steps) if step.agent == name]
        tools = list(dict.fromkeys(run.steps[i].tool for i in own))
        wrong = [tool for tool in tools if tool in may["forbidden"] or tool not in may["tools"]]
        found += [(next(i for i in own if run.steps[i].tool == tool), tool) for tool in wrong]
        over = own[may["max_steps"] : may["max_steps"] + 1]
        found += [(i, run.steps[i].tool) for i in over]
        for tool, most in may["max_calls"].items():
            made = [i for i in own if run.steps[i].tool == tool]
            found += [(i, tool) for i in made[most : most + 1]]
    return found


def args(run: Trajectory, _: Any) -> Found:
    """Of the one schema below."""
    found: Found = []
    for i, step in enumerate(run.steps):
        given_args = step.args or {}
        if step.tool == "a":
            found += [(i, "a")] * (("id" not in given_args) + (given_args.get("n", 0) > 1))
    return found


SCHEMA = {"a": {"properties": {"n": {"maximum": 1}}, "required": ["id"]}}


def args_from(run: Trajectory, written: Mapping[str, Any]) -> Found:
    """An id comes from a user who says it, and from an earlier result of the tool that holds it at the place."""

    def seen(i: int, source: str, value: str) -> bool:
        if source == "user":
            return value in run.turns[0].text
        tool, _, path = source.partition(".$.")
        results = [s.result or "" for s in run.steps[:i] if s.tool == tool]
        return any(value in r and (not path or _at(r, path) == value) for r in results)

    wanted = written["a"]["from"]["id"]
    return [
        (i, "a")
        for i, step in enumerate(run.steps)
        if step.tool == "a" and "id" in (step.args or {})
        if not any(seen(i, source, (step.args or {})["id"]) for source in wanted)
    ]


def _at(result: str, path: str) -> Any:
    value = json.loads(result)
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def definitions(run: Trajectory, _: bool) -> Found:
    """a has id and needs it; b may have more; of c nothing is told."""
    found: Found = []
    for i, step in enumerate(run.steps):
        if step.tool == "a":
            found += [(i, "a")] * (("n" in (step.args or {})) + ("id" not in (step.args or {})))
    return found


SOME = st.lists(TOOLS, unique=True, max_size=2)
ONE_OR_TWO = st.lists(TOOLS, unique=True, min_size=1, max_size=2)
DEFINED: Mapping[str, Definition] = {
    "unknown_tool": Definition("tools", st.lists(TOOLS, unique=True, min_size=1), unknown_tool),
    "required": Definition("required", ONE_OR_TWO, required),
    "forbidden": Definition("forbidden", ONE_OR_TWO, firsts),
    "max_steps": Definition("max_steps", st.integers(0, 8), max_steps),
    "no_repeat": Definition("no_repeat", st.just(value=True), no_repeat),
    "max_calls": Definition(
        "max_calls",
        st.dictionaries(
            TOOLS,
            st.builds(
                lambda most, least: {"max": most, "same": "id", "where": {"n": {"ge": least}}},
                st.integers(0, 2),
                st.integers(0, 1),
            ),
            min_size=1,
        ),
        max_calls,
    ),
    "max_retries": Definition(
        "max_retries",
        st.fixed_dictionaries(
            {"times": st.integers(0, 1)},
            optional={"then": TOOLS, "tool": ONE_OR_TWO, "errors": st.just(["timeout"])},
        ),
        max_retries,
    ),
    "max_duration": Definition(
        "max_duration", st.just(40), lambda run, s: [(None, None)] if (run.duration or 0) > s * 1000 else []
    ),
    "max_tokens": Definition(
        "max_tokens", st.integers(0, 9), lambda run, most: [(None, None)] if (run.tokens or 0) > most else []
    ),
    "max_step_duration": Definition(
        "max_step_duration", st.fixed_dictionaries({"a": st.integers(0, 3), "*": st.just(1)}), max_step_duration
    ),
    "agents": Definition(
        "agents",
        st.dictionaries(
            st.sampled_from("xyz"),
            st.fixed_dictionaries(
                {
                    "tools": SOME,
                    "forbidden": SOME,
                    "max_steps": st.integers(0, 4),
                    "max_calls": st.dictionaries(TOOLS, st.integers(0, 2), max_size=2),
                }
            ),
            min_size=1,
        ),
        agents,
    ),
    "args": Definition("args", st.just(SCHEMA), args),
    "args.from": Definition(
        "args",
        st.lists(st.sampled_from(["user", "b", "b.$.id", "c.$.x.id"]), unique=True, min_size=1).map(
            lambda sources: {"a": {"from": {"id": sources}}}
        ),
        args_from,
    ),
    "definitions": Definition("definitions", st.just(value=True), definitions),
}

# Rule → where else it is compared with a definition, or with another program.
ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(slow.REFERENCES, "test_rules_order"),
    **dict.fromkeys(("starts_with", "ends_with", "exactly", "any_of"), "test_rules_order"),
    "handoffs": "test_rules_budgets",
    "relations": "test_rules_arguments",
    **dict.fromkeys(("ground", "taint", "secrets"), "test_oracle"),  # and tests/provenance
}


@pytest.mark.parametrize("rule", DEFINED)
@given(data=st.data(), run=RUNS)
def test_a_rule_is_its_definition(rule: str, data: st.DataObject, run: Trajectory) -> None:
    definition = DEFINED[rule]
    written = data.draw(definition.written)
    spec = Spec.from_mapping({definition.key: written})
    outcome = RULES[rule].evaluate(run, spec)
    assert [(v.step, v.tool) for v in outcome.violations] == definition.broken(run, written)


def test_no_rule_is_left_out() -> None:
    assert set(DEFINED) | set(ELSEWHERE) == set(RULES)
    assert not set(DEFINED) & set(ELSEWHERE)
