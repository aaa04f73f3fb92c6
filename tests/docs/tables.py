"""Tables of the docs that the code knows: `make docs` writes them anew, a test holds the pages to them.

A page marks the place of each with two comments, which no reader sees; what is between two tables is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from luckrate_otel.config import Key, keys
from luckrate_otel.vocabulary import ATTRIBUTES, METRICS, Attribute, Metric
from tests.programs.names import series

DOCS = Path(__file__).parents[2] / "docs"
NOTHING = "—"

_PLACE = re.compile(r"(<!-- table (\S+), written by `make docs` -->\n).*?(<!-- end of table -->)", re.DOTALL)


def metrics() -> str:
    heads = ("metric", "kind", "unit", "in Prometheus", "attributes", "meaning")
    return _table(heads, map(_metric, METRICS))


def _metric(metric: Metric) -> tuple[str, ...]:
    in_prometheus = series(metric)[0].removesuffix("_bucket")
    attributes = ", ".join(map(_code, metric.attributes))
    return _code(metric.name), metric.kind, metric.unit, _code(in_prometheus), attributes, metric.meaning


def attributes() -> str:
    return _table(("attribute", "type", "where", "meaning"), map(_attribute, ATTRIBUTES))


def _attribute(attribute: Attribute) -> tuple[str, ...]:
    return _code(attribute.name), attribute.type, ", ".join(attribute.place), attribute.meaning


def settings(section: str) -> str:
    """The keys of one section of the configuration; "top" has those that are in none."""
    chosen = [(path, key) for path, key in keys().items() if _section(path) == section]
    return _table(("key", "type", "default", "meaning", "reason"), (_setting(path, key) for path, key in chosen))


def _setting(path: str, key: Key) -> tuple[str, ...]:
    default = _code(key.default) if key.default else ""
    return _code(path), key.kind.label, default, key.meaning, key.reason


def _section(path: str) -> str:
    return path.partition(".")[0] if "." in path else "top"


def _code(text: str) -> str:
    return f"`{text}`"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell or NOTHING for cell in line)} |\n" for line in lines)


PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "metrics.md": {"metrics": metrics, "attributes": attributes},
    "configuration.md": {name: partial(settings, name) for name in dict.fromkeys(map(_section, keys()))},
}


def renew(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with each of its tables as the code has it now. KeyError on a place for a table that nobody makes."""
    return _PLACE.sub(lambda place: f"{place[1]}{tables[place[2]]()}{place[3]}", page)


def places(page: str) -> list[str]:
    return [place[1] for place in _PLACE.findall(page)]


def main() -> None:
    for name, tables in PAGES.items():
        file = DOCS / name
        file.write_text(renew(file.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()
