"""The JSON Schema of specs: it takes every spec of the docs, and refuses what has the wrong shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from luckrate_otel.canonical import plain
from luckrate_otel.rules.table import RULES
from luckrate_otel.spec import ALIASES, KEYS, Spec
from luckrate_otel.specschema import spec_schema

TEXT = (Path(__file__).parents[2] / "docs" / "spec.md").read_text(encoding="utf-8")
VALIDATOR = jsonschema.Draft202012Validator(spec_schema())


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_it_is_a_schema_and_names_every_key_and_rule() -> None:
    schema = spec_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert sorted(schema["properties"]) == sorted([*KEYS, ALIASES])
    assert list(schema["properties"]["severity"]["properties"]) == list(RULES)


def test_every_example_of_the_docs_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Mapping[str, Any]] = []
    read = Spec.from_mapping

    def note(mapping: Mapping[str, Any], **options: Any) -> Spec:
        seen.append(mapping)
        return read(mapping, **options)

    monkeypatch.setattr(Spec, "from_mapping", note)
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(block, names)
    seen += [YAML(typ="safe").load(block) for block in blocks("yaml")]
    assert len(seen) > len(RULES)
    assert [error.message for mapping in seen for error in VALIDATOR.iter_errors(plain(mapping))] == []


@pytest.mark.parametrize(
    "mapping",
    [
        {"requird": []},
        {"tools": "a"},
        {"max_steps": "8"},
        {"before": [["a"]]},
        {"leads_to": [{"first": "a"}]},
        {"leads_to": [{"first": "a", "then": {"tool": "b", "wher": {}}}]},
        {"leads_to": [{"first": "a", "then": "b", "within": "0 steps"}]},
        {"max_duration": "soon"},
        {"severity": {"befor": "hard"}},
        {"severity": {"before": "hrad"}},
        {"k": 0},
        {"output": {"check": {"containz": "a"}}},
        {"agents": {"x": {"tool": []}}},
        {"max_calls": {"a": {"mx": 1}}},
    ],
)
def test_the_wrong_shape_does_not_fit(mapping: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(mapping)
