"""What the metrics of the vocabulary are called in Prometheus: its naming rules, as exporters apply them."""

from __future__ import annotations

import re
from collections.abc import Collection

from luckrate_otel.vocabulary import METRICS, Kind, Metric

_UNITS = {"By": "_bytes", "s": "_seconds"}


def series(metric: Metric) -> tuple[str, ...]:
    """The series of one metric: dots as underscores, the unit, `_total` for counters; three for a histogram."""
    base = metric.name.replace(".", "_") + _UNITS.get(metric.unit, "")
    if metric.kind is Kind.COUNTER:
        return (f"{base}_total",)
    return tuple(f"{base}_{part}" for part in ("bucket", "sum", "count")) if metric.kind is Kind.HISTOGRAM else (base,)


def labels() -> set[str]:
    """Every label of ours, and those that Prometheus adds."""
    ours = {name.replace(".", "_") for metric in METRICS for name in metric.attributes}
    return ours | {"job", "instance", "le"}


_LABEL_LISTS = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
_MATCHERS = re.compile(r"\{([^}]*)\}")
_LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_NAME = re.compile(r"(?<![\w:$\"])(?:luckrate|gen_ai|spec:)[\w:]*")


def unknown_names(expression: str, recorded: Collection[str] = ()) -> set[str]:
    """Metrics and labels in a PromQL expression that neither the vocabulary nor a recording rule has."""
    asked = {name.strip() for names in _LABEL_LISTS.findall(expression) for name in names.split(",") if name.strip()}
    asked |= {name for matchers in _MATCHERS.findall(expression) for name in _LABEL.findall(matchers)}
    bare = _MATCHERS.sub("", _LABEL_LISTS.sub("", expression))
    read = set(_NAME.findall(bare))
    known = {name for metric in METRICS for name in series(metric)} | set(recorded)
    return (asked - labels()) | (read - known)
