"""Regular expressions that could take for ever are refused when a spec is loaded; those in common use are not."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from luckrate_otel import Spec, Step, check
from luckrate_otel.errors import SpecError
from luckrate_otel.rules.backtracking import MANY, runs_away

ENDLESS = (
    r"^(a+)+$",
    r"(a*)*b",
    r"(a+?)+$",
    r"(a|a)*$",
    r"(.*)*x",
    r"(.+)+,",
    r"(\w+\s*)+$",
    r"(\s*\w*)*;",
    r"(\d{1,3},?)+$",
    r"(a|ab|b)*c",
    r"(ab|abab)*c",
    r"(aa?)*$",
    r"(ab|abcd|cd)*e",
    r"(?:ab|a+[^a])*c",
    r"(?:(?:b.|(?:a?b))+)?!",
    r"(a?){20}a{20}$",
    r"(a+){2,}$",
    r"((a+)b?)*$",
    r"(x+x+)+y",
    r"(a+)+(b|c)",
    r"(?=(a+)+b)",
    r"(?>(a+)+b)",
    r"(?i:(a|Ab?)+)$",
    r"(?:(?:b*a+){1,3}){1,3}!",
    r"(?:a(?:(?:b*)?)?)+?$",
    r"(?:a(?:b?){1,2})+$",
    r"(a)?(?(1)(b+)+c|d)",
    r"((x)|\2y)*z",
    r"(?:[^b]|a)+(?:[^b]|ac)+(?:a|ac|c)*!",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
)
USUAL = (
    r"^ops@",
    r"W[0-9]+",
    r"(?i)refund(ed)?",
    r"a.*b.*c",
    r"\b(card|iban)\b",
    r"^\s*$",
    r"^\d+(,\d+)*$",
    r"(?:foo|food|bar)*x",
    r"(\d+[,;])*$",
    r"([a-z]+\.)+[a-z]+$",
    r"^([a-z0-9]+(-[a-z0-9]+)*\.)+[a-z]{2,}$",
    r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
    r"^(https?|ftp)://[^\s/$.?#].[^\s]*$",
    r'^("[^"]*",)*$',
    r"(?:foo|bar)+$",
    r"(?:foo|food)*x",
    r"(a|b)*c",
    r"(?:[A-Z][a-z]+)+$",
    r"(?i)(a|A)*$",
    r"(a(b(c)?)?)*$",
    r"(\w+\s*)+",  # nothing follows, so nothing is tried again
    r"(a+)+",
    r"^(\w+ )*\w+$",
    r"^(?:\d{3}-)?\d{4}$",
    r"(?:[^,]*,){3}x",
    r"^#?[A-Z]{1,3}\d{4,6}$",
    r"(['\"])(.*?)\1",
    r"(/[^/]+)+$",
    r"(?<!x)(?:ab)+$",
    r"(\\.|[^\\])*'",
    r"(?:%[0-9a-f]{2}|[^%])*$",
    r"(?:\D\d|\S\s)+\w",
    r"^(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$",
)


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_loop_that_can_be_cut_in_several_ways_is_refused(pattern: str) -> None:
    assert runs_away(re.compile(pattern))


@pytest.mark.parametrize("pattern", USUAL)
def test_where_the_next_character_decides_all_is_well(pattern: str) -> None:
    assert not runs_away(re.compile(pattern))


def test_where_it_is_hard_to_tell_the_answer_is_yes() -> None:
    assert runs_away(re.compile(r"(\d+,|\d+;)*$"))
    assert not runs_away(re.compile(r"(\d+[,;])*$"))


@pytest.mark.parametrize(("rounds", "refused"), [(MANY - 1, False), (MANY, True)])
def test_a_few_rounds_are_no_loop(rounds: int, refused: bool) -> None:
    assert runs_away(re.compile(rf"(?:a+b?){{1,{rounds}}}$")) is refused


PIECES = st.recursive(
    st.sampled_from(["a", "b", "ab", "[ab]", ".", "[^a]", r"\w", "a?", "b*"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2,}"])).map(lambda p: f"(?:{p[0]}){p[1]}"),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, inner).map("".join),
    ),
    max_leaves=5,
)


@given(PIECES, st.sampled_from(["a", "b", "ab", "aab", "ba"]))
def test_what_is_not_refused_comes_to_an_end(pattern: str, unit: str) -> None:
    """It would not, were there one that doubles its time with every letter."""
    made = re.compile(f"^(?:{pattern})c")
    if not runs_away(made):
        made.search(unit * (40 // len(unit)) + "!")


HINT = (
    "can take for ever on some texts, as what it repeats can be cut in several ways, like (a+)+; "
    "let each repeat end at a character that cannot go on with it, like ([a-z]+,)+"
)


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        (
            {"before": [["a", {"tool": "b", "where": {"x": {"matches": "(a+)+$"}}}]]},
            [f"before[0][1].where.x.matches: {HINT}"],
        ),
        ({"output": {"check": {"regex": "(a+)+$"}}}, [f"output.check.regex: {HINT}"]),
        (
            {"output": {"check": {"schema": {"properties": {"x": {"pattern": "(a+)+$"}}}}}},
            [f"output.check.schema.properties.x.pattern: {HINT}"],
        ),
        (
            {"args": {"a": {"anyOf": [{"patternProperties": {"^(a+)+$": {"pattern": "^(b*)*c"}}}]}}},
            [
                f"args.a.anyOf[0].patternProperties.^(a+)+$: {HINT}",
                f"args.a.anyOf[0].patternProperties.^(a+)+$.pattern: {HINT}",
            ],
        ),
        ({"output": {"check": {"regex": ""}}}, ["output.check.regex: expected a regular expression that is not empty"]),
    ],
    ids=str,
)
def test_wherever_a_spec_holds_one_it_is_told(spec: Any, problems: list[str]) -> None:
    with pytest.raises(SpecError) as raised:
        Spec.from_mapping(spec)
    assert [str(problem) for problem in raised.value.problems] == problems


def test_a_property_that_is_called_pattern_is_none() -> None:
    schema = {"properties": {"pattern": {"const": {"pattern": "(a+)+$"}}}, "examples": [{"pattern": "(a+)+$"}]}
    verdict = check([Step("a", {"pattern": {"pattern": "(a+)+$"}})], {"args": {"a": schema}, "ground": False})
    assert verdict.violations == ()
