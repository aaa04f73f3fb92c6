"""Where the clauses of spec files are written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from luckrate_otel.reports.graded import Place
from luckrate_otel.specfile import SpecFile


def places(files: Iterable[SpecFile]) -> Mapping[tuple[str, str], Place]:
    """(spec version, path of a part) → its place; the path "" is the file."""
    found: dict[tuple[str, str], Place] = {}
    for file in files:
        found.setdefault((file.spec.version, ""), Place(file.source, file.lines.get("", 1)))
        for path, line in file.lines.items():
            found.setdefault((file.spec.version, path), Place(file.source, line))
    return found
