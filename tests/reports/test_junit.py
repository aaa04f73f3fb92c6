"""JUnit: a run fails by its hard findings, the gate by its reasons, and the document exactly if the gate does."""

import re
from xml.etree import ElementTree as ET

from luckrate_otel import Spec, check
from luckrate_otel.batch import trajectories
from luckrate_otel.model import VerdictLabel
from luckrate_otel.reports.graded import GateOptions, case_label, make_report
from luckrate_otel.reports.junit import junit
from tests.captured import CASES, telemetry
from tests.reports.example import HARD, HOSTILE, RUNS, SOFT, report, run, verdict


def read(text: str) -> ET.Element:
    return ET.fromstring(text)


def test_a_run_with_a_hard_violation_fails() -> None:
    suites = read(junit(report()))
    assert suites.attrib == {"name": "luckrate-otel", "tests": "4", "failures": "2", "errors": "0"}
    suite, gate = suites
    assert suite.attrib == {"name": "refunds", "tests": "3", "failures": "1", "errors": "0", "skipped": "0"}
    first = suite[0]
    assert first.attrib["classname"] == "refunds"
    assert first.attrib["time"] == "1.500"
    assert [case.attrib["name"].split()[1] for case in suite] == ["#1", "#2", "#3"]
    failure = first[0]
    assert failure.attrib["type"] == "before"
    assert failure.text == (
        f"hard step 1: {HARD.message}\nevidence: step 0\n"
        "mend: let the later tool refuse until the earlier one was called\n"
        "silence: severity: {before: off} in the spec (or warn: shown, never fails), or accept it with --baseline"
    ).replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    out = first.findtext("system-out") or ""
    assert out.startswith("run t:1: lucky, output ok (by status), path bad\n\nwarn step 1: ground: ")
    assert out.endswith("not evaluated: secrets (not_captured)")
    assert gate.find("testcase/failure") is not None


def test_soft_violations_and_warnings_do_not_fail_a_run() -> None:
    suites = read(
        junit(make_report([(run(1), verdict(VerdictLabel.PASS)), (run(2), verdict(VerdictLabel.PASS, SOFT))]))
    )
    assert suites.attrib["failures"] == "0"


def test_the_gate_fails_where_only_it_knows() -> None:
    suites = read(junit(make_report([])))
    assert [failure.attrib for failure in suites.iter("failure")] == [
        {"type": "no_runs", "message": "no_runs: nothing to judge"}
    ]
    assert suites.attrib["failures"] == "1"


def test_an_ungraded_run_is_skipped() -> None:
    suites = read(junit(make_report([(run(1), verdict(VerdictLabel.NOT_GRADED, reason="no_agent"))])))
    assert [skipped.attrib["message"] for skipped in suites.iter("skipped")] == ["not graded: no_agent"]


def test_a_known_finding_is_shown_and_does_not_fail() -> None:
    known = report(GateOptions(known=frozenset({(case_label(*RUNS[0]), HARD.fingerprint)})))
    text = junit(known)
    assert read(text).attrib["failures"] == "0"
    assert "(known)" in text


def test_no_private_value_and_no_forbidden_character_is_in_it() -> None:
    text = junit(report())
    assert "s3cret" not in text
    assert "\x1b" in HOSTILE
    assert "\x1b" not in text


# ---- as readers have it --------------------------------------------------------------------------

# Element → its attributes (required ones first, then others) and the elements in it, as Jenkins' junit-10.xsd has them;
# GitLab, Azure and GitHub's report actions read what fits it.
COUNTED = {"name", "tests", "failures", "errors"}
FORM: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {*COUNTED, "time"}, {"testsuite"}),
    "testsuite": (COUNTED, {"skipped", "time", "timestamp", "hostname"}, {"properties", "testcase"}),
    "testcase": ({"name"}, {"classname", "time"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
}


def assert_readable(text: str) -> ET.Element:
    suites = read(text)
    assert suites.tag == "testsuites"
    for element in suites.iter():
        required, allowed, inside = FORM[element.tag]
        assert required <= set(element.attrib) <= required | allowed
        assert {child.tag for child in element} <= inside
    for suite in suites:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        assert suite.get("failures") == str(sum(case.find("failure") is not None for case in cases))
        assert suite.get("skipped") == str(sum(case.find("skipped") is not None for case in cases))
        assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
        assert all(re.fullmatch(r"\d+\.\d{3}", case.get("time", "0.000")) for case in cases)
    return suites


CAPTURED = [run for case in CASES for run in trajectories(*telemetry(case))]
STRICT = Spec.from_mapping(
    {
        "required": ["escalate_to_human"],
        "before": [["lookup_order", "issue_refund"]],
        "aliases": {"issue_refund": ["Issue Refund"]},
        "max_steps": 1,
    }
)


def test_every_captured_run_makes_a_document_that_readers_take() -> None:
    made = make_report([(run, check(run, STRICT)) for run in CAPTURED])
    suites = assert_readable(junit(made))
    assert int(suites.get("tests", 0)) == len(CAPTURED) + 1


def test_a_hostile_report_and_an_empty_one_are_taken_too() -> None:
    assert_readable(junit(report()))
    assert_readable(junit(make_report([])))
