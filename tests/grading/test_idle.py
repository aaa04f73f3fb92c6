"""What a spec writes in vain is a warning; what is meant, and every spec we ship, is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from luckrate_otel import Spec
from luckrate_otel.errors import Problem
from luckrate_otel.rules.schema_parts import DRAFTS
from luckrate_otel.specfile import SpecFile, load_spec_file

ROOT = Path(__file__).parents[2]
SHIPPED = [
    *(path for folder in ("collector-config", "examples") for path in sorted((ROOT / folder).rglob("*.yaml"))),
    *sorted((ROOT / "src/luckrate_otel/demo/specs").glob("*.yaml")),
    *sorted((ROOT / "tests/grading/reference").glob("order*.json")),
]

NO_UNTRUSTED = "the rule taint is off without untrusted (tools whose results strangers may write)"
NO_PRIVILEGED = "the rule taint is off without privileged (tools that no such data may reach)"
NO_DRAFT = "names no draft, so the schema is read as 2020-12"
IN_VAIN = "is no keyword of JSON Schema, so it asks for nothing"


def warnings(spec: dict[str, Any]) -> list[str]:
    return list(map(str, Spec.from_mapping(spec).warnings))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, []),
        ({"untrusted": ["a"]}, [f"untrusted: {NO_PRIVILEGED}"]),
        ({"untrusted": ["a"], "privileged": []}, [f"untrusted: {NO_PRIVILEGED}"]),
        ({"privileged": ["a"]}, [f"privileged: {NO_UNTRUSTED}"]),
        ({"privileged": ["a"], "targets": {"a": "to"}}, [f"privileged: {NO_UNTRUSTED}"]),
        ({"delegates": ["a"]}, [f"delegates: {NO_UNTRUSTED} and {NO_PRIVILEGED.partition('without ')[2]}"]),
        ({"untrusted": [], "privileged": []}, []),
        ({"untrusted": ["a"], "privileged": ["b"], "targets": {"b": "to"}}, []),
        ({"untrusted": ["a"], "severity": {"taint": "off"}}, []),
        ({"untrusted": ["a"], "provenance": "substring"}, [f"untrusted: {NO_PRIVILEGED}"]),
        ({"untrusted": ["a"], "privileged": ["b"], "targets": {"b": "to"}, "provenance": "substring"},
         ["targets: provenance: substring does not read it"]),
        ({"untrusted": ["a"], "privileged": ["b"], "severity": {"taint": "warn"}}, []),
        ({"args": {"a": {}}}, ["args: asks for nothing, so no rule judges it"]),
        ({"args": {"a": {}}, "severity": {"args": "off"}}, []),
        ({"args": {"a": {"from": {"x": "user"}}}}, []),
        ({"required": [], "ground": False, "max_steps": None, "tools": []}, []),
        ({"required": ["a"], "severity": {"required": "off"}}, []),
    ],
)  # fmt: skip
def test_keys(spec: dict[str, Any], told: list[str]) -> None:
    assert warnings(spec) == told


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "object", "properties": {"amont": {"type": "number"}}}, []),
        ({"amount": {"type": "number"}}, [f"amount: {IN_VAIN}; arguments stand under properties"]),
        ({"requird": ["a"]}, [f"requird: {IN_VAIN}; did you mean 'required'?"]),
        ({"strict": True}, [f"strict: {IN_VAIN}"]),
        ({"x-owner": "shop", "$comment": "why", "title": "t", "examples": [{"odd": 1}], "const": {"odd": 1}}, []),
        ({"properties": {"x": {"items": {"tpe": 1}, "anyOf": [{"minimun": 1}]}}},
         [f"properties.x.items.tpe: {IN_VAIN}; did you mean 'type'?",
          f"properties.x.anyOf[0].minimun: {IN_VAIN}; did you mean 'minimum'?"]),
        ({"id": "x"}, [f"id: {IN_VAIN}"]),
        ({"$schema": DRAFTS[4], "id": "http://x.example"}, []),
        *(({"$schema": draft.rstrip("#"), "type": "object"}, []) for draft in DRAFTS),
        ({"$schema": "https://json-schema.org/draft-07/schema", "type": "object"},
         [f"$schema: {NO_DRAFT}; did you mean 'http://json-schema.org/draft-07/schema#'?"]),
        ({"$schema": "mine", "type": "object"},
         [f"$schema: {NO_DRAFT}; there are {', '.join(DRAFTS)}"]),
    ],
)  # fmt: skip
def test_schemas(schema: dict[str, Any], told: list[str]) -> None:
    assert warnings({"args": {"a": schema}}) == [f"args.a.{line}" for line in told]
    assert warnings({"output": {"check": {"schema": schema}}}) == [f"output.check.schema.{line}" for line in told]


def test_a_warning_has_its_line_and_is_no_part_of_what_the_spec_says() -> None:
    lines = {"max_steps": 1, "untrusted": 3, "args": 2, "args.a": 2}
    mapping = {"untrusted": ["a"], "args": {"a": {"tpe": 1}}, "max_steps": 3}
    spec = Spec.from_mapping(mapping, source="s.yaml", lines=lines)
    assert spec.warnings == (
        Problem("args.a.tpe", f"{IN_VAIN}; did you mean 'type'?", 2),
        Problem("untrusted", NO_PRIVILEGED, 3),
    )
    assert spec == Spec.from_mapping(mapping)
    assert SpecFile(spec, "s.yaml", lines).warnings == (
        f"s.yaml: line 2: args.a.tpe: {IN_VAIN}; did you mean 'type'?",
        f"s.yaml: line 3: untrusted: {NO_PRIVILEGED}",
    )


@pytest.mark.parametrize(
    "path",
    [path for path in SHIPPED if path.stem.startswith(("spec", "refunds", "order", "over"))],
    ids=lambda path: path.name,
)
def test_what_we_ship_says_nothing_in_vain(path: Path) -> None:
    assert load_spec_file(path).warnings == ()
