"""SARIF 2.1.0, against what its schema demands of the parts used here, and what code scanning needs besides.

The schema below is written by hand from the standard's property tables: it covers every property this package writes,
and refuses all others.
"""

import json
from typing import Any

import jsonschema

from luckrate_otel.reports.graded import GateOptions, case_label, make_report
from luckrate_otel.reports.sarif import sarif
from tests.reports.example import HARD, RUNS, report


def only(required: str, **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


TEXT = {"type": "string"}
MESSAGE = only("text", text=TEXT)
LOGICAL = only("name", name=TEXT, fullyQualifiedName=TEXT, kind=TEXT)
LOCATION = only(
    "logicalLocations",
    id={"type": "integer", "minimum": -1},
    message=MESSAGE,
    logicalLocations={"type": "array", "items": LOGICAL, "uniqueItems": True},
    physicalLocation=only(
        "artifactLocation",
        artifactLocation=only("uri", uri={"type": "string", "format": "uri-reference", "pattern": "^[^ ]+$"}),
        region=only("startLine", startLine={"type": "integer", "minimum": 1}),
    ),
)
RESULT = only(
    "message ruleId level locations",
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level={"enum": ["none", "note", "warning", "error"]},
    message=MESSAGE,
    locations={"type": "array", "items": LOCATION},
    relatedLocations={"type": "array", "items": LOCATION, "uniqueItems": True},
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    baselineState={"enum": ["new", "unchanged", "updated", "absent"]},
    properties={"type": "object"},
)
RULE = only("id", id=TEXT, shortDescription=MESSAGE, help=MESSAGE)
DRIVER = only("name", name=TEXT, semanticVersion=TEXT, rules={"type": "array", "items": RULE, "uniqueItems": True})
RUN = only(
    "tool results",
    tool=only("driver", driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results={"type": "array", "items": RESULT},
    properties={"type": "object"},
)
SCHEMA = only(
    "version runs",
    **{"$schema": {"type": "string", "format": "uri"}},
    version={"const": "2.1.0"},
    runs={"type": "array", "items": RUN},
)


def read(text: str) -> Any:
    log = json.loads(text)
    jsonschema.validate(log, SCHEMA)
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


def test_no_private_value_is_in_it() -> None:
    assert "s3cret" not in sarif(report(), "1")
