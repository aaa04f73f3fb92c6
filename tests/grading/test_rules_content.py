"""The rules that look at arguments and results: no_repeat, ground, taint (substring engine) and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from luckrate_otel.facts import Gap
from luckrate_otel.model import Coverage, Evidence, History, Severity, Step, Trajectory, Turn, Violation
from luckrate_otel.provenance import Policy
from luckrate_otel.provenance.substring import ENGINE
from tests.grading.asking import ask, only, places, run, state

A = {"id": "W1"}


# ---- no_repeat -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trajectory", "ends"),
    [
        (run(Step("a", A), Step("a", A)), "violated"),
        (run(Step("a", A), Step("a", {"id": "W2"})), "satisfied"),
        (run(Step("a", A), Step("b", A)), "satisfied"),
        (run(Step("a", A, ok=False), Step("a", A)), "satisfied"),
        (run(Step("a", A, ok=False), Step("a", A), Step("a", A)), "violated"),
        (run(Step("a", {"n": 1}), Step("a", {"n": 1.0})), "satisfied"),
        (run(Step("a", {"n": 1}), Step("a", {"n": True})), "satisfied"),
        (run(Step("a", {"x": 1, "y": (2,)}), Step("a", {"y": [2], "x": 1})), "violated"),
        (run(Step("a", A)), "vacuous"),
        (run(), "vacuous"),
        (run(Step("a", A, ok=None), Step("a", A)), Gap.NOT_CAPTURED),
        (run(Step("a", A, ok=None), Step("a", A), gaps={(0, "ok"): Gap.TRUNCATED}), Gap.TRUNCATED),
        (run(Step("a", A, ok=None), Step("b", A)), "satisfied"),
        (run(Step("a", A), Step("a", A, ok=None)), "violated"),
        (run(Step("a", None), Step("b", A)), Gap.NOT_CAPTURED),
        (run(Step("a", None), Step("a", None)), Gap.NOT_CAPTURED),
        (run(Step("a", None), gaps={(0, "args"): Gap.REDACTED}), Gap.REDACTED),
        (run(Step("a", None), Step("b", A), Step("b", A)), "violated"),
    ],
)
def test_no_repeat(trajectory: Trajectory, ends: str | Gap) -> None:
    assert state(ask("no_repeat", {"no_repeat": True}, trajectory)) == ends


def test_each_repeat_points_at_the_call_that_had_succeeded() -> None:
    outcome = ask(
        "no_repeat", {"no_repeat": True}, run(Step("a", A, ok=False), Step("a", A), "b", Step("a", A), Step("a", A))
    )
    assert outcome.violations[0] == Violation(
        rule="no_repeat",
        clause="no_repeat",
        severity=Severity.SOFT,
        message="no_repeat: a (step 3) repeats step 1, which had already succeeded",
        step=3,
        tool="a",
        evidence=(Evidence(1, "s1"),),
        span="s3",
    )
    assert places(outcome) == [("no_repeat", 3, "a"), ("no_repeat", 4, "a")]


# ---- ground ----------------------------------------------------------------------------------------


def pay(value: Any) -> Step:
    return Step("pay", {"to": value})


@pytest.mark.parametrize(
    ("trajectory", "ends"),
    [
        (run(pay("W77"), task="refund W77"), "satisfied"),
        (run(pay("W77"), task="refund W7"), "violated"),
        (run(pay("W7"), task="refund W77"), "vacuous"),  # two characters are no identifier
        (run(pay("W77"), task="refund W777"), "satisfied"),  # a substring is enough
        (run(pay("#W77"), task=""), "vacuous"),
        (run(pay("two words"), task=""), "vacuous"),
        (run(pay("x" * 40), task=""), "violated"),
        (run(pay("x" * 41), task=""), "vacuous"),
        (run(pay("TRUE"), task=""), "vacuous"),
        (run(pay(["W77"]), task=""), "vacuous"),
        (run(Step("look", result="W77"), pay("W77"), task=""), "satisfied"),
        (run(pay("W77"), Step("look", result="W77"), task=""), "violated"),
        (run(Step("pay", {"to": "W77"}, result="W77"), task=""), "violated"),
        (run(pay("W77"), task="", system=("desk W77",)), "satisfied"),
        (run(pay("W77"), task="", history=History(turns=("refund W77",))), "satisfied"),
        (run(pay("W77"), task="", history=History(steps=(Step("look", result="W77"),))), "satisfied"),
        (run("a", pay("W77"), turns=(Turn("hi"), Turn("W77", 1))), "satisfied"),
        (run("a", pay("W77"), turns=(Turn("hi"), Turn("W77", 2))), "violated"),
        (run(), "vacuous"),
        # what is not known
        (run(pay("W77"), task=None), Gap.NO_TASK),
        (run(pay("W77"), history=History(missing=True)), Gap.HISTORY_MISSING),
        (run(Step("look", {}, result=None), pay("W77")), Gap.NOT_CAPTURED),
        (run(Step("look", {}, result=None), pay("W77"), gaps={(0, "result"): Gap.TOO_LARGE}), Gap.TOO_LARGE),
        (run(pay("W77"), Step("look", {}, result=None), pay("W88"), task=""), "violated"),
        (run(Step("pay", {"to": "W77"}, result=None), task="W77"), "satisfied"),
        (run(Step("pay", {"to": "W77"}, result=None), task="W77", coverage=Coverage(results=False)), Gap.NOT_CAPTURED),
        (run(Step("look", {}, None, None, error="no_return"), pay("W77"), task=""), "violated"),
        (run(Step("pay", None), pay("W77"), task="W77"), Gap.NOT_CAPTURED),
        (run(Step("pay", None), pay("W77"), task=""), "violated"),
        (run(Step("pay", None), gaps={(0, "args"): Gap.TRUNCATED}), Gap.TRUNCATED),
    ],
)
def test_ground(trajectory: Trajectory, ends: str | Gap) -> None:
    assert state(ask("ground", {}, trajectory)) == ends


def test_an_invented_argument_is_named_without_its_value() -> None:
    assert only(ask("ground", {}, run("a", pay("W77")))) == Violation(
        rule="ground",
        clause="ground",
        severity=Severity.WARN,
        message="ground: pay.to (step 1) is found in nothing the agent was given",
        step=1,
        tool="pay",
        argument="to",
        span="s1",
    )


# ---- taint -----------------------------------------------------------------------------------------

FLOW = {"untrusted": ["web", "mail"], "privileged": ["pay", "web"]}


def read(text: str | None) -> Step:
    return Step("web", {}, result=text)


@pytest.mark.parametrize(
    ("trajectory", "ends"),
    [
        (run(read("pay W77"), pay("W77")), "violated"),
        (run(read("pay W77"), pay("W77"), task="pay W77"), "satisfied"),
        (run(read("pay W7"), pay("W77")), "satisfied"),
        (run(pay("W77"), read("pay W77")), "vacuous"),
        (run(Step("look", result="W77"), pay("W77")), "vacuous"),
        (run(read("W77"), Step("look", result="W77"), pay("W77")), "violated"),
        (run(read("W77"), Step("look", {"to": "W77"})), "vacuous"),
        (run(read("W77"), Step("web", {"url": "W77"})), "violated"),
        (run(read("W77"), pay("W77"), system=("W77",)), "violated"),
        (run(read("W77"), pay("W77"), history=History(turns=("W77",))), "satisfied"),
        (run(pay("W77"), history=History(steps=(read("W77"),))), "violated"),
        (run(pay("W77"), history=History(steps=(Step("look", result="W77"),))), "vacuous"),
        (run(read("W77"), pay("W77"), turns=(Turn("hi"), Turn("W77", 1))), "satisfied"),
        (run(read("W77"), pay("W77"), turns=(Turn("hi"), Turn("W77", 2))), "violated"),
        (run(), "vacuous"),
        # what is not known
        (run(read("W77"), pay("W77"), task=None), Gap.NO_TASK),
        (run(read("W77"), pay("W77"), history=History(missing=True)), Gap.HISTORY_MISSING),
        (run(read("W77"), pay("W88"), task=None), Gap.NO_TASK),
        (run(read("W77"), pay("W88"), coverage=Coverage(results=False)), Gap.NOT_CAPTURED),
        (run(read(None), pay("W77")), Gap.NOT_CAPTURED),
        (run(read(None), pay("W77"), gaps={(0, "result"): Gap.TRUNCATED}), Gap.TRUNCATED),
        (run(read(None), Step("look", {})), "vacuous"),
        (run(read("W77"), Step("pay", None), gaps={(1, "args"): Gap.REDACTED}), Gap.REDACTED),
        (run(read("W77"), Step("look", None), pay("W88")), "satisfied"),
        (run(read("W77"), pay("W77"), Step("pay", None)), "violated"),
        (run("look", coverage=Coverage(args=False)), Gap.NOT_CAPTURED),
        (run("look", coverage=Coverage(results=False)), Gap.NOT_CAPTURED),
        (run(coverage=Coverage(args=False, results=False)), "vacuous"),
    ],
)
def test_taint(trajectory: Trajectory, ends: str | Gap) -> None:
    assert state(ask("taint", FLOW, trajectory)) == ends


def test_a_tainted_argument_names_every_untrusted_source() -> None:
    outcome = ask("taint", FLOW, run(Step("mail", {}, result="W77"), read("W77"), read("W77"), pay("W77")))
    assert only(outcome) == Violation(
        rule="taint",
        clause="taint",
        severity=Severity.HARD,
        message="taint: pay.to (step 3) carries data from untrusted mail, web",
        step=3,
        tool="pay",
        argument="to",
        sources=("mail #0", "web #1", "web #2"),
        evidence=(Evidence(0, "s0"), Evidence(1, "s1"), Evidence(2, "s2")),
        span="s3",
    )


def test_an_untrusted_source_of_an_earlier_turn_has_no_step() -> None:
    violation = only(ask("taint", FLOW, run(pay("W77"), history=History(steps=(read("W77"),)))))
    assert (violation.sources, violation.evidence) == (("web (earlier turn)",), ())


@pytest.mark.parametrize(("count", "cut"), [(499, 0), (500, 0), (501, 1)])
def test_a_check_that_stops_at_500_steps_says_so_once(count: int, cut: int) -> None:
    trajectory = run(*["look"] * count)
    assert len(ask("ground", {}, trajectory).violations) == cut
    assert len(ask("taint", FLOW, trajectory).violations) == cut
    assert len(ask("ground", FLOW, trajectory).violations) == 0


def test_ground_tells_of_the_cut_when_only_half_of_taint_is_given() -> None:
    trajectory = run(*["look"] * 501)
    assert len(ENGINE.ground(trajectory, Policy(untrusted=("web",))).violations) == 1
    assert len(ENGINE.ground(trajectory, Policy(privileged=("pay",))).violations) == 1


def test_the_steps_past_500_are_not_searched() -> None:
    steps: list[Step | str] = [*["look"] * 500, pay("W77")]
    assert [(v.message, v.severity) for v in ask("ground", {}, run(*steps)).violations] == [
        ("ground: provenance was checked on the first 500 of 501 steps", Severity.HARD)
    ]


# ---- secrets ---------------------------------------------------------------------------------------

# Shape → the shortest text that has it. Built from parts so that no scanner takes this file for a leak.
SHAPES: Mapping[str, str] = {
    "AWS access key id": "AKIA" + "A1" * 8,
    "GitHub token": "ghp_" + "a" * 36,
    "GitHub fine-grained token": "github_pat_" + "a" * 50,
    "PyPI token": "pypi-AgEIcHlwaS5vcmc" + "a" * 16,
    "Slack token": "xoxb-" + "1" * 10,
    "OpenAI key": "sk-" + "a" * 20,
    "Google API key": "AIza" + "a" * 35,
    "private key block": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "bearer token": "Bearer " + "a" * 20,
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_credential_is_found_and_its_value_not_shown(name: str) -> None:
    secret = SHAPES[name]
    outcome = ask("secrets", {}, run("a", Step("send", {"body": f"use {secret}, please"})))
    assert only(outcome) == Violation(
        rule="secrets",
        clause="secrets",
        severity=Severity.WARN,
        message=f"secrets: possible {name} in send.body (step 1)",
        step=1,
        tool="send",
        argument="body",
        span="s1",
    )


@pytest.mark.parametrize("name", SHAPES)
def test_one_character_less_is_no_credential(name: str) -> None:
    assert state(ask("secrets", {}, run(Step("send", result=SHAPES[name][:-1])))) == "satisfied"


def test_one_warning_per_field_and_shape() -> None:
    aws, slack = SHAPES["AWS access key id"], SHAPES["Slack token"]
    outcome = ask("secrets", {}, run(Step("a", {"x": [aws, aws], "y": {"z": slack}}, result=f"{aws} {slack} {aws}")))
    assert [(v.argument, v.message) for v in outcome.violations] == [
        (None, "secrets: possible AWS access key id in a.result (step 0)"),
        (None, "secrets: possible Slack token in a.result (step 0)"),
        ("x", "secrets: possible AWS access key id in a.x (step 0)"),
        ("y", "secrets: possible Slack token in a.y (step 0)"),
    ]


@pytest.mark.parametrize(
    ("trajectory", "ends"),
    [
        (run("a"), "satisfied"),
        (run(), "vacuous"),
        (run(Step("a", None)), Gap.NOT_CAPTURED),
        (run(Step("a", {}, result=None), gaps={(0, "result"): Gap.TOO_LARGE}), Gap.TOO_LARGE),
        (run(Step("a", {}, None, None, error="no_return")), "satisfied"),
        (run(Step("a", None), Step("a", {"x": SHAPES["Slack token"]})), "violated"),
    ],
)
def test_secrets(trajectory: Trajectory, ends: str | Gap) -> None:
    assert state(ask("secrets", {}, trajectory)) == ends
