"""docs/adapters.md names every adapter, scope, marker, captured variant and stored form, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from luckrate_otel.adapters import ADAPTERS
from luckrate_otel.payloads import READERS
from tests.captured import CASES, rebuilt, telemetry

TEXT = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text()


def rows(heading: str) -> list[list[str]]:
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_adapter_with_its_scopes() -> None:
    told = [
        (name, tuple(re.findall(r"`([^`]+)`", scopes)), marker.strip("`") or None)
        for name, scopes, marker in rows("The adapters")
    ]
    assert told == [(a.name, a.scopes, a.marker) for a in ADAPTERS]


def test_every_captured_variant_with_the_adapters_that_read_it() -> None:
    told = {row[0]: set(row[1].split(", ")) for row in rows("Where each field is read")}
    found: dict[str, set[str]] = {case.variant: set() for case in CASES}
    for case in CASES:
        found[case.variant].update(name for run in rebuilt(*telemetry(case)) for name in run["adapters"])
    assert sorted(told) == sorted(found)
    assert [variant for variant in told if told[variant] - found[variant]] == []


def test_every_form_of_stored_runs_in_the_order_they_are_tried() -> None:
    assert [row[0] for row in rows("Stored runs")] == [reader.name for reader in READERS]


def test_not_carried_means_not_captured() -> None:
    columns = {3: "args", 4: "result"}
    told = {row[0]: row for row in rows("Where each field is read")}
    for case in CASES:
        steps = [step for run in rebuilt(*telemetry(case)) for step in run["steps"]]
        for column, field in columns.items():
            if told[case.variant][column] == "not carried":
                assert {step[field] for step in steps} <= {None}, case
            elif field == "args" and steps:
                assert any(step["args"] is not None for step in steps), case
