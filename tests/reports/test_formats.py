"""What holds for every format, and for the values they are made of."""

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from luckrate_otel import Step, Turn, check
from luckrate_otel.gate import case_id
from luckrate_otel.model import Evidence, Severity, Trajectory, VerdictLabel, Violation
from luckrate_otel.reports.advice import mend, silence
from luckrate_otel.reports.formats import FORMATS
from luckrate_otel.reports.graded import GateOptions, Place, case_key, make_report
from luckrate_otel.reports.text import PLAIN, Style
from luckrate_otel.rules.table import RULES
from tests.reports.example import HARD, RUNS, SOFT, report, run, verdict


@pytest.mark.parametrize("name", FORMATS)
def test_every_finding_is_told_with_its_rule_and_reason(name: str) -> None:
    text = FORMATS[name](report(), PLAIN)
    for word in ("before", "before[0]", "ran before ask_human", "max_steps: 2 steps, 1 allowed", "hard"):
        assert word in text, word


@pytest.mark.parametrize("name", FORMATS)
def test_private_values_need_to_be_asked_for(name: str) -> None:
    assert "s3cret" not in FORMATS[name](report(), Style(values=False))


def test_there_is_advice_on_every_finding_a_report_can_hold() -> None:
    advice = [mend(rule) for rule in (*RULES, "run_failed", "a_rule_of_a_later_version")]
    assert all(advice)
    assert len(set(advice)) > len(RULES) // 2


def test_every_finding_can_be_silenced_but_a_run_that_failed() -> None:
    assert silence("before").startswith("severity: {before: off}")
    assert silence("run_failed") == "cannot be silenced"


def test_the_text_ends_on_what_to_do_the_number_and_the_gate() -> None:
    text = FORMATS["text"](make_report([(run(1), verdict(VerdictLabel.LUCKY, SOFT))]), PLAIN)
    told = (
        "What to do\n"
        "  max_steps  mend: look for needless calls first; raise the budget only if good runs need more\n"
        "             silence: severity: {max_steps: off} in the spec (or warn: shown, never fails), "
        "or accept it with --baseline"
    )
    assert text.split("\n\n")[1:] == [
        told,
        "Luck Rate 100 %: 1 lucky of 1 green, 95 % interval 21 % to 100 %\n  1 run",
        f"Gate failed\n  soft: violations in 1 of 1 run of case {case_key(*RUNS[0])}",
    ]


def test_the_text_shows_evidence_and_what_is_known() -> None:
    text = FORMATS["text"](report(GateOptions(known=frozenset({(case_key(*RUNS[0]), HARD.fingerprint)}))), PLAIN)
    lines = [line for line in text.splitlines() if line.startswith("  ✗")]
    assert lines[0].endswith(" ran before ask_human [step 0] (known)")
    assert lines[1] == "  ✗ warn step 1: ground: pay.id comes from nowhere [sources look (step 0)]"
    assert text.endswith("Gate passed")


LONG = "x" * 240
PAGE = "fetch_page #0 $.text (inside free text)"


@pytest.mark.parametrize(
    ("message", "sources", "told"),
    [
        (f"send.to ← {PAGE}", (PAGE,), "step 0"),
        (f"send.to ← {PAGE}", (PAGE, "mail #1 $"), "step 0; sources mail #1 $"),
        ("send.to ← a ← b #0", ("a ← b #0",), "step 0"),
        (
            "send.to (step 1) carries data from untrusted fetch_page",
            ("fetch_page #0",),
            "step 0; sources fetch_page #0",
        ),
        ("send.to (step 1) does not come from user", ("user",), "step 0; sources user"),
        (f"{LONG} ← {PAGE}", (PAGE,), f"step 0; sources {PAGE}"),  # cut off in the sentence
    ],
)
def test_a_source_that_the_sentence_ends_on_is_said_once_to_people(
    message: str, sources: tuple[str, ...], told: str
) -> None:
    """Programs get it as ever, in a place of its own."""
    finding = Violation("taint", "taint", Severity.HARD, message, 1, "send", "to", sources, (Evidence(0, "a" * 16),))
    made = make_report([(run(1), verdict(VerdictLabel.LUCKY, finding))])
    (line,) = [line for line in FORMATS["text"](made, PLAIN).splitlines() if line.startswith("  ✗")]
    assert line.partition(" [")[2] == f"{told}]"
    (row,) = [line for line in FORMATS["markdown"](made, PLAIN).splitlines() if line.startswith("| hard")]
    assert row.endswith(f"| `{told}` |")
    assert json.loads(FORMATS["json"](made, PLAIN))["runs"][0]["violations"][0]["sources"] == list(sources)
    every = ET.fromstring(FORMATS["junit"](made, PLAIN)).findtext(".//failure") or ""
    assert f"evidence: step 0; sources {', '.join(sources)}" in every
    (result,) = json.loads(FORMATS["sarif"](made, PLAIN))["runs"][0]["results"]
    assert f"Evidence: step 0; sources {', '.join(sources)}." in result["message"]["text"]


def test_the_gate_leaves_out_only_what_is_known_of_that_case() -> None:
    assert report().gate.failed
    assert report(GateOptions(known=frozenset({("another", HARD.fingerprint)}))).gate.failed
    assert not report(GateOptions(known=frozenset({(case_key(*RUNS[0]), HARD.fingerprint)}))).gate.failed


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("half", ["\ud800", "x\udfff"])
def test_whatever_a_program_calls_its_tools_a_report_can_be_written(name: str, half: str) -> None:
    steps = [Step(half, {half: half}, result=half, agent=half), Step("b", {"k": half}, ok=False, error=half)]
    spec: dict[str, Any] = {
        "name": half,
        "tools": ["b"],
        "before": [("b", "b")],
        "agents": {half: {"max_steps": 0}},
        "ends_with": half,
    }
    run = Trajectory(steps=tuple(steps), turns=(Turn(half),), final_output=half, agent=half, case=half, run_id=half)
    spec |= {"tools": [half, "b"], "exactly": [half], "max_calls": {half: 0}, "no_repeat": True}
    made = make_report([(run, check(run, spec))], places={("", ""): Place(half)}, reasons=(half,))
    assert made.gate.failed
    for values in (True, False):
        text = FORMATS[name](made, Style(values=values))
        assert text.encode().decode() == text
        if name in ("json", "sarif"):
            assert json.loads(text)
        if name == "junit":
            ET.fromstring(text)


def test_the_text_tells_of_each_run_which_case_the_gate_means() -> None:
    runs = [
        Trajectory(turns=(Turn("Refund 1."),), run_id="r1", agent="shop", adapters=("genai",)),
        Trajectory(run_id="r2", agent="shop", case="small refund"),
        Trajectory(run_id="r3", agent="shop"),
    ]
    budget = {"max_duration": 1}
    late = [(run, check(replace(run, duration=2000.0), budget)) for run in runs]
    text = FORMATS["text"](make_report(late), PLAIN)
    headings = [line for line in text.splitlines() if line.startswith("shop")]
    case = case_id("Refund 1.")
    assert headings == [f"shop  r1  [genai]  case {case}", "shop  r2  case small refund", "shop  r3"]
    assert text.split("Gate failed\n")[1].splitlines() == [
        f"  soft: violations in 1 of 1 run of case {name}" for name in (case, "small refund", "r3")
    ]


def test_other_reasons_fail_the_gate_too() -> None:
    made = make_report([(run(1), verdict(VerdictLabel.PASS))], reasons=("command: exited with status 3",))
    assert made.gate.failed
    assert made.gate.reasons == ("command: exited with status 3",)


@pytest.mark.parametrize(
    ("clause", "line"), [("before[0]", 7), ("before", 7), ("before[0].where", 7), ("max_steps", 1), ("", 1)]
)
def test_a_clause_without_a_line_stands_on_the_part_around_it(clause: str, line: int) -> None:
    assert report().place(RUNS[0][1], clause) == Place("specs/my refunds.yaml", line)
