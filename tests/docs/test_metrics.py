"""docs/metrics.md says of every attribute and metric what the vocabulary says of it."""

import re
from pathlib import Path

import pytest

from luckrate_otel.vocabulary import ATTRIBUTES, METRICS, Attribute, Metric
from tests.programs.names import series

PAGE = (Path(__file__).parents[2] / "docs/metrics.md").read_text(encoding="utf-8")
ROWS = PAGE.splitlines()


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda attribute: attribute.name)
def test_each_attribute_has_its_row(attribute: Attribute) -> None:
    places = ", ".join(attribute.place)
    assert f"| `{attribute.name}` | {attribute.type} | {places} | {attribute.meaning} |" in ROWS


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_each_metric_has_its_row(metric: Metric) -> None:
    attributes = ", ".join(f"`{name}`" for name in metric.attributes) or "—"
    name = series(metric)[0].removesuffix("_bucket")
    row = f"| `{metric.name}` | {metric.kind} | {metric.unit} | `{name}` | {attributes} | {metric.meaning} |"
    assert row in ROWS


def test_rows_are_those_of_the_vocabulary_in_its_order() -> None:
    names = [item.name for item in (*METRICS, *ATTRIBUTES)]
    assert re.findall(r"^\| `(luckrate\.[^`]+)` \|", PAGE, re.MULTILINE) == names
