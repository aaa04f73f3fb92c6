"""Mapping → Spec: what is read, and every problem at once with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel import Spec
from luckrate_otel.errors import Problem, SpecError
from luckrate_otel.model import Severity, Trajectory
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.engines import ENGINES
from luckrate_otel.rules.key import Notes, Place, seconds, shown
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import KEYS, select


def problems(mapping: Mapping[str, Any], **options: Any) -> list[str]:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping(mapping, **options)
    return [str(problem) for problem in raised.value.problems]


def rules_on(mapping: Mapping[str, Any]) -> list[str]:
    return [rule.id for rule in Spec.from_mapping(mapping).rules]


TOOLS = ["lookup_order", "check_policy", "issue_refund"]


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"requird": []}, ["requird: unknown key; did you mean 'required'?"]),
        ({"zzz": 1}, [f"zzz: unknown key; known here: {', '.join([*KEYS, 'aliases'])}"]),
        ({"output": {"zzz": 1, "chck": 1, "yyy": 2}},
         ["output.zzz: unknown key; known here: evaluation, attribute, check, status",
          "output.chck: unknown key; did you mean 'check'?", "output.yyy: unknown key"]),
        ({"max_calls": {"a": {"max": 1, "zzz": 1}}}, ["max_calls.a.zzz: unknown key; known here: max, where, same"]),
        ({"severity": {"zzz": "hard"}}, [f"severity.zzz: no such rule; there are {', '.join(RULES)}"]),
        ({"match": {"zzz": "x"}},
         ["match.zzz: neither agent, service, adapter nor an attribute, whose name has a dot"]),
        ({3: 1}, ["expected texts as keys, got 3"]),
        ({"tools": "a"}, ["tools: expected a list of tool names, got 'a'; write [a]"]),
        ({"tools": "a, b]"}, ["tools: expected a list of tool names, got 'a, b]'; write [a, b]"]),
        ({"tools": "a" * 41}, ["tools: expected a list of tool names, got text"]),
        ({"tools": ["a", 3, ""]},
         ["tools[1]: expected a text, got 3; put it in quotes", "tools[2]: expected a text that is not empty"]),
        ({"required": "look"}, ["required: expected a list of tool names, got 'look'; write [look]"]),
        ({"required": None}, ["required: expected a list of tool names, got nothing"]),
        ({"required": ["", 2.5]}, ["required[0]: expected a text that is not empty",
                                   "required[1]: expected a text, got 2.5; put it in quotes"]),
        ({"name": None, "order": 3},
         ["name: expected a text, got nothing", "order: expected one of issue, overlap, got 3"]),
        ({"severity": {3: "hard"}}, ["severity: expected texts as keys, got 3"]),
        ({"aliases": {"a": {"b"}}, "max_steps": b"8"}, ["max_steps: expected a whole number from 0 on, got bytes"]),
        ({"forbidden": {"a": 1}}, ["forbidden: expected a list of tool names, got a mapping"]),
        (
            {"tools": TOOLS, "before": [["lookup_order", "isue_refund"], ["x"], "ab", ("check_policy", "pay")]},
            [
                "before[1]: expected a pair of calls, [a, b], or a mapping with first and then, got a list",
                "before[2]: expected a pair of calls, [a, b], or a mapping with first and then, got 'ab'",
                "before[0][1]: 'isue_refund' is not one of the spec's tools; did you mean 'issue_refund'?",
                "before[3][1]: 'pay' is not one of the spec's tools",
            ],
        ),
        (
            {"tools": TOOLS, "required": ["a"], "forbidden": ["b"], "untrusted": ["c"], "privileged": ["d"]},
            [f"{key}[0]: {tool!r} is not one of the spec's tools" for key, tool in
             (("required", "a"), ("forbidden", "b"), ("untrusted", "c"), ("privileged", "d"))],
        ),
        (
            {"tools": ["aa"], "targets": {"bb": "to"}, "fields": {"cc": ["$.x"]}, "delegates": ["dd"],
             "aliases": {"ee": "E"}},
            [f"{path}: {tool!r} is not one of the spec's tools" for path, tool in
             (("aliases.ee", "ee"), ("targets.bb", "bb"), ("fields.cc", "cc"), ("delegates[0]", "dd"))],
        ),
        ({"max_steps": -1}, ["max_steps: expected a whole number from 0 on, got -1"]),
        ({"max_steps": 2.5}, ["max_steps: expected a whole number from 0 on, got 2.5"]),
        ({"max_steps": True}, ["max_steps: expected a whole number from 0 on, got true"]),
        ({"max_steps": "8"}, ["max_steps: expected a whole number from 0 on, got '8'"]),
        ({"k": 0}, ["k: expected a whole number from 1 on, got 0"]),
        ({"no_repeat": "yes"}, ["no_repeat: expected true or false, got 'yes'"]),
        ({"ground": 0}, ["ground: expected true or false, got 0"]),
        ({"name": ""}, ["name: expected a text that is not empty"]),
        ({"order": "time"}, ["order: expected one of issue, overlap, got 'time'"]),
        ({"order": "overlapp"}, ["order: expected one of issue, overlap, got 'overlapp'; did you mean 'overlap'?"]),
        ({"severity": {"befor": "hard"}}, ["severity.befor: no such rule; did you mean 'before'?"]),
        ({"severity": {"befor": "hrad"}}, ["severity.befor: no such rule; did you mean 'before'?"]),
        ({"severity": {"tools": "hard"}}, ["severity.tools: no such rule; its rule id is 'unknown_tool'"]),
        (
            {"severity": {"before": "hrad"}},
            ["severity.before: expected one of off, hard, soft, warn, got 'hrad'; did you mean 'hard'?"],
        ),
        ({"severity": ["before"]}, ["severity: expected a mapping from rule ids to severities, got a list"]),
        ({"aliases": {"a": ["x"], "b": ["x"]}}, ["aliases.b: 'x' already is another name of 'a'"]),
        ({"aliases": {"a": ["b"], "b": ["y"]}}, ["aliases.b: 'b' is also given as another name of 'a'"]),
        ({"match": {"agnt": "x"}},
         ["match.agnt: neither agent, service, adapter nor an attribute; did you mean 'agent'?"]),
        ({"output": {"chck": {}}}, ["output.chck: unknown key; did you mean 'check'?"]),
        ({"output": {"check": {}}}, ["output.check: checks nothing: give contains, regex, schema or python"]),
        (
            {"output": {"check": {"regex": "("}}},
            ["output.check.regex: not a regular expression of RE2: missing ): ("],
        ),
        (
            {"output": {"evaluation": {"label": "pass"}}},
            ["output.evaluation: name is missing: which evaluation says that the output is right?"],
        ),
        (
            {"output": {"evaluation": "luckrate.path"}},
            ["output.evaluation.name: luckrate.path is the verdict on the path, not on the output"],
        ),
        (
            {"output": {"evaluation": {"name": "x", "threshold": "half", "wait": "soon"}}},
            [
                'output.evaluation.wait: expected seconds or a duration like "10s" or "2m", got \'soon\'',
                "output.evaluation.threshold: expected a number, got 'half'",
            ],
        ),
        (
            {"output": {"attribute": {"equals": "x"}}},
            ["output.attribute: key is missing: which attribute says that the output is right?"],
        ),
    ],
)  # fmt: skip
def test_problems(mapping: Mapping[str, Any], expected: list[str]) -> None:
    assert problems(mapping) == expected


@pytest.mark.parametrize(("given", "kind"), [([], "a list"), (None, "nothing"), ("tools", "'tools'")])
def test_what_is_no_mapping(given: Any, kind: str) -> None:
    with pytest.raises(SpecError, match=f"expected a mapping from keys to rules, got {kind}"):
        Spec.from_mapping(given)


def test_an_unknown_engine_is_refused() -> None:
    assert problems({"provenance": "vectors"}) == [f"provenance: expected one of {', '.join(ENGINES)}, got 'vectors'"]


def test_problems_carry_the_line_of_the_nearest_known_part_and_are_sorted_by_it() -> None:
    lines = {"tools": 2, "before": 3, "before[0]": 4, "max_steps": 9}
    mapping = {"tools": ["a"], "before": [["a", "b"]], "max_steps": -1, "requird": 1}
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping(mapping, source="refunds.yaml", lines=lines)
    assert raised.value.problems == (
        Problem("before[0][1]", "'b' is not one of the spec's tools", 4),
        Problem("max_steps", "expected a whole number from 0 on, got -1", 9),
        Problem("requird", "unknown key; did you mean 'required'?"),
    )
    assert str(raised.value).splitlines() == [
        "refunds.yaml: line 4: before[0][1]: 'b' is not one of the spec's tools",
        "refunds.yaml: line 9: max_steps: expected a whole number from 0 on, got -1",
        "refunds.yaml: requird: unknown key; did you mean 'required'?",
    ]


def test_a_spec_error_is_a_value_error_as_in_luckrate() -> None:
    with pytest.raises(ValueError, match="'x' is not one of the spec's tools"):
        Spec.from_mapping({"tools": ["a"], "required": ["x"]})


def test_an_empty_spec_asks_for_ground_and_secrets() -> None:
    spec = Spec.from_mapping({})
    assert [rule.id for rule in spec.rules] == ["ground", "secrets"]
    assert not any(spec.writes(rule) for rule in RULES.values())
    assert (spec.name, spec.order, spec.k, spec.provenance) == ("default", "issue", 5, next(iter(ENGINES)))


@pytest.mark.parametrize(
    ("mapping", "on"),
    [
        ({"ground": False, "secrets": None}, []),
        ({"tools": ["a"]}, ["unknown_tool", "ground", "secrets"]),
        ({"tools": []}, ["ground", "secrets"]),
        ({"tools": None}, ["ground", "secrets"]),
        ({"required": [], "forbidden": (), "before": [], "no_repeat": False}, ["ground", "secrets"]),
        ({"max_steps": 0}, ["max_steps", "ground", "secrets"]),
        ({"max_steps": None}, ["ground", "secrets"]),
        ({"untrusted": ["a"]}, ["ground", "secrets"]),
        ({"privileged": ["a"], "targets": {"a": "to"}}, ["ground", "secrets"]),
        ({"untrusted": ["a"], "privileged": ["b"]}, ["taint", "ground", "secrets"]),
        ({"required": ["a"], "severity": {"required": "off", "ground": False}}, ["secrets"]),
    ],
)
def test_which_rules_are_on(mapping: Mapping[str, Any], on: list[str]) -> None:
    assert rules_on(mapping) == on


def test_lists_tuples_and_sets_read_the_same() -> None:
    as_lists = Spec.from_mapping({"tools": ["a", "b"], "required": ["a"], "before": [["a", "b"]]})
    as_tuples = Spec.from_mapping({"tools": {"b", "a"}, "required": ("a",), "before": (("a", "b"),)})
    assert as_lists == as_tuples


def test_the_version_is_of_the_content_and_not_of_the_order_of_keys() -> None:
    one = Spec.from_mapping({"max_steps": 3, "severity": {"ground": "off", "secrets": "off"}})
    other = Spec.from_mapping({"severity": {"secrets": "off", "ground": "off"}, "max_steps": 3})
    assert one.version == other.version == "5ab02f3f7d001fa3"
    assert Spec.from_mapping({"max_steps": 4}).version != Spec.from_mapping({"max_steps": 3}).version


def test_other_names_of_a_tool_count_as_its_own_in_the_spec_itself() -> None:
    spec = Spec.from_mapping({"tools": ["a", "b"], "aliases": {"a": ["A", "mcp__a"]}, "required": ["A"]})
    assert spec.values["required"] == ("a",)
    assert [spec.canonical_tool(name) for name in ("A", "mcp__a", "a", "b")] == ["a", "a", "a", "b"]


def test_severities() -> None:
    spec = Spec.from_mapping({"before": [["a", "b"]], "severity": {"before": "warn"}})
    assert spec.severity(RULES["before"]) is Severity.WARN
    assert spec.severity(RULES["required"]) is Severity.HARD
    assert (spec.overrides(RULES["before"]), spec.overrides(RULES["required"])) == (Severity.WARN, None)


def test_the_policy_is_empty_unless_taint_is_on() -> None:
    flow = {
        "untrusted": ["w"],
        "privileged": ["p"],
        "targets": {"p": "to"},
        "fields": {"w": ["$.id"]},
        "delegates": ["w"],
    }
    assert Spec.from_mapping(flow).policy == Policy(("w",), ("p",), {"p": ("to",)}, {"w": ("$.id",)}, ("w",))
    assert Spec.from_mapping({**flow, "severity": {"taint": "off"}}).policy == Policy()
    assert Spec.from_mapping({"untrusted": ["w"]}).policy == Policy()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (2.5, 2.5),
        ("10", 10.0),
        ("10s", 10.0),
        ("2m", 120.0),
        ("1.5 h", 5400.0),
        ("1d", 86400.0),
        ("250ms", 0.25),
    ],
)
def test_durations(value: Any, expected: float) -> None:
    assert seconds(value, Place("within", Notes())) == expected


NO_DURATIONS = [-1, True, "", "s", "1w", "-2s", "1e3", [], float("nan"), float("inf"), 10**400, "9" * 400 + "s"]


@pytest.mark.parametrize("value", NO_DURATIONS, ids=lambda value: str(value)[:9])
def test_what_is_no_duration(value: Any) -> None:
    notes = Notes()
    assert seconds(value, Place("within", notes)) is None
    assert seconds(None, Place("within", Notes())) is None
    assert notes.problems == [
        Problem("within", f'expected seconds or a duration like "10s" or "2m", got {shown(value)}')
    ]


@pytest.mark.parametrize(("written", "k"), [({}, 5), ({"k": None}, 5), ({"k": 1}, 1), ({"k": 7}, 7)])
def test_the_size_of_a_batch(written: Mapping[str, Any], k: int) -> None:
    assert Spec.from_mapping(written).k == k


def test_every_key_belongs_to_one_owner() -> None:
    shared = 1  # `args`, which two rules read: what arguments look like, and where they come from
    assert len(KEYS) == 7 + sum(len(rule.keys) for rule in RULES.values()) - shared


# ---- which spec grades a run -----------------------------------------------------------------------

RUN = Trajectory(
    agent="refund_desk",
    adapters=("openinference", "genai"),
    attributes={"service.name": "shop-eu", "deployment.environment": "prod", "app.beta": True},
)


@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({}, True),
        ({"agent": "refund_desk"}, True),
        ({"agent": "refund"}, False),
        ({"agent": "refund*"}, True),
        ({"agent": "*desk"}, True),
        ({"agent": "r*d*k"}, True),
        ({"agent": ["billing", "refund_*"]}, True),
        ({"agent": "refund.desk"}, False),
        ({"service": "shop-*"}, True),
        ({"service": "shop-us"}, False),
        ({"adapter": "genai"}, True),
        ({"adapter": "langsmith"}, False),
        ({"deployment.environment": "prod", "agent": "refund_desk"}, True),
        ({"deployment.environment": "prod", "agent": "other"}, False),
        ({"app.beta": "true"}, True),
        ({"app.none": "*"}, False),
    ],
)
def test_match(match: Mapping[str, Any], fits: bool) -> None:
    spec = Spec.from_mapping({"match": match})
    assert select([spec], RUN) == (spec if fits else None)


def test_the_first_spec_that_fits_grades() -> None:
    specs = [
        Spec.from_mapping({"name": n, "match": {"agent": m}}) for n, m in (("a", "x"), ("b", "refund*"), ("c", "*"))
    ]
    assert select(specs, RUN) is specs[1]
    assert select([], RUN) is None


def test_a_spec_of_luckrate_0_3_is_taken_as_it_is() -> None:
    """Its dict with tuples, and the same keys from YAML; the whole vocabulary, compared with the original elsewhere."""
    original = {
        "tools": {"lookup_order", "check_policy", "issue_refund", "fetch_page"},
        "required": ["check_policy"],
        "forbidden": [],
        "before": [("check_policy", "issue_refund")],
        "max_steps": 6,
        "no_repeat": True,
        "ground": True,
        "untrusted": ["fetch_page"],
        "privileged": ["issue_refund"],
        "secrets": True,
    }
    assert [rule.id for rule in Spec.from_mapping(original).rules] == [
        "unknown_tool", "required", "before", "max_steps", "no_repeat", "taint", "ground", "secrets",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"forbidden": ["a", "delete_*"]}, "forbidden[1]"),
        ({"tools": ["*"]}, "tools[0]"),
        ({"before": [["*", "a"]]}, "before[0][0]"),
        ({"args": {"*": {}}}, "args.*"),
        ({"max_calls": {"mcp__*": 1}}, "max_calls.mcp__*"),
        ({"agents": {"x": {"tools": ["*"]}}}, "agents.x.tools[0]"),
        ({"aliases": {"a": ["mcp__*__a"]}}, "aliases.a"),
        ({"untrusted": ["web_*"]}, "untrusted[0]"),
        ({"tools": ["a"], "required": ["a*"]}, "required[0]"),
    ],
)
def test_tools_are_named_in_full(spec: dict[str, Any], path: str) -> None:
    """A pattern would be a tool that is never called."""
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping(spec)
    assert [str(problem) for problem in raised.value.problems] == [
        f"{path}: tools are named in full; a * stands for nothing here"
    ]
    Spec.from_mapping({"max_step_duration": {"*": 1}, "match": {"agent": "shop-*"}})


# ---- whatever is written ---------------------------------------------------------------------------

WORDS = (
    *("first", "then", "same", "within", "tool", "where", "times", "max", "calls", "from", "that", "check", "regex"),
    *("a", "*", "a.b <= 3"),
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**400)  # beyond every float
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*KEYS, "aliases", "odd"]), values, max_size=4))
def test_whatever_a_key_holds_is_read_or_told_in_one_line(written: dict[str, Any]) -> None:
    try:
        Spec.from_mapping(written, source="s.yaml")
    except SpecError as error:
        told = str(error).splitlines()
        assert len(told) == len(error.problems)  # noqa: PT017 - most are refused, not all
