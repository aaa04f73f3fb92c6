"""SARIF 2.1.0, valid by its published schema, with what code scanning needs besides."""

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema

from luckrate_otel import Step, check
from luckrate_otel.model import Trajectory
from luckrate_otel.reports.graded import GateOptions, case_label, make_report
from luckrate_otel.reports.sarif import sarif
from tests.reports.example import HARD, RUNS, report

SCHEMA = Path(__file__).parents[1] / "data/sarif/sarif-2.1.0-rtm.5.json.gz"
VALIDATOR = jsonschema.Draft4Validator(
    json.loads(gzip.decompress(SCHEMA.read_bytes())), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
)


def read(text: str) -> Any:
    log = json.loads(text)
    VALIDATOR.validate(log)
    assert log["version"] == "2.1.0"
    return log["runs"][0]


def test_each_finding_is_a_result_on_its_clause() -> None:
    run = read(sarif(report(), "1.2.3"))
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["before", "ground", "max_steps"]
    assert [(r["ruleId"], r["ruleIndex"], r["level"]) for r in run["results"]] == [
        ("before", 0, "error"),
        ("ground", 1, "note"),
        ("max_steps", 2, "warning"),
    ]
    first = run["results"][0]
    assert first["message"]["text"] == (
        f"Step 1: {HARD.message}. Evidence: step 0. "
        "To mend it, let the later tool refuse until the earlier one was called."
    )
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "specs/my%20refunds.yaml"},
        "region": {"startLine": 7},
    }
    assert first["locations"][0]["logicalLocations"] == [
        {"name": HARD.tool, "fullyQualifiedName": "t:1/step 1", "kind": "step"}
    ]
    assert first["relatedLocations"] == [
        {
            "id": 1,
            "message": {"text": "Evidence: step 0"},
            "logicalLocations": [{"name": "look", "fullyQualifiedName": "t:1/step 0", "kind": "step"}],
        }
    ]
    assert first["partialFingerprints"] == {"luckrate/v1": f"{HARD.fingerprint}:{case_label(*RUNS[0])}"}
    assert "baselineState" not in first
    # A clause that has no line of its own stands on the spec.
    assert run["results"][2]["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert run["properties"]["gate"]["failed"] is True


def test_with_a_baseline_each_result_says_whether_it_is_new() -> None:
    known = frozenset({(case_label(*RUNS[0]), HARD.fingerprint)})
    run = read(sarif(report(GateOptions(known=known)), "1"))
    assert [result["baselineState"] for result in run["results"]] == ["unchanged", "new", "new"]


def test_without_a_known_place_or_finding_it_still_is_valid() -> None:
    assert read(sarif(make_report([]), "1"))["results"] == []
    bare = read(sarif(make_report(RUNS), "1"))["results"][0]
    assert "physicalLocation" not in bare["locations"][0]


def test_the_name_of_a_tool_makes_no_link() -> None:
    """3.11.6: brackets and parentheses are one, in plain text too."""
    steps = (Step("[see](https://evil.example)"),)
    run = Trajectory(steps, run_id="r")
    log = read(sarif(make_report([(run, check(run, {"tools": ["look"]}, output_ok=True))]), "0.1.0"))
    assert log["results"][0]["message"]["text"].startswith(
        "Step 0: tools: [see] (https://evil.example) (step 0) is not a tool of the vocabulary."
    )


def test_no_private_value_is_in_it() -> None:
    assert "s3cret" not in sarif(report(), "1")


def test_a_run_that_is_its_own_case_is_known_again_by_its_finding_alone() -> None:
    """Run ids never come again, and code scanning tells old alerts from new ones by the fingerprint."""
    runs = [Trajectory((Step("pay"),), run_id=run_id) for run_id in ("r1", "r2")]
    results = read(sarif(make_report([(run, check(run, {"forbidden": ["pay"]})) for run in runs]), "1"))["results"]
    first, second = (result["partialFingerprints"] for result in results)
    assert first == second
