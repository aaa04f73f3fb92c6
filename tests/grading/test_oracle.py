"""luckrate 0.3.0, the published package, finds the same; where it does not, docs/spec.md says so and why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import luckrate  # type: ignore[import-untyped]  # published without types
import pytest

from luckrate_otel import Spec, Step, check
from luckrate_otel.errors import SpecError
from luckrate_otel.facts import Gap
from luckrate_otel.model import Turn, Verdict, Violation
from tests.grading.generated import TASKS, Plain, plain_steps, spec_mapping, with_repeats

CASES = 10_000
DOCS = Path(__file__).parents[2] / "docs" / "spec.md"


def ours(steps: Sequence[Plain], spec: Mapping[str, Any], task: Any) -> Verdict:
    made = [Step(s.tool, s.args, s.ok, s.result) for s in steps]
    return check(made, {**spec, "provenance": "substring"}, task)


def theirs(steps: Sequence[Plain], spec: Mapping[str, Any], task: Any) -> list[str]:
    made = [luckrate.Step(s.tool, s.args, s.ok, s.result) for s in steps]
    found: list[str] = luckrate.check(made, spec, task)
    return found


def in_their_words(violation: Violation, steps: Sequence[Plain], spec: Mapping[str, Any]) -> str:
    """The line luckrate 0.3 writes for this finding, made from its fields."""
    if violation.severity == "hard" and violation.rule in {"taint", "ground"} and violation.step is None:
        return f"provenance checked on first 500 of {len(steps)} steps"
    tool, argument = violation.tool, violation.argument
    if violation.rule == "before":
        a, b = spec["before"][int(violation.clause[len("before[") : -1])]
        return f"{a} must come before {b}" if violation.evidence else f"{b} called without {a}"
    if violation.rule == "taint":
        dirty = sorted({source.split(" #")[0] for source in violation.sources})
        return f"{tool}.{argument} carries data from untrusted {', '.join(dirty)}"
    if violation.rule == "ground":
        assert violation.step is not None
        assert argument is not None
        return f"warn: ungrounded arg {tool}.{argument}={str(steps[violation.step].args[unmasked(argument)])!r}"
    if violation.rule == "secrets":
        shape = re.search(r"possible (.+) in ", violation.message)
        assert shape is not None
        return f"warn: possible {shape[1]} in {tool}.{'result' if argument is None else f'arg {argument}'}"
    return {
        "unknown_tool": f"unknown tool: {tool}",
        "required": f"missing required tool: {tool}",
        "forbidden": f"called forbidden tool: {tool}",
        "max_steps": f"soft: {len(steps)} steps > max {spec.get('max_steps')}",
        "no_repeat": f"soft: repeated call: {tool}",
    }[violation.rule]


def unmasked(argument: str) -> str:
    """The one key of the generator that is no plain name is masked here; a listed difference."""
    return "a b" if argument == "[*]" else argument


def masked(line: str) -> str:
    return re.sub(r"(?<=[ .])a b(?=[ =]|$)", "[*]", line)


def severities_agree(violation: Violation, line: str) -> bool:
    prefix = {"hard": "", "soft": "soft:", "warn": "warn:"}[violation.severity]
    return line.startswith(prefix) and (prefix != "" or not line.startswith(("soft:", "warn:")))


def test_the_same_findings_in_the_same_order_on_random_specs_and_runs() -> None:
    random = Random(20260101)
    seen: Counter[str] = Counter()
    for _ in range(CASES):
        spec = spec_mapping(random)
        steps = with_repeats(random, plain_steps(random, random.randint(0, 7)))
        task = random.choice(TASKS)
        try:
            expected = [masked(line) for line in theirs(steps, spec, task)]
        except ValueError:
            with pytest.raises(SpecError):
                ours(steps, spec, task)
            seen["refused"] += 1
            continue
        verdict = ours(steps, spec, task)
        assert [in_their_words(v, steps, spec) for v in verdict.violations] == expected, (spec, steps, task)
        assert all(severities_agree(*pair) for pair in zip(verdict.violations, expected, strict=True))
        assert verdict.not_evaluated == ()
        seen.update(v.rule for v in verdict.violations)
        seen["clean"] += not expected
    rules = {"unknown_tool", "required", "forbidden", "before", "max_steps", "no_repeat", "taint", "ground", "secrets"}
    assert set(seen) == rules | {"refused", "clean"}
    assert min(seen.values()) > 150, seen


@pytest.mark.parametrize("count", [499, 500, 501, 503])
@pytest.mark.parametrize("ground", [True, False])
@pytest.mark.parametrize("taint", [True, False])
def test_provenance_past_500_steps(count: int, ground: bool, taint: bool) -> None:
    steps = plain_steps(Random(count), count)
    spec: dict[str, Any] = {"ground": ground, "secrets": False}
    if taint:
        spec |= {"untrusted": ["fetch_page"], "privileged": ["send_email"]}
    expected = theirs(steps, spec, "refund W1001")
    if not ground and not taint:  # the listed difference: nothing was checked, so nothing was cut
        expected = [line for line in expected if not line.startswith("provenance checked")]
    assert [in_their_words(v, steps, spec) for v in ours(steps, spec, "refund W1001").violations] == [
        masked(line) for line in expected
    ]


# ---- the listed differences ------------------------------------------------------------------------

STEP = Plain("pay", {"order": "W7"}, True, "")


def unread_keys() -> None:
    assert theirs([STEP], {"requird": ["refund"], "ground": False}, "") == []
    with pytest.raises(SpecError, match="did you mean 'required'"):
        Spec.from_mapping({"requird": ["refund"]})


def wrong_types() -> None:
    text = theirs([STEP], {"required": "pay", "ground": False}, "")
    assert text == ["missing required tool: p", "missing required tool: a", "missing required tool: y"]
    assert theirs([STEP], {"max_steps": 0.5, "no_repeat": 1, "ground": False}, "") == ["soft: 1 steps > max 0.5"]
    for wrong in ({"required": "pay"}, {"max_steps": 0.5}, {"max_steps": -1}, {"no_repeat": 1}, {"ground": 0}):
        with pytest.raises(SpecError):
            Spec.from_mapping(wrong)


def stars_in_names() -> None:
    assert theirs([Plain("delete_all", {}, True, "")], {"forbidden": ["delete_*"]}, "") == []
    with pytest.raises(SpecError, match="named in full"):
        Spec.from_mapping({"forbidden": ["delete_*"]})


def nothing_to_cut() -> None:
    steps, spec = [STEP] * 501, {"ground": False}
    assert theirs(steps, spec, "") == ["provenance checked on first 500 of 501 steps"]
    assert ours(steps, spec, "").violations == ()


def missing_content() -> None:
    with pytest.raises(AttributeError):
        luckrate.check([luckrate.Step("pay", None)], {})
    verdict = check([Step("pay", None)], {"no_repeat": True, "provenance": "substring"})
    assert {(n.rule, n.reason) for n in verdict.not_evaluated} == {
        ("no_repeat", Gap.NOT_CAPTURED),
        ("ground", Gap.NOT_CAPTURED),
        ("secrets", Gap.NOT_CAPTURED),
    }


def untold_success() -> None:
    steps, spec = [Plain("pay", {}, None, "")] * 2, {"no_repeat": True}  # type: ignore[arg-type]  # untyped in 0.3
    assert theirs(steps, spec, "") == []
    assert [(n.rule, n.reason) for n in ours(steps, spec, "").not_evaluated] == [("no_repeat", Gap.NOT_CAPTURED)]


def several_user_turns() -> None:
    step = Plain("pay", {"order": "W900"}, True, "")
    assert theirs([step], {}, ["refund", "W900"]) == []
    late = ours([step], {}, ["refund", Turn("W900", before_step=1)])
    assert [(v.rule, v.step) for v in late.violations] == [("ground", 0)]


def masked_keys() -> None:
    step = Plain("pay", {"Ann Smith": "W900"}, True, "")
    assert theirs([step], {}, "") == ["warn: ungrounded arg pay.Ann Smith='W900'"]
    (violation,) = ours([step], {}, "").violations
    assert violation.argument == "[*]"
    assert violation.message == "ground: pay[*] (step 0) is found in nothing the agent was given"


def odd_argument_keys() -> None:
    odd: Any = {1: "a", "b": "c"}
    with pytest.raises(TypeError):
        luckrate.check([luckrate.Step("pay", odd)], {"no_repeat": True})
    assert ours([Plain("pay", odd, True, "")], {"no_repeat": True}, "").violations == ()


DIFFERENCES: dict[str, Callable[[], None]] = {
    "unread keys": unread_keys,
    "wrong types": wrong_types,
    "stars in names": stars_in_names,
    "nothing to cut": nothing_to_cut,
    "missing content": missing_content,
    "untold success": untold_success,
    "several user turns": several_user_turns,
    "masked keys": masked_keys,
    "odd argument keys": odd_argument_keys,
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_listed_difference(name: str) -> None:
    DIFFERENCES[name]()


def test_the_differences_listed_in_the_docs_are_the_ones_shown_here() -> None:
    section = DOCS.read_text(encoding="utf-8").partition("## Differences from luckrate 0.3")[2]
    assert re.findall(r"^\| \*\*(.+?)\*\* \|", section, re.MULTILINE) == list(DIFFERENCES)
